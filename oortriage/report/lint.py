"""Reports of lint: text, JSON, SARIF, Markdown. Texts of inputs are escaped; text says no more than JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from typing import Any

import msgspec

from oortriage.lint.checks import CHECKS
from oortriage.lint.finding import Finding, Lint
from oortriage.lint.reference import reference
from oortriage.report._interface import Style
from oortriage.report.escape import code_span, markdown, visible
from oortriage.report.sarif import MOST_RESULTS, SCHEMA
from oortriage.report.sarif_result import BASE, artifact, plain
from oortriage.version import __version__

_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_COLORS = {"error": "\x1b[31m", "warning": "\x1b[33m", "info": "\x1b[36m"}
_END = "\x1b[0m"


def lint_report(result: Lint, form: str, style: Style) -> str:
    """Render a result as text, json, sarif or markdown."""
    if form == "json":
        return _json(result)
    if form == "sarif":
        return _sarif(result)
    return _markdown(result) if form == "markdown" else _text(result, style)


def lint_schema() -> dict[str, Any]:
    """Return the JSON Schema of lint's JSON."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "oortriage lint",
        **msgspec.json.schema(Lint),
    }


def check_list(form: str) -> str:
    """List the checks: a table, JSON, or the reference page."""
    if form == "markdown":
        return reference()
    rows = [
        {"code": one.code, "severity": one.severity, "title": one.title, "doc": one.doc, "source": one.source,
         "since": one.since, "until": one.until}
        for one in CHECKS
    ]  # fmt: skip
    if form == "json":
        return json.dumps(rows, indent=2) + "\n"
    return "".join(f"{one['code']}  {one['severity'].ljust(7)}  {one['title']}\n" for one in rows)


def _json(result: Lint) -> str:
    built = msgspec.to_builtins(result)
    for finding in built["findings"]:
        if not finding["file"]:
            del finding["file"], finding["line"]
    return json.dumps(built, indent=2) + "\n"


def _text(result: Lint, style: Style) -> str:
    lines: list[str] = []
    for one in result.inputs:
        named = f"{visible(one.name)}: " if one.name else ""
        lines.append(f"{named}vLLM {visible(one.vllm)} ({visible(one.origin)})")
        lines += [f"  note: {visible(note)}" for note in one.notes]
        if not one.commands:
            lines.append("  note: nothing in it starts vLLM; only variables and other programs were looked at")
        lines += [_finding(finding, style) for finding in result.findings if finding.file == one.name]
    counts = {level: sum(one.severity == level for one in result.findings) for level in _LEVELS}
    lines.append(", ".join(f"{count} {level}" for level, count in counts.items()))
    return "\n".join(lines) + "\n"


def _finding(finding: Finding, style: Style) -> str:
    where = f"{finding.line}: " if finding.line else ""
    severity = f"{_COLORS[finding.severity]}{finding.severity}{_END}" if style.color else finding.severity
    head = f"  {where}{severity} {finding.code} {visible(finding.subject)}".replace("\n", "\\n")
    body = textwrap.wrap(
        visible(finding.message).replace("\n", "\\n") + f" [{finding.source}]", max(40, style.width - 6),
        initial_indent="      ", subsequent_indent="      ", break_long_words=False,
    )  # fmt: skip
    return "\n".join([head, *body])


def _markdown(result: Lint) -> str:
    lines: list[str] = []
    for one in result.inputs:
        title = f"{code_span(one.name)}: vLLM {markdown(one.vllm)}" if one.name else f"vLLM {markdown(one.vllm)}"
        lines += [f"### {title}", "", markdown(one.origin), ""]
        found = [finding for finding in result.findings if finding.file == one.name]
        if not found:
            lines += ["Nothing was found.", ""]
            continue
        lines += ["| line | severity | code | subject | message |", "|---|---|---|---|---|"]
        lines += [
            f"| {each.line or ''} | {each.severity} | {each.code} | {_cell(each.subject)} | {markdown(each.message)} |"
            for each in found
        ]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return code_span(text).replace("|", "\\|")


def _sarif(result: Lint) -> str:
    used = {one.code for one in result.findings}
    rules = [
        {
            "id": one.code,
            "shortDescription": {"text": plain(one.title)},
            "fullDescription": {"text": plain(one.doc)},
            "help": {"text": f"{plain(one.doc)}\n\nSource: {plain(one.source)}"},
            "defaultConfiguration": {"level": _LEVELS[one.severity]},
        }
        for one in CHECKS
        if one.code in used
    ]
    run = {
        "tool": {"driver": {"name": "oortriage", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {BASE: {"description": {"text": "The folder in which oortriage ran."}}},
        "results": _results(result.findings[:MOST_RESULTS]),
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _results(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    made = []
    for one in findings:
        result: dict[str, Any] = {
            "ruleId": one.code,
            "level": _LEVELS[one.severity],
            "message": {"text": plain(f"{one.subject}: {one.message}")},
            "properties": {"subject": plain(one.subject), "since": one.since, "until": one.until},
        }
        if one.file:
            place: dict[str, Any] = {"artifactLocation": artifact(one.file)}
            place["region"] = {"startLine": max(1, one.line)}
            result["locations"] = [{"physicalLocation": place}]
        made.append(result)
    return made
