"""What is added to a planned budget: the bar chart, what was solved for a wish, and what-ifs."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from oortriage.budget.plan import Budget
from oortriage.budget.plan_parts import plan_parts
from oortriage.budget.solution import Solution
from oortriage.budget.what_if import Row
from oortriage.report._interface import Style
from oortriage.report.budget import budget_report
from oortriage.report.budget_log import solution_words, table_lines, table_markdown, wrapped
from oortriage.report.draw.budget_bar import budget_bar_svg, budget_bar_text
from oortriage.report.escape import markdown


def plan_report(result: Budget, solutions: Sequence[Solution], rows: Sequence[Row], name: str, style: Style) -> str:
    """Render a budget as ``text``, ``json`` or ``markdown``; JSON has ``solutions`` and ``what_if`` where asked for."""
    if name == "json":
        more = {"solutions": list(solutions), "what_if": list(rows)}
        known = {key: msgspec.to_builtins(value) for key, value in more.items() if value}
        return json.dumps({**msgspec.to_builtins(result), **known}, indent=2) + "\n"
    text = budget_report(result, name, style)
    if name == "markdown":
        if solutions:
            listed = [f"- {markdown(solution_words(one))}" for one in solutions]
            text += "\n".join(["", "**What works**", "", *listed, ""])
        return text + ("\n" + "\n".join(table_markdown(rows)) + "\n" if rows else "")
    lines = []
    if result.memory is not None and (parts := plan_parts(result.memory)):
        lines += ["", budget_bar_text(parts, result.memory.requested, style)]
    if solutions:
        lines += ["", "What works", *wrapped([solution_words(one) for one in solutions], max(40, style.width), "  ")]
    if rows:
        lines += ["", *table_lines(rows)]
    return text + "\n".join([*lines, ""]) if lines else text


def plan_svg(result: Budget) -> str:
    """Draw a planned budget; empty where the card's memory was not worked out."""
    if result.memory is None:
        return ""
    parts = plan_parts(result.memory)
    return budget_bar_svg(parts, result.memory.requested) if parts else ""
