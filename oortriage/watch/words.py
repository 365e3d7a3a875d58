"""Bytes, rates and times in words, as alerts and tables say them."""

from __future__ import annotations

_MIB, _GIB = 1 << 20, 1 << 30


def size(count: float) -> str:
    """Return bytes as ``3.1 GiB`` or ``41 MiB``."""
    if abs(count) >= _GIB:
        return f"{count / _GIB:,.1f} GiB"
    return f"{count / _MIB:,.0f} MiB" if abs(count) >= 10 * _MIB else f"{count / _MIB:,.1f} MiB"


def rate(per_second: float) -> str:
    """Return bytes a second as ``41 MiB/min``."""
    return f"{size(per_second * 60)}/min"


def interval(low: float, high: float) -> str:
    """Return an interval of rates, in bytes a second, as ``38 to 44 MiB/min``."""
    unit, name = (_GIB, "GiB") if max(abs(low), abs(high)) * 60 >= _GIB else (_MIB, "MiB")
    digits = 0 if abs(high - low) * 60 >= 2 * unit else 1 if abs(high - low) * 60 >= 0.2 * unit else 2
    return f"{low * 60 / unit:,.{digits}f} to {high * 60 / unit:,.{digits}f} {name}/min"


def duration(seconds: float) -> str:
    """Return seconds as ``45 s``, ``12 min``, ``7.5 h`` or ``3.2 days``."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172800 else f"{seconds / 86400:,.1f} days"
