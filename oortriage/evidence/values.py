"""Captured text to numbers: the many ways a log writes a size, and no guess where it is unclear."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

KIB = 1024
MIB = 1024**2
GIB = 1024**3

# Two raised to 64 bytes printed as GiB: PyTorch's and NVML's "not available", never a size.
SENTINEL_BYTES = 2**60

_UNIT = {
    "": 1,
    "b": 1,
    "byte": 1,
    "bytes": 1,
    "k": KIB,
    "kb": KIB,
    "kib": KIB,
    "m": MIB,
    "mb": MIB,
    "mib": MIB,
    "g": GIB,
    "gb": GIB,
    "gib": GIB,
    "t": 1024**4,
    "tb": 1024**4,
    "tib": 1024**4,
}

_WHOLE = re.compile(r"^[-+]?\d+$")
_GROUPED_COMMA = re.compile(r"^[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?$")
_GROUPED_DOT = re.compile(r"^[-+]?\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?$")
_DECIMAL_COMMA = re.compile(r"^[-+]?\d+,\d+$")
_SIZE = re.compile(r"^\s*([-+]?[\d.,_\u00a0\u202f]+(?:[eE][-+]?\d+)?)\s*([A-Za-z]*)\s*$")


def parse_number(text: str) -> float:
    """Read a number as logs write it.

    Thousands commas (``102,400``), a decimal comma (``1900,00``), underscores and exponents are
    understood. ``1,024`` is one thousand and twenty-four: three digits after a single comma are a
    thousands group in every message format known to the rules.

    Raises:
        ValueError: the text is not a number, or one without end (``inf``, ``1e999``).
    """
    return _finite(float(_plain(text)), text)


def _plain(text: str) -> str:
    """Write a number as Python does: no groups, a point for the decimals."""
    cleaned = text.strip().replace("\u00a0", "").replace("\u202f", "").replace("_", "")
    cleaned = cleaned.rstrip(".,")
    if _GROUPED_COMMA.match(cleaned):
        cleaned = cleaned.replace(",", "")
    elif _GROUPED_DOT.match(cleaned):
        cleaned = cleaned.replace(".", "").replace(",", ".")
    elif _DECIMAL_COMMA.match(cleaned):
        cleaned = cleaned.replace(",", ".")
    return cleaned


def _finite(number: float, text: str) -> float:
    if not math.isfinite(number):
        raise ValueError(f"not a finite number: {text!r}")
    return number


def _times(text: str, factor: int) -> int:
    """Read a number and multiply it; a whole one stays exact beyond the 53 bits of a float.

    Absurd requests print 2**64 and its neighbours, and a figure is cited to the byte.
    """
    rounded = round(_finite(parse_number(text) * factor, text))
    plain = _plain(text)
    return int(plain) * factor if _WHOLE.match(plain) else rounded


def parse_size(text: str, default_unit: str = "") -> int:
    """Read a size with its unit into bytes.

    ``GB`` and ``GiB`` are both 2**30: every framework covered here divides by 1024 whatever it
    prints. A missing unit means ``default_unit`` (bytes unless said otherwise).

    Raises:
        ValueError: not a size, or a unit that is not a memory unit.
    """
    found = _SIZE.match(text)
    if not found:
        raise ValueError(f"not a size: {text!r}")
    number, unit = found.groups()
    factor = _UNIT.get((unit or default_unit).lower())
    if factor is None:
        raise ValueError(f"not a memory unit: {unit!r}")
    return _times(number, factor)


def _scaled(factor: int) -> Callable[[str], int]:
    return lambda text: _times(text, factor)


def _bits(text: str) -> int:
    return (_times(text, 1) + 4) // 8


def _hexadecimal(text: str) -> int:
    return int(text, 16)


#: Capture types a rule may name. Sizes come out in bytes; the rest in their own unit.
CONVERTERS: dict[str, Callable[[str], int | float | str]] = {
    "bytes": _scaled(1),
    "size": parse_size,
    "hex": _hexadecimal,
    "bits": _bits,
    "kib": _scaled(KIB),
    "mib": _scaled(MIB),
    "gib": _scaled(GIB),
    "int": _scaled(1),
    "float": parse_number,
    "text": str.strip,
}


def format_bytes(count: int) -> str:
    """Write a byte count for a person: exact below 1 MiB, two decimals with a binary unit above."""
    sign, size = ("-", -count) if count < 0 else ("", count)
    if size < MIB:
        return f"{sign}{size:,} B"
    for unit, factor in (("TiB", 1024**4), ("GiB", GIB), ("MiB", MIB)):
        if size >= factor:
            return f"{sign}{size / factor:,.2f} {unit}"
    return f"{sign}{size:,} B"
