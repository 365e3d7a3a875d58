"""One file a verb; the only place that knows typer and exit codes."""
