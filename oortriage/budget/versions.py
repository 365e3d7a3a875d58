"""What differs between vLLM releases in the memory decision, as data; each fact names its source."""

from __future__ import annotations

import msgspec

Release = tuple[int, ...]


class Fact(msgspec.Struct, frozen=True):
    """A value that holds from ``since`` to ``until`` (inclusive; empty: no end); ``source`` is a vLLM file."""

    value: str
    since: str
    until: str
    source: str


def release(version: str) -> Release:
    """Turn ``0.6.3.post1`` into something that compares.

    Raises:
        UsageError: it is no version.
    """
    raise NotImplementedError


def rules_from(version: str) -> str:
    """Name the newest release read whose rules hold for ``version`` (the version itself, if it was read)."""
    raise NotImplementedError


def default_utilization(version: str) -> float:
    """Return the default of ``--gpu-memory-utilization``."""
    raise NotImplementedError


def block_size_choices(version: str) -> tuple[int, ...]:
    """Return what ``--block-size`` takes; empty: any positive number."""
    raise NotImplementedError


def kv_dtypes(version: str) -> tuple[str, ...]:
    """Return what ``--kv-cache-dtype`` takes."""
    raise NotImplementedError
