"""Thousands of logs to groups of one failure each: read by several processes, none of which can end the run."""
