"""Releases of vLLM as logs name them, compared; a log may name none, or a build's own."""

from __future__ import annotations

import re


def numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version (``0.6.3.post1`` gives ``(0, 6, 3)``); () where there is none."""
    found = re.match(r"v?(\d{1,6}(?:\.\d{1,6})*)", version.strip())
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def since(version: str, first: str) -> bool:
    """Tell whether a version is ``first`` or later; an unknown one is not."""
    have, bound = numbers(version), numbers(first)
    return bool(have) and _padded(have, len(bound)) >= bound


def before(version: str, bound: str) -> bool:
    """Tell whether a version is earlier than ``bound``; an unknown one is not."""
    return bool(numbers(version)) and not since(version, bound)


def _padded(have: tuple[int, ...], length: int) -> tuple[int, ...]:
    return have + (0,) * (length - len(have))
