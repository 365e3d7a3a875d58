"""Puts a report together: every section from the same material, in the order in which a reader wants them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oortriage.report.document import Block, Document, Section, SectionKey
from oortriage.report.material import Material
from oortriage.report.redaction import Replacement
from oortriage.report.sections.advice import change_blocks, will_not_help_blocks
from oortriage.report.sections.budget import budget_blocks
from oortriage.report.sections.experiment import experiment_blocks
from oortriage.report.sections.failure import evidence_blocks, figure_blocks, sentence, title_of, verdict_blocks
from oortriage.report.sections.ledger import ledger_blocks
from oortriage.report.sections.made_with import made_with_blocks
from oortriage.report.sections.not_verified import not_verified_blocks
from oortriage.report.sections.setting import environment_blocks, reproduce_blocks
from oortriage.report.sections.verification import verification_blocks

#: Key, title, importance (the highest is cut first), and what writes it.
_SECTIONS: tuple[tuple[SectionKey, str, int, Callable[[Material], list[Block]]], ...] = (
    ("verdict", "Verdict", 0, verdict_blocks),
    ("figures", "What ran out, and by how much", 0, figure_blocks),
    ("ledger", "Where the bytes are", 4, ledger_blocks),
    ("budget", "The engine's memory budget", 3, budget_blocks),
    ("evidence", "Evidence", 2, evidence_blocks),
    ("experiment", "Experiment", 9, experiment_blocks),
    ("verification", "Verification of the fix", 7, verification_blocks),
    ("change", "What to do", 1, change_blocks),
    ("will_not_help", "What will not help", 6, will_not_help_blocks),
    ("environment", "Environment", 8, environment_blocks),
    ("reproduce", "How to reproduce this", 5, reproduce_blocks),
    ("not_verified", "What was not verified", 3, not_verified_blocks),
)


def compose(material: Material, replaced: Sequence[Replacement] = ()) -> Document:
    """Write the report of a diagnosis and of what was run on top of it.

    Args:
        material: all that there is to say; what was not run is said to be so.
        replaced: what was redacted in the material, by kind and count.

    Returns:
        Sections in the order of :data:`~oortriage.report.document.SectionKey`; one with nothing to say is left out.
    """
    sections = [Section(key, title, write(material), importance) for key, title, importance, write in _SECTIONS]
    sections.append(Section("made_with", "How this was made", made_with_blocks(material, replaced), 0))
    diagnosis = material.diagnosis
    return Document(title_of(diagnosis), sentence(diagnosis), [one for one in sections if one.blocks])
