"""A size on a command line, read as vLLM reads ``--kv-cache-memory-bytes``."""

from __future__ import annotations

import re
from decimal import Decimal

from oortriage.errors import UsageError

#: vLLM's own suffixes: small letters are decimal, large ones binary
#: (vLLM 0.17.1 engine/arg_utils.py human_readable_int).
_FACTORS = {
    "": 1, "b": 1,
    "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12,
    "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
_AMBIGUOUS = {"KB": "K", "MB": "M", "GB": "G", "TB": "T"}
_SIZE = re.compile(r"\s*(\d{1,20}(?:\.\d{1,12})?)\s*([A-Za-z]*)\s*", re.ASCII)
_MOST = 2**60


def parse_size(text: str, option: str) -> int:
    """Read a size in bytes: ``5GiB``, ``5G`` (2**30), ``5g`` (10**9), ``5368709120``.

    Raises:
        UsageError: no size, or a unit that people mean in two ways; ``option`` is in the message.
    """
    shown = text[:40]
    found = _SIZE.fullmatch(text)
    if not found:
        raise UsageError(f"{option} {shown!r}: not a size; write 5GiB, 5G (2**30), 5g (10**9) or a number of bytes")
    number, unit = found.groups()
    ambiguous = _AMBIGUOUS.get(unit.upper())
    if ambiguous:
        small = ambiguous.lower()
        raise UsageError(f"{option} {shown!r}: write {number}{ambiguous}iB (binary) or {number}{small} (decimal)")
    if unit.lower().endswith("ib"):
        unit = unit[0].upper() + "iB"
    factor = _FACTORS.get(unit)
    if factor is None:
        raise UsageError(
            f"{option} {shown!r}: no such unit; there are k, m, g, t (decimal) and K, M, G, T or GiB (binary)"
        )
    if unit in ("K", "M", "G", "T") and "." in number:
        raise UsageError(f"{option} {shown!r}: vLLM takes no decimals before {unit}; write {number}{unit}iB here")
    size = int(Decimal(number) * factor)
    if size > _MOST:
        raise UsageError(f"{option} {shown!r}: more than any machine has")
    return size
