"""A local page: drop a log, read the report, run the experiment. Loopback only, nothing kept on disk."""
