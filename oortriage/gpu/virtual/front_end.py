"""Runs Triton's front end once for all cells of a grid that it cannot tell apart.

The front end turns Python into IR on tensors; it takes as long as all passes after it, and most launch
options (``num_warps``, ``num_stages``) mean nothing to it yet. Which options it read is noted while it
runs: a later cell of the same source, constants and types gets the same IR when those options are equal.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

#: IR of one source, with the options that were read to make it; a grid has a few per kernel.
_Kept = list[tuple[dict[str, Any], str]]
_kept: dict[str, _Kept] = {}
#: Sources kept; a child process lives for one job, whose kernels are few.
_MOST = 64


class Watched:
    """Options of a launch that note what is read of them."""

    def __init__(self, options: Any) -> None:
        """Stand before the real options."""
        self._options, self._read = options, dict[str, Any]()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._options, name)
        if not name.startswith("__"):
            self._read[name] = value
        return value

    def read(self) -> dict[str, Any]:
        """Return names and values of what was read."""
        return dict(self._read)


def take(key: str, options: Any, context: Any) -> Any:
    """Return the module of an earlier cell in this context; None when there is none that must be equal.

    Args:
        key: source, constants, types and target.
        options: the launch options of this cell.
        context: the MLIR context to read it into.
    """
    for read, text in _kept.get(key, ()):
        if all(getattr(options, name, None) == value for name, value in read.items()):
            return parse(text, context)
    return None


def keep(key: str, watched: Watched, module: Any) -> None:
    """Keep a module for later cells."""
    if len(_kept) >= _MOST:
        _kept.clear()
    _kept.setdefault(key, []).append((watched.read(), str(module)))


def forget() -> None:
    """Drop what was kept: the next cell runs the front end."""
    _kept.clear()


def parse(text: str, context: Any) -> Any:
    """Read a module from its text; Triton's bindings read files only."""
    from triton._C.libtriton import ir

    handle, path = tempfile.mkstemp(suffix=".mlir")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        module = ir.parse_mlir_module(path, context)
        module.context = context  # as Triton itself does for IR that it reads
        return module
    finally:
        os.unlink(path)  # noqa: PTH108 (a path of ours, made by tempfile)
