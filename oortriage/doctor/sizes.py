"""Sizes in words."""

from __future__ import annotations

from oortriage.evidence.values import format_bytes


def size(count: int | None) -> str:
    """Write bytes for a person; ``unknown`` for None."""
    return "unknown" if count is None else format_bytes(count)
