"""The release. It stands alone so that any room may name it without reaching the rooms above."""

__version__ = "0.1.0"
