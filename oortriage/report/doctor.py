"""What the doctor found, for people and for scripts; text says no more than JSON."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import msgspec

from oortriage.doctor.finding import Examination, Finding, NotChecked
from oortriage.doctor.sizes import size
from oortriage.report.escape import shorten, visible
from oortriage.report.redaction.families import assignments, private_keys, tokens, web
from oortriage.report.redaction.redactor import Redactor

_WIDEST_VALUE = 160


def doctor_report(examination: Examination, name: str, width: int = 80) -> str:
    """Render an examination as ``text`` or ``json``; secrets that stand in values are replaced in both."""
    shown = without_secrets(examination)
    if name == "json":
        return json.dumps(msgspec.to_builtins(shown), indent=2) + "\n"
    lines = [summary(shown), ""]
    for one in shown.findings:
        lines += _finding(one, width)
    lines += ["Facts"]
    for check, facts in shown.facts.items():
        lines += _facts(check, facts)
    if shown.not_checked:
        lines += ["", "What could not be looked at"]
        lines += _not_checked(shown.not_checked, width)
    return "\n".join(visible(line) for line in lines) + "\n"


def doctor_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of what ``oortriage doctor --format json`` writes."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "oortriage doctor, version 1",
        **msgspec.json.schema(Examination),
    }


def without_secrets(examination: Examination) -> Examination:
    """Replace tokens, keys and logins in every value."""
    families = (*private_keys.PATTERNS, *web.PATTERNS, *tokens.PATTERNS, *assignments.PATTERNS)
    return Redactor(families).struct(examination)


def summary(examination: Examination) -> str:
    """Say in one line what was found, and first of all whether there is a GPU."""
    counts = {
        severity: sum(one.severity == severity for one in examination.findings)
        for severity in ("error", "warning", "note")
    }
    parts = [f"{count} {word}{'s' if count > 1 else ''}" for word, count in counts.items() if count]
    driver = examination.facts.get("driver", {})
    cards = examination.facts.get("cards", {}).get("cards", [])
    if cards:
        names = sorted({str(one["name"]) for one in cards})
        head = f"{len(cards)} x {' and '.join(names)}"
        head += f", driver {driver.get('driver')}, CUDA up to {driver.get('cuda_ceiling')}"
    elif driver.get("signs"):
        head = "There is an NVIDIA GPU here, and its driver does not answer"
    else:
        head = f"No NVIDIA GPU here ({driver.get('unavailable', 'nothing was found')}); what needs none was checked"
    return f"{head}: {', '.join(parts) if parts else 'nothing is wrong'}."


def _not_checked(missed: tuple[NotChecked, ...], width: int) -> list[str]:
    """Say what was not looked at, once for each reason."""
    by_reason: dict[str, list[str]] = {}
    for one in missed:
        by_reason.setdefault(one.reason, []).append(one.what)
    lines = []
    for reason, parts in by_reason.items():
        lines += _indented(f"not checked: {reason}", width)
        lines += [f"    - {visible(part)}" for part in parts]
    return lines


def _finding(one: Finding, width: int) -> list[str]:
    wrapped = [
        *textwrap.wrap(f"{one.code} {one.severity}: {one.title}", width),
        *_indented(f"{one.subject}: {one.message}", width),
        *_indented(f"remedy: {one.remedy}", width),
        *_indented(f"source: {one.source}", width),
        "",
    ]
    return [visible(line) for line in wrapped]


def _indented(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent="  ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def _facts(check: str, facts: dict[str, Any]) -> list[str]:
    """Write facts one a line; what was not told is left out, as the JSON has it."""
    lines = [f"  {check}"]
    for name, value in facts.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines.append(f"    {_label(name)}:")
            lines += [f"      {_row(one)}" for one in value]
        elif isinstance(value, dict):
            lines += [f"    {_label(name)}: {_label(inner)} {_value(inner, kept)}" for inner, kept in value.items()]
        elif value not in (None, "", [], ()):
            lines.append(f"    {_label(name)}: {_value(name, value)}")
    return lines if len(lines) > 1 else []


def _row(one: dict[str, Any]) -> str:
    return ", ".join(
        f"{_label(name)} {_value(name, value)}" for name, value in one.items() if value not in (None, "", [], ())
    )


def _label(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ") if name.islower() else name


def _value(name: str, value: Any) -> str:
    if name.endswith("_bytes") and isinstance(value, int):
        return size(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return shorten(", ".join(_row(one) if isinstance(one, dict) else str(one) for one in value), _WIDEST_VALUE)
    if isinstance(value, dict):
        return shorten(_row(value), _WIDEST_VALUE)
    return shorten(str(value), _WIDEST_VALUE)
