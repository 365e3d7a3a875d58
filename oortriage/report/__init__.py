"""Diagnoses to text, JSON, JSON lines and Markdown: one file a format, one interface."""
