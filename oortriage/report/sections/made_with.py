"""How the report was made: by which version, of which failure, and what was taken out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from oortriage import __version__
from oortriage.report.document import Block, Code, Items
from oortriage.report.material import Material


class Replaced(Protocol):
    """A private value that a placeholder stands for: its kind, and how often it stood in the material."""

    @property
    def kind(self) -> str:
        """What it was: a path, a host, a token."""

    @property
    def count(self) -> int:
        """How often it was replaced."""


def made_with_blocks(material: Material, replaced: Sequence[Replaced]) -> list[Block]:
    """Name the version and the fingerprint, and count what was redacted; never what it was."""
    diagnosis = material.diagnosis
    lines = [f"oortriage {__version__}, diagnosis format {diagnosis.schema_version}", *_redacted(replaced)]
    return [Code(diagnosis.fingerprint, "Fingerprint: the same failure has the same one"), Items(lines)]


def _redacted(replaced: Sequence[Replaced]) -> list[str]:
    kinds: dict[str, list[int]] = {}
    for one in replaced:
        kinds.setdefault(one.kind, []).append(one.count)
    if not kinds:
        return ["redacted: nothing was replaced"]
    return [
        f"redacted: {kind.replace('_', ' ')}, {len(counts)} different, replaced {sum(counts)} times"
        for kind, counts in kinds.items()
    ]
