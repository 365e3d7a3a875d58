"""Reports of a budget rebuilt from a log, of what was solved, and of what-ifs: text, JSON, Markdown."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.cells import cell_len

from oortriage.budget.solution import Solution
from oortriage.budget.what_if import Row
from oortriage.report._interface import Style
from oortriage.report.budget_words import check_words, figure_rows, share_end, use_words, value_words
from oortriage.report.draw.budget_bar import budget_bar_text
from oortriage.report.escape import markdown, visible
from oortriage.triage.diagnosis import BudgetView

SCHEMA_VERSION = 1


class LogReport(msgspec.Struct, frozen=True, omit_defaults=False):
    """What ``oortriage budget --from-log`` writes. ``verdict`` answers the wish; ``what_if`` only where asked."""

    schema_version: int
    file: str
    model: str
    verdict: str
    sentence: str
    budget: BudgetView
    what_if: list[Row] = []

    @property
    def exit_code(self) -> int:
        """0 what is wished for works as it is, 1 it does not, 3 the log does not tell."""
        return {"works": 0, "does_not": 1}.get(self.verdict, 3)


def log_report(result: LogReport, name: str, style: Style) -> str:
    """Render as ``text``, ``json`` or ``markdown``."""
    if name == "json":
        return json.dumps(msgspec.to_builtins(result), indent=2) + "\n"
    return _markdown(result) if name == "markdown" else _text(result, style)


def log_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of ``oortriage budget --from-log --format json``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "oortriage budget from a log, version 1",
        **msgspec.json.schema(LogReport),
    }


def solution_words(one: Solution) -> str:
    """Say one solution: the flag, what it does, and whether it rests on a guess."""
    said = f"{one.change}: {one.effect}" if one.change else one.effect
    cost = f" (cost: {one.cost})" if one.cost else ""
    return said + cost + (" (estimated)" if one.provenance == "estimated" else "")


def _head(result: LogReport) -> str:
    view = result.budget
    parts = [f"vLLM {view.version}" if view.version else "vLLM, release not named", view.engine, result.model]
    return ", ".join(one for one in parts if one)


def _tail(result: LogReport) -> list[str]:
    view = result.budget
    used = use_words(view.use)
    agree = sum(one.agrees for one in view.checks)
    said = [f"{agree} of {len(view.checks)} printed figures are the sum of the others"] if view.checks else []
    said += [check_words(one) for one in view.checks if not one.agrees]
    said += [f"the KV cache: {used}"] if used else []
    return [*said, *(f"note: {one}" for one in view.notes)]


def _text(result: LogReport, style: Style) -> str:
    width = max(40, style.width)
    view = result.budget
    lines = wrapped([f"{result.sentence}.", _head(result)], width)
    if view.parts:
        lines += ["", budget_bar_text(view.parts, share_end(view), Style(width=width))]
    rows = figure_rows(view)
    if rows:
        columns = [max(cell_len(row[at]) for row in rows) for at in (0, 1)]
        lines.append("")
        for title, value, provenance, how in rows:
            start = f"{title}{' ' * (columns[0] - cell_len(title))}  {' ' * (columns[1] - cell_len(value))}{value}  "
            row = textwrap.wrap(
                visible(f"{provenance}: {how}" if how else provenance),
                width,
                initial_indent=start,
                subsequent_indent=" " * min(len(start), width // 2),
                break_on_hyphens=False,
            )
            lines += row or [start.rstrip()]
    if tail := _tail(result):
        lines += ["", *wrapped(tail, width)]
    if view.solutions:
        lines += ["", "What works", *wrapped([solution_words(one) for one in view.solutions], width, "  ")]
    if result.what_if:
        lines += ["", *table_lines(result.what_if)]
    return "\n".join(lines).rstrip() + "\n"


def _markdown(result: LogReport) -> str:
    view = result.budget
    lines = [f"**{markdown(result.sentence)}.**", "", markdown(_head(result)), ""]
    if rows := figure_rows(view):
        lines += ["| figure | value | | from |", "| --- | ---: | --- | --- |"]
        lines += [f"| {' | '.join(markdown(cell) for cell in row)} |" for row in rows]
    if tail := _tail(result):
        lines += ["", *(f"- {markdown(one)}" for one in tail)]
    if view.solutions:
        lines += ["", "**What works**", "", *(f"- {markdown(solution_words(one))}" for one in view.solutions)]
    if result.what_if:
        lines += ["", *table_markdown(result.what_if)]
    return "\n".join(lines) + "\n"


_HEADS = ("share", "length", "block", "KV type", "KV memory", "KV tokens", "concurrency", "starts")


def _refused(rows: Sequence[Row]) -> list[str]:
    """List what the release refuses, each reason once: one bad value spoils many combinations."""
    return list(dict.fromkeys(f"refused: {row.refused}" for row in rows if row.refused))


def _cells(row: Row) -> list[str]:
    """Write the cells of a combination that the release takes."""
    share = f"{row.utilization:g}" if row.utilization else "-"
    fixed = [share, f"{row.max_model_len:,}", f"{row.block_size:,}", row.kv_dtype]
    figures = [
        value_words(one.value, one.unit) if one else "-" for one in (row.kv_memory, row.kv_tokens, row.max_concurrency)
    ]
    starts = {True: "yes", False: "no", None: "open"}[row.starts]
    guess = row.kv_tokens is not None and row.kv_tokens.provenance == "estimated"
    return [*fixed, *figures, f"{starts}, estimated" if guess else starts]


def table_markdown(rows: Sequence[Row]) -> list[str]:
    """Write the table of what-ifs as Markdown, and under it what the release refuses."""
    lines = [f"| {' | '.join(_HEADS)} |", "| ---: | ---: | ---: | --- | ---: | ---: | ---: | --- |"]
    lines += [f"| {' | '.join(markdown(cell) for cell in _cells(row))} |" for row in rows if not row.refused]
    refused = [f"- {markdown(one)}" for one in _refused(rows)]
    return [*lines, *(["", *refused] if refused else [])]


def table_lines(rows: Sequence[Row]) -> list[str]:
    """Write the table of what-ifs for a terminal, and under it what the release refuses."""
    table = [list(_HEADS), *([visible(cell) for cell in _cells(row)] for row in rows if not row.refused)]
    columns = [max(cell_len(line[at]) for line in table) for at in range(len(_HEADS) - 1)]
    lines = []
    for line in table:
        cells = [
            f"{cell}{' ' * (wide - cell_len(cell))}" if at == 3 else f"{' ' * (wide - cell_len(cell))}{cell}"
            for at, (cell, wide) in enumerate(zip(line, columns, strict=False))
        ]
        lines.append("  ".join([*cells, line[-1]]))
    return [*lines, *(visible(one) for one in _refused(rows))]


def wrapped(lines: Sequence[str], width: int, indent: str = "") -> list[str]:
    """Wrap harmless lines to a width, further lines indented."""
    found: list[str] = []
    for line in lines:
        found += textwrap.wrap(
            visible(line),
            width,
            initial_indent=indent,
            subsequent_indent=indent + "  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return found
