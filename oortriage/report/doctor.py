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

_WIDEST_VALUE = 400
_UNTOLD: tuple[Any, ...] = (None, "", [], {})


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
        lines += _facts(check, facts, width)
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
        broke = any(one.code == "DR112" for one in examination.findings)
        head = f"There is an NVIDIA GPU here, and {'it could not be read' if broke else 'its driver does not answer'}"
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


def _facts(check: str, facts: dict[str, Any], width: int) -> list[str]:
    """Write facts, one a line; what was not told is left out, as are UUIDs and sources, which the JSON has."""
    lines = []
    for name, value in facts.items():
        if name == "cells":
            lines += [f"    {line}" for line in _matrix(value)]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for one in value:
                lines += _wrapped(f"{_singular(name)} {_row(one)}", width)
                for inner, parts in one.items():
                    if isinstance(parts, list) and parts and isinstance(parts[0], dict):
                        lines += [
                            part for kept in parts for part in _wrapped(f"  {_singular(inner)} {_row(kept)}", width)
                        ]
        elif isinstance(value, dict):
            own = "" if name in ("set", "versions") else f"{_label(name)} "
            for inner, kept in value.items():
                lines += _wrapped(f"{own}{_label(inner)}: {_value(inner, kept)}", width)
        elif value not in _UNTOLD:
            lines += _wrapped(f"{_label(name)}: {_value(name, value)}", width)
    return [f"  {check}", *lines] if lines else []


def _matrix(cells: list[dict[str, Any]]) -> list[str]:
    """Draw the cells as nvidia-smi does: from the row's card to the column's."""
    cards = sorted({one["from"] for one in cells} | {one["to"] for one in cells})
    known = {(one["from"], one["to"]): str(one["cell"]) for one in cells}
    lines = ["".join(f"{text:<9}" for text in ("", *(f"GPU{card}" for card in cards)))]
    for row in cards:
        words = ("X" if row == column else known.get((row, column), "?") for column in cards)
        lines.append("".join(f"{text:<9}" for text in (f"GPU{row}", *words)))
    return [line.rstrip() for line in lines]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        visible(text), width, initial_indent="    ", subsequent_indent="        ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _row(one: dict[str, Any]) -> str:
    """Write what one thing is in one line, without its parts; the number of a card stands first and alone."""
    parts = []
    for name, value in one.items():
        if value in _UNTOLD or name.endswith(("uuid", "source")) or (isinstance(value, list) and value):
            continue
        parts.append(f"{value}:" if name == "index" else f"{_label(name)} {_value(name, value)}")
    return ", ".join(parts).replace(":, ", ": ", 1)


def _singular(name: str) -> str:
    return {"cards": "GPU", "processes": "process", "instances": "instance"}.get(name, name.removesuffix("s"))


def _label(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ") if name.islower() else name


def _value(name: str, value: Any) -> str:
    if name.endswith("_bytes") and isinstance(value, int):
        return size(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return shorten(", ".join(str(one) for one in value), _WIDEST_VALUE)
    if isinstance(value, dict):
        return ", ".join(f"{_label(inner)} {_value(inner, kept)}" for inner, kept in value.items())
    return shorten(str(value), _WIDEST_VALUE)
