"""How the report was made: by which version, of which failure, and what was taken out of it."""

from __future__ import annotations

from collections.abc import Sequence

from oortriage.report.document import Block, Code, Items
from oortriage.report.material import Material
from oortriage.report.redaction import Replacement
from oortriage.version import __version__


def made_with_blocks(material: Material, replaced: Sequence[Replacement]) -> list[Block]:
    """Name the version and the fingerprint, and count what was redacted; never what it was."""
    diagnosis = material.diagnosis
    lines = [f"oortriage {__version__}, diagnosis format {diagnosis.schema_version}", *_redacted(replaced)]
    return [Code(diagnosis.fingerprint, "Fingerprint: the same failure has the same one"), Items(lines)]


def _redacted(replaced: Sequence[Replacement]) -> list[str]:
    kinds: dict[str, list[int]] = {}
    for one in replaced:
        kinds.setdefault(one.kind, []).append(one.count)
    if not kinds:
        return ["redacted: nothing was replaced"]
    return [_counted(kind.replace("_", " "), counts) for kind, counts in kinds.items()]


def _counted(kind: str, counts: Sequence[int]) -> str:
    places = f"{sum(counts):,} place{'s' * (sum(counts) != 1)}"
    return f"redacted: {kind}, {len(counts)} different, in {places}"
