"""Sizes in words."""

from __future__ import annotations


def size(count: int | None) -> str:
    """Write bytes as GiB, or as MiB below one."""
    if count is None:
        return "unknown"
    return f"{count / (1 << 30):,.2f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):,.1f} MiB"
