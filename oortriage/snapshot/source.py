"""Where a snapshot comes from: a pickle or JSON, compressed or not."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import msgspec

from oortriage.errors import InputError
from oortriage.intake.source import read_whole
from oortriage.snapshot.model import Snapshot
from oortriage.snapshot.parse import parse
from oortriage.snapshot.pickle_reader import read_pickle

#: Bytes of a file, unpacked. What is made of a pickle takes up to fifteen times as much memory.
MAX_BYTES = 1 << 30
#: Bytes of JSON, which is read at once: a pickle's steps are counted while it is read, and bound its memory.
MAX_JSON_BYTES = 1 << 28


def read_snapshot(path: str | Path, *, limit_bytes: int = MAX_BYTES) -> Snapshot:
    """Read a memory snapshot; ``-`` is standard input. Nothing in the file is ever executed.

    Raises:
        InputError: the file cannot be read, is too large, is no snapshot, or names a class.
    """
    data = read_whole(path, limit_bytes)
    # Millions of lists and dictionaries are made here and none is garbage: looking for some would double the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        values, form = _values(data)
        return parse(values, form)
    except InputError as problem:
        raise InputError(f"{path}: {problem}") from None
    finally:
        if collecting:
            gc.enable()


def _values(data: bytes) -> tuple[Any, str]:
    if data[:1] == b"\x80":
        return read_pickle(data), f"pickle, protocol {data[1] if len(data) > 1 else '?'}"
    if data[:2] == b"PK":
        raise InputError("a zip archive (what torch.save writes) and no memory snapshot")
    head = data[:100].lstrip()
    if head[:1] in (b"{", b"["):
        if len(data) > MAX_JSON_BYTES:
            raise InputError(
                f"JSON of more than {MAX_JSON_BYTES:,} bytes: give the pickle, which is read in less memory"
            )
        try:
            return msgspec.json.decode(data), "JSON"
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
            raise InputError(f"not valid JSON: {problem}") from None
    if not head:
        raise InputError("empty")
    raise InputError("neither a pickle nor JSON: no memory snapshot of PyTorch")
