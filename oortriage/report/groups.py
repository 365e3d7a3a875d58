"""Groups of many logs: text, JSON, JSON lines, CSV, Markdown. What a log says is harmless wherever it lands."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from typing import Any

import msgspec

from oortriage.evidence.values import format_bytes
from oortriage.report._interface import Style
from oortriage.report.escape import code_span, markdown, shorten, visible
from oortriage.report.words import RESOURCE_WORDS
from oortriage.triage.clock import Moment
from oortriage.triage.groups import Group, Groups, Spread

_BASIS = {"log": "", "log_without_year": " (its year from the file)", "file": " (time of the file)"}
#: Most values of a fact, figures, and unreadable inputs in a readable format; the data formats have all.
_VALUES, _FIGURES, _FAILED = 5, 6, 20
_PROOF = 160
_COLUMNS = (
    "fingerprint", "resource", "cause", "code", "title", "phase", "confidence", "logs", "occurrences", "first_seen",
    "first_seen_basis", "last_seen", "last_seen_basis", "required_bytes_least", "required_bytes_most",
    "limit_bytes_least", "limit_bytes_most", "gpus", "versions", "example_file", "example_line", "example_text",
)  # fmt: skip


def groups_report(groups: Groups, name: str, style: Style) -> str:
    """Render groups as ``text``, ``json``, ``jsonl``, ``csv`` or ``markdown``."""
    if name == "text":
        return _text(groups, style)
    return {"json": _json, "jsonl": _jsonl, "csv": _csv, "markdown": _markdown}[name](groups)


def groups_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of what ``oortriage group --format json`` writes."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "oortriage group, version 1",
        **msgspec.json.schema(Groups),
    }


def summary_line(groups: Groups) -> str:
    """Say in one line what was read and found."""
    failures = [group for group in groups.groups if group.exit_code]
    fine = sum(group.logs for group in groups.groups if not group.exit_code)
    parts = [
        f"{_some(groups.logs, 'log')}, {_some(len(failures), 'group')} of failures",
        f"{fine:,} without a resource failure" if fine else "",
        f"{len(groups.failed):,} could not be read" if groups.failed else "",
        "interrupted: not all were read" if groups.interrupted else "",
    ]
    return "; ".join(part for part in parts if part)


def headline(group: Group) -> str:
    """Name a group: what ran out, why, and by which rule."""
    words = RESOURCE_WORDS[group.resource]
    cause = group.cause.replace("_", " ") if group.resource != "undetermined" else ""
    return ": ".join(part for part in (words, cause) if part) + (f" [{group.code}]" if group.code else "")


def rows_of(group: Group) -> list[tuple[str, str]]:
    """Tell a group in labelled lines, not escaped; what is not known has none."""
    rows = [
        ("seen", _span(group)),
        ("figures", ", ".join(_spread(name, one) for name, one in list(group.figures.items())[:_FIGURES])),
        ("GPUs", _counts(group.gpus)),
        ("versions", "; ".join(f"{name} {_counts(counts)}" for name, counts in group.versions.items())),
        ("codes", _counts(group.codes) if len(group.codes) > 1 else ""),
    ]
    return [row for row in rows if row[1]]


def _text(groups: Groups, style: Style) -> str:
    lines = [summary_line(groups)]
    for number, group in enumerate(groups.groups, 1):
        lines += ["", f"{number}. {_some(group.logs, 'log')}  {headline(group)}"]
        rows = [("title", group.title), *rows_of(group)] if group.exit_code else [("title", group.title)]
        for label, text in rows:
            lines += textwrap.wrap(
                visible(text),
                max(40, style.width),
                initial_indent=f"   {label:<9} ",
                subsequent_indent=" " * 13,
                break_long_words=False,
                break_on_hyphens=False,
            )
        lines.append(f"   {'example':<9} {visible(_place(group))}")
        if group.example.text and group.exit_code:
            lines.append(f"{'':13}{shorten(visible(group.example.text), max(40, style.width) - 13)}")
        lines.append(f"   {'group':<9} {visible(group.key)}")
    if groups.failed:
        lines += ["", "Not read:"]
        lines += [f"  {visible(one.file)}: {visible(one.reason)}" for one in groups.failed[:_FAILED]]
        lines += _more(len(groups.failed) - _FAILED, "  ")
    return "\n".join(lines) + "\n"


def _json(groups: Groups) -> str:
    return json.dumps(msgspec.to_builtins(groups), indent=2) + "\n"


def _jsonl(groups: Groups) -> str:
    """Write one object a line: the run, the groups, and what could not be read, told apart by ``kind``."""
    run = {
        "kind": "run",
        "schema_version": groups.schema_version,
        "by": groups.by,
        "logs": groups.logs,
        "interrupted": groups.interrupted,
    }
    rows = [
        run,
        *({"kind": "group", **msgspec.to_builtins(group)} for group in groups.groups),
        *({"kind": "failed", **msgspec.to_builtins(one)} for one in groups.failed),
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def _csv(groups: Groups) -> str:
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for group in groups.groups:
        required, limit = group.figures.get("required_bytes"), group.figures.get("limit_bytes")
        row = [
            group.fingerprint if groups.by == "fingerprint" else group.key,
            group.resource,
            group.cause,
            group.code,
            group.title,
            group.phase,
            group.confidence,
            group.logs,
            group.occurrences,
            group.first_seen.time,
            group.first_seen.basis,
            group.last_seen.time,
            group.last_seen.basis,
            required.least if required else "",
            required.most if required else "",
            limit.least if limit else "",
            limit.most if limit else "",
            "; ".join(f"{name} ({count})" for name, count in group.gpus.items()),
            "; ".join(
                f"{name} {value} ({count})" for name, some in group.versions.items() for value, count in some.items()
            ),
            group.example.file,
            group.example.line or "",
            group.example.text,
        ]
        writer.writerow([_cell(value) if isinstance(value, str) else value for value in row])
    return sink.getvalue()


def _cell(text: str) -> str:
    """Keep a spreadsheet from taking a log's text for a formula."""
    shown = visible(text).replace("\n", " ")
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown


