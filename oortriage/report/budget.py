"""Reports of a memory budget: text, JSON, Markdown. Text says no more than JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from typing import Any

import msgspec
from rich.cells import cell_len

from oortriage.budget.figure import Figure
from oortriage.budget.plan import Budget
from oortriage.evidence.values import format_bytes
from oortriage.report._interface import Style
from oortriage.report.escape import markdown, visible

#: The terms of the card's budget, in the order in which they are taken off.
_TERMS = (
    ("total", "card"),
    ("requested", "budget"),
    ("weights", "weights"),
    ("activation", "profile peak"),
    ("non_torch", "outside torch"),
    ("others", "other processes"),
    ("graphs", "CUDA graphs"),
    ("outside", "outside the budget"),
)
_KV = (
    ("kv_memory", "KV memory"),
    ("block_size", "block size"),
    ("kv_bytes_per_token", "KV a token"),
    ("num_blocks", "KV blocks"),
    ("kv_tokens", "KV tokens, as logged"),
    ("blocks_per_request", "blocks a request"),
    ("needed_bytes", "asked for at start"),
    ("max_concurrency", "concurrency"),
    ("largest_max_model_len", "longest request"),
)


def budget_report(result: Budget, name: str, style: Style) -> str:
    """Render a budget as ``text``, ``json`` or ``markdown``."""
    writers: dict[str, Callable[[Budget, Style], str]] = {"text": _text, "json": _json, "markdown": _markdown}
    return writers[name](result, style)


def budget_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of what ``oortriage budget --format json`` writes."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "oortriage budget, version 1",
        **msgspec.json.schema(Budget),
    }


def _json(result: Budget, style: Style) -> str:  # noqa: ARG001  every format is called alike
    return json.dumps(msgspec.to_builtins(result), indent=2) + "\n"


def _text(result: Budget, style: Style) -> str:
    width = max(40, style.width)
    lines = _wrapped([f"{result.sentence}.", _head(result)], width)
    rows = [*_rows(result, _TERMS, result.memory), *_rows(result, _KV, result)]
    columns = [max(cell_len(row[column]) for row in rows) for column in range(2)]
    lines.append("")
    for title, value, how in rows:
        lines += _row(title.ljust(columns[0]), value.rjust(columns[1]), visible(how), width)
    tail = [*_groups(result), *(f"trap: {one}" for one in result.traps), *(f"note: {one}" for one in result.notes)]
    return "\n".join([*lines, "", *_wrapped(tail, width)]).rstrip() + "\n"


def _row(title: str, value: str, how: str, width: int) -> list[str]:
    """Set one figure: how it came about stands beside it where there is room, else below."""
    start = f"{title}  {value}  "
    room = width - cell_len(start)
    if len(how) <= room:
        return [start + how]
    provenance, _, rest = how.partition(": ")
    indent = " " * 4
    return [
        start + provenance,
        *textwrap.wrap(rest, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False),
    ]


def _markdown(result: Budget, style: Style) -> str:  # noqa: ARG001  every format is called alike
    rows = [*_rows(result, _TERMS, result.memory), *_rows(result, _KV, result)]
    lines = [f"**{markdown(result.sentence)}.**", "", markdown(_head(result)), "", "| | | |", "| --- | ---: | --- |"]
    lines += ["| " + " | ".join(markdown(cell) for cell in row) + " |" for row in rows]
    tail = [*_groups(result), *(f"trap: {one}" for one in result.traps), *(f"note: {one}" for one in result.notes)]
    lines += ["", *(f"- {markdown(one)}" for one in tail)] if tail else []
    return "\n".join(lines) + "\n"


def _head(result: Budget) -> str:
    ranks = f", TP {result.tp}" + (f", PP {result.pp}" if result.pp > 1 else "")
    ranks += f", {result.context_ranks} ranks a context" if result.context_ranks > 1 else ""
    rules = f" (rules of {result.rules_from})" if result.rules_from != result.vllm else ""
    step = f"{result.max_num_batched_tokens.value:,.0f} tokens and {result.max_num_seqs.value:,.0f} sequences a step"
    name = f"{result.model}: {result.architecture}" if result.architecture else result.model
    return (
        f"{name}, vLLM {result.vllm}{rules}, engine {result.engine}, {result.dtype}, "
        f"KV cache {result.kv_cache_dtype}{ranks}, {result.max_model_len:,} tokens a request, {step}"
    )


def _rows(result: Budget, names: tuple[tuple[str, str], ...], holder: Any) -> list[tuple[str, str, str]]:
    rows = []
    for field, title in names:
        figure = getattr(holder, field, None) if holder is not None else None
        if not isinstance(figure, Figure):
            continue
        how = f"{figure.provenance}: {figure.how}" if figure.how else figure.provenance
        if field == "graphs" and result.memory is not None and not result.memory.graphs_charged:
            how += "; beside the budget, not in it"
        rows.append((title, _value(figure), how))
    return rows


def _value(figure: Figure) -> str:
    shown = _number(figure.value, figure.unit)
    if figure.low is None or figure.high is None or figure.low == figure.high:
        return shown
    low, high = _number(figure.low, figure.unit), _number(figure.high, figure.unit)
    if low.split()[1:] == high.split()[1:]:
        low = low.split()[0]
    return f"{shown} ({low} to {high})"


def _number(value: float, unit: str) -> str:
    if unit == "bytes":
        return format_bytes(int(value))
    if unit == "requests":
        return f"{value:,.2f}x"
    return f"{value:,.0f} {unit}"


def _groups(result: Budget) -> list[str]:
    if not result.hybrid:
        return []
    lines = []
    for row in result.groups:
        window = f", window {row.window:,}" if row.window else ""
        count = f"{row.groups} groups" if row.groups > 1 else "1 group"
        lines.append(
            f"{count} of {row.layers} {row.kind} layers{window}: pages of {row.page_bytes:,} bytes, "
            f"{row.block_size:,} tokens"
        )
    return lines


def _wrapped(lines: list[str], width: int) -> list[str]:
    wrapped: list[str] = []
    for line in lines:
        wrapped += textwrap.wrap(
            visible(line), width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    return wrapped
