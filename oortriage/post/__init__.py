"""The way out: a report to an issue of GitHub, looked at first, redacted, and never without being asked."""
