"""A source: a library's files by their path in the package, as local files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol

import msgspec

from oortriage.errors import OortriageError


class SourceError(OortriageError):
    """The library's source is not to be had; the message says which ways there are."""


class NoWheelError(SourceError):
    """The package index answers, and has no wheel of the release."""


class SourceSpec(msgspec.Struct, frozen=True):
    """Which source it is; enough to open it in another process.

    ``location`` is a folder (the one that holds the package), or the URL of a wheel or source archive.
    """

    library: str
    version: str
    kind: Literal["folder", "installed", "wheel", "sdist"]
    location: str
    digest: str = ""

    def __str__(self) -> str:
        """Name it for people."""
        where = {
            "folder": f"from {self.location}",
            "installed": "installed",
            "wheel": "its wheel",
            "sdist": "its source archive",
        }
        return f"{self.library} {self.version or '(version unknown)'}, {where[self.kind]}"


class Source(Protocol):
    """A library's files."""

    version: str

    def has(self, path: str) -> bool:
        """Tell whether the package holds a file: ``vllm/envs.py``."""

    def names(self, folder: str) -> list[str]:
        """Return the paths of the files of a folder of the package, not of folders within."""

    def fetch(self, path: str) -> Path:
        """Return a local file of this content.

        Raises:
            SourceError: it cannot be read, or is not what the package's record says.
        """
