"""Labelled cases: read, made, blessed and scored against the tool's verdicts."""
