"""A short name for a failure that stays the same over line numbers, pids, ranks and times."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

VERSION = "v1"


def fingerprint(parts: Iterable[str | int | float | None]) -> str:
    """Hash the stable parts of a failure; ``v1-`` and twelve hexadecimal digits.

    Args:
        parts: resource, cause, code, kernel, figures and the like, in a fixed order.
    """
    text = "\x1f".join("" if part is None else str(part) for part in parts)
    return f"{VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
