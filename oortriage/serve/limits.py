"""What the page takes and keeps: sizes in bytes, times in seconds."""

from __future__ import annotations

import msgspec

MIB = 1 << 20


class Limits(msgspec.Struct, frozen=True):
    """Bounds of one server. What is over one is refused; results over theirs are forgotten, the oldest first."""

    #: One upload, as it comes over the wire.
    upload_bytes: int = 512 * MIB
    #: The same log after gzip, zstd or xz are undone: a small file may hold a terabyte.
    expanded_bytes: int = 2048 * MIB
    #: Logs that are received or read at one time.
    uploads: int = 4
    results: int = 20
    age_seconds: float = 3600.0
    #: A request with a small body of JSON.
    json_bytes: int = 4096
