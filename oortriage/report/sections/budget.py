"""The engine's memory decision, rebuilt from the log: a picture, the figures behind it, and what follows."""

from __future__ import annotations

from oortriage.report._interface import Style
from oortriage.report.budget_words import check_words, figure_rows, share_end, solution_lines, use_words
from oortriage.report.document import Block, Figure, Items, Table
from oortriage.report.draw.budget_bar import TITLE, budget_bar_svg, budget_bar_text, sentence
from oortriage.report.material import Material


def budget_blocks(material: Material) -> list[Block]:
    """Show the budget of the run that failed; nothing where the log prints none."""
    view = material.diagnosis.budget
    if view is None:
        return []
    blocks: list[Block] = []
    if view.parts:
        share = share_end(view)
        drawn = budget_bar_text(view.parts, share, Style(width=90))
        blocks.append(Figure(budget_bar_svg(view.parts, share), f"{TITLE}: {sentence(view.parts, share)}.", drawn))
    if rows := figure_rows(view):
        blocks.append(Table(["figure", "value", "whose word", "from"], rows, numeric=[1]))
    said = [check_words(one) for one in view.checks]
    used = use_words(view.use)
    said += [f"the KV cache: {used}"] if used else []
    said += [f"solved: {one}" for one in solution_lines(view)]
    said += [f"note: {one}" for one in view.notes]
    return [*blocks, *([Items(said)] if said else [])]
