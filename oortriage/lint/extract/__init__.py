"""Reads what a vLLM release accepts out of its source text, by syntax; nothing of it is ever imported or run."""
