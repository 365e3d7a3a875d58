"""The proof of a fix: its layers, the engine's runs, and the bytes before and after."""

from __future__ import annotations

from oortriage.report.document import Block, Items, Paragraph, Table
from oortriage.report.material import Material
from oortriage.report.patch import IMPACT_HEADS, LAYER_WORDS, engine_lines, impact_row, verification_head


def verification_blocks(material: Material) -> list[Block]:
    """Show each layer as passed, failed or not run, and what stands behind it."""
    result = material.verification
    if result is None:
        return []
    layers = [[one.name, LAYER_WORDS[one.status], one.detail] for one in result.layers]
    blocks: list[Block] = [Paragraph(verification_head(result)), Table(["layer", "", "what it shows"], layers)]
    if result.engine:
        head, *runs = engine_lines(result.engine)
        blocks += [Paragraph(head), Items(runs)]
    if result.impact:
        rows = [list(impact_row(one)) for one in result.impact]
        blocks.append(Table(list(IMPACT_HEADS), rows, numeric=[2, 3, 5, 6, 7], caption="Bytes of one block"))
    return [*blocks, *([Items(result.notes)] if result.notes else [])]
