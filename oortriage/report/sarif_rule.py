"""A rule file as a SARIF reporting descriptor: what the message means, why it comes, what to change."""

from __future__ import annotations

import re
from typing import Any

from oortriage.evidence.rule import Rule
from oortriage.report.escape import shorten
from oortriage.report.sarif_result import level_of, plain
from oortriage.triage.diagnosis import Diagnosis

#: What code scanning shows of a description, in characters.
_DESCRIPTION = 1024
_NAME = 255

_SEVERITY = {"error": "error", "warning": "warning", "note": "recommendation"}
#: Verdicts that no rule gives, and what they mean.
_WITHOUT_RULE = {
    "undetermined": (
        "Something failed, and the log does not hold the cause",
        "The lines that tell the cause are missing: cut off, or written elsewhere. Send every process's whole log.",
    ),
    "recovered": (
        "Resource errors were printed and survived",
        "The program caught an error about a resource, or warned of pressure, and went on.",
    ),
}


def descriptor(name: str, rule: Rule | None, example: Diagnosis) -> dict[str, Any]:
    """Describe the rule of a result; one that is unknown here is described by its first diagnosis."""
    level = level_of(example)
    if rule is None:
        title, meaning = _WITHOUT_RULE.get(name, (example.title, example.summary))
        title, meaning = plain(title) or name, plain(meaning) or name
        return _described(name, name, level, title, meaning, meaning, [example.resource])
    meaning = _flat(rule.meaning)
    return _described(
        name, rule.name, level, rule.title, meaning, _help(rule), [rule.resource, rule.software, rule.family]
    )


def _described(
    name: str, label: str, level: str, title: str, meaning: str, text: str, tags: list[str]
) -> dict[str, Any]:
    return {
        "id": name,
        "name": shorten(label, _NAME),
        "shortDescription": {"text": shorten(title, _DESCRIPTION)},
        "fullDescription": {"text": shorten(meaning or title, _DESCRIPTION)},
        "help": {"text": text or title, "markdown": text or title},
        "defaultConfiguration": {"level": level},
        "properties": {
            "tags": list(dict.fromkeys(tag for tag in tags if tag not in ("", "none"))),
            "problem.severity": _SEVERITY[level],
        },
    }


def _help(rule: Rule) -> str:
    """Write the rule's own text in the part of Markdown that reads well as plain text, too."""
    parts = [_flat(rule.meaning)]
    if rule.why:
        parts.append(_flat(rule.why))
    if rule.remedy:
        parts.append("What to change:\n\n" + "\n".join(f"- {_flat(one.change)}" for one in rule.remedy))
    if rule.will_not_help:
        bad = "\n".join(f"- {_flat(one.advice)}: {_flat(one.why)}" for one in rule.will_not_help)
        parts.append("What will not help:\n\n" + bad)
    return "\n\n".join(parts)


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
