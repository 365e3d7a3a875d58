"""vLLM's version numbers in their order; what is none is told as such."""

from __future__ import annotations

import re
from functools import total_ordering

from packaging.version import InvalidVersion, Version

from oortriage.errors import UsageError


@total_ordering
class Release:
    """A version: ``0.6.3.post1`` stands after ``0.6.3``; what a nightly adds after ``+`` does not count."""

    def __init__(self, text: str) -> None:
        """Read it.

        Raises:
            UsageError: it is no version.
        """
        try:
            self._version = Version(re.sub(r"\+.*", "", text.strip()).removeprefix("v"))
        except InvalidVersion as problem:
            raise UsageError(f"--vllm {text}: is no version; write 0.17.1") from problem
        self.text = str(self._version)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Release) and self._version == other._version

    def __lt__(self, other: Release) -> bool:
        return self._version < other._version

    def __hash__(self) -> int:
        return hash(self._version)

    def __repr__(self) -> str:
        return f"Release({self.text!r})"

    def within(self, since: str, until: str) -> bool:
        """Tell whether it lies in a range; an empty end is open."""
        return (not since or self >= Release(since)) and (not until or self <= Release(until))
