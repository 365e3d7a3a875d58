"""Where a library's source files are: one file a kind of place, one interface."""

from __future__ import annotations

from oortriage.kernels.source._interface import Source, SourceError, SourceSpec
from oortriage.kernels.source.find import find_source, open_source

__all__ = ["Source", "SourceError", "SourceSpec", "find_source", "open_source"]
