"""Sizes in words."""

from __future__ import annotations


def size(count: int | None) -> str:
    """Write bytes as GiB, as MiB below one, as KiB below one of these."""
    if count is None:
        return "unknown"
    if count >= 1 << 30:
        return f"{count / (1 << 30):,.2f} GiB"
    if count >= 1 << 20:
        return f"{count / (1 << 20):,.1f} MiB"
    return f"{count / 1024:,.0f} KiB" if count % 1024 == 0 else f"{count:,} B"