def _markdown(groups: Groups) -> str:
    lines = [f"## {markdown(summary_line(groups))}", ""]
    if groups.groups:
        lines += ["| | logs | what | code | first seen | last seen |", "|---:|---:|---|---|---|---|"]
    for number, group in enumerate(groups.groups, 1):
        what = headline(group).removesuffix(f" [{group.code}]")
        seen = f"{markdown(_moment(group.first_seen))} | {markdown(_moment(group.last_seen))}"
        lines.append(f"| {number} | {group.logs:,} | {markdown(what)} | {markdown(group.code)} | {seen} |")
    for number, group in enumerate(groups.groups, 1):
        if not group.exit_code:
            continue
        lines += ["", f"### {number}. {markdown(group.title)}", ""]
        lines += [f"- {label}: {markdown(text)}" for label, text in rows_of(group)]
        lines.append(f"- example: {code_span(_place(group))}")
        if group.example.text:
            lines.append(f"- proof: {code_span(shorten(group.example.text, _PROOF))}")
        lines.append(f"- group: {code_span(group.key)}")
    if groups.failed:
        lines += ["", "### Not read", ""]
        lines += [f"- {code_span(one.file)}: {markdown(one.reason)}" for one in groups.failed[:_FAILED]]
        lines += _more(len(groups.failed) - _FAILED, "- ")
    return "\n".join(lines) + "\n"


def _some(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _more(left: int, lead: str) -> list[str]:
    return [f"{lead}and {left:,} more"] if left > 0 else []


def _place(group: Group) -> str:
    return f"{group.example.file}:{group.example.line}" if group.example.line else group.example.file


def _span(group: Group) -> str:
    first, last = _moment(group.first_seen), _moment(group.last_seen)
    return first if first == last else f"{first} to {last}"


def _moment(moment: Moment) -> str:
    return moment.time + _BASIS.get(moment.basis, "") if moment.time else ""


def _spread(name: str, one: Spread) -> str:
    label = name.removesuffix("_bytes").replace("_", " ")
    amounts = [_amount(name, value) for value in dict.fromkeys((one.least, one.most))]
    return f"{label} {' to '.join(dict.fromkeys(amounts))}"


def _amount(name: str, value: float) -> str:
    if not name.endswith("_bytes"):
        return f"{value:,}"
    return format_bytes(int(value)) if abs(value) >= 2**20 else f"{int(value):,} B"


def _counts(counts: dict[str, int]) -> str:
    shown = [f"{name} ({count:,})" for name, count in list(counts.items())[:_VALUES]]
    return ", ".join([*shown, *_more(len(counts) - _VALUES, "")])
