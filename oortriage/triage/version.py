"""Release numbers compared the way people mean them: ``0.14.1`` is before ``0.15``."""

from __future__ import annotations

import re


def release(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version (``0.6.3.post1`` gives ``(0, 6, 3)``); () if none."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", text.strip())
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def within(version: str, since: str, until: str) -> bool | None:
    """Tell whether a version lies between two bounds, both included; None when it is not known.

    An ``until`` of ``0.14.1`` holds ``0.14.1.post2`` as well; an empty bound is open.
    """
    have = release(version)
    if not have:
        return None if since or until else True
    low, high = release(since), release(until)
    if low and _padded(have, len(low)) < low:
        return False
    return not (high and _padded(have, len(high))[: len(high)] > high)


def _padded(numbers: tuple[int, ...], length: int) -> tuple[int, ...]:
    """Write out the zeros that a version may leave off: ``2.7`` is ``2.7.0``."""
    return numbers + (0,) * (length - len(numbers))
