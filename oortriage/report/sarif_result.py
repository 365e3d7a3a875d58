"""One diagnosis as a SARIF result: level, message, places in the log, fingerprints, figures."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from oortriage.report.escape import shorten, visible
from oortriage.triage.diagnosis import Diagnosis, Evidence

#: The name under which a file's places are relative to the folder of the run.
BASE = "%SRCROOT%"

#: Characters of a log line that a result quotes; thousands of results must fit in one upload.
_SNIPPET = 600
_MESSAGE = 4000
_LINK = re.compile(r"\](?=\()")
_PLACEHOLDER = re.compile(r"\{(\d+)\}")

_ROLES = {
    "root": "The line that proves it.",
    "same_failure": "The same failure, told again.",
    "wrapper": "Reports the failure; its cause stands elsewhere.",
    "recovered": "Printed and survived.",
    "context": "Tells about the run.",
}


def rule_id(diagnosis: Diagnosis) -> str:
    """Return the code of the rule; a verdict that no rule gave is named by what it says."""
    if diagnosis.code:
        return diagnosis.code
    return "undetermined" if diagnosis.resource == "undetermined" else diagnosis.status


def level_of(diagnosis: Diagnosis) -> str:
    """Say how bad it is: what was survived is a note, what could not be told a warning."""
    if diagnosis.status == "recovered":
        return "note"
    return "warning" if diagnosis.resource == "undetermined" else "error"


def result_of(diagnosis: Diagnosis, occurrence: int = 1) -> dict[str, Any]:
    """Build the result of a diagnosis.

    Args:
        diagnosis: a diagnosis with a failure.
        occurrence: 1 for the first result of this file with this fingerprint, 2 for the next.
    """
    first, *others = [_location(one) for one in diagnosis.evidence] or [_whole_file(diagnosis.file)]
    related = [{"id": number, **one} for number, one in enumerate(others, 1)]
    hexadecimal = diagnosis.fingerprint.rpartition("-")[2]
    properties: dict[str, Any] = {
        "resource": diagnosis.resource,
        "cause": diagnosis.cause,
        "phase": diagnosis.phase,
        "status": diagnosis.status,
        "confidence": diagnosis.confidence,
        "numbers": diagnosis.numbers,
        "facts": {name: _clean(fact.value) for name, fact in diagnosis.facts.items()},
    }
    result: dict[str, Any] = {
        "ruleId": rule_id(diagnosis),
        "level": level_of(diagnosis),
        "message": {"text": _message(diagnosis, related)},
        "locations": [first],
        "partialFingerprints": {
            "oortriage/v1": diagnosis.fingerprint,
            # The one name that code scanning looks at; it wants a hash and a count.
            "primaryLocationLineHash": f"{hexadecimal}:{occurrence}",
        },
        "properties": properties,
    }
    if related:
        result["relatedLocations"] = related
    return result


def notification(text: str, level: str = "warning", file: str = "") -> dict[str, Any]:
    """Say something about the run itself: an input that is cut, or that could not be read."""
    said: dict[str, Any] = {"level": level, "message": {"text": plain(text) or "?"}}
    if file:
        said["locations"] = [{"physicalLocation": {"artifactLocation": artifact(file)}}]
    return said


def artifact(file: str) -> dict[str, str]:
    """Name a file: relative to the folder of the run where it is below it, else as an absolute URI."""
    path = os.path.normpath(file)
    if Path(path).is_absolute():
        try:
            path = str(Path(path).relative_to(Path.cwd()))
        except (OSError, ValueError):
            return {"uri": Path(path).as_uri()}
    elif path.split(os.sep, 1)[0] == os.pardir:
        return {"uri": Path(os.path.abspath(path)).as_uri()}  # noqa: PTH100 (a link in the path stays one)
    return {"uri": quote(os.fsencode(Path(path).as_posix()), safe="/"), "uriBaseId": BASE}


def plain(text: str) -> str:
    """Write a text so that no reader of SARIF sees a link or a placeholder of the log's in it."""
    return _PLACEHOLDER.sub(r"{{\1}}", _LINK.sub("] ", _clean(text)))


def _message(diagnosis: Diagnosis, related: list[dict[str, Any]]) -> str:
    parts = [plain(diagnosis.summary or diagnosis.title)]
    if diagnosis.prescriptions:
        parts.append("Change first: " + plain(diagnosis.prescriptions[0].change))
    text = shorten("\n".join(parts), _MESSAGE)
    if related:
        lines = [f"[{one['physicalLocation']['region']['startLine']}]({one['id']})" for one in related]
        text += f"\nMore lines: {', '.join(lines)}."
    return text


def _location(evidence: Evidence) -> dict[str, Any]:
    """Point from where the message begins to the end of its line, with the line round it."""
    message = evidence.text[evidence.offset :]
    shown = shorten(message, _SNIPPET)
    start = max(1, evidence.column)
    region = {
        "startLine": max(1, evidence.line),
        "startColumn": start,
        "endLine": max(1, evidence.line),
        "endColumn": start + len(message),
        "snippet": {"text": _clean(shown)},
    }
    place: dict[str, Any] = {"artifactLocation": artifact(evidence.file), "region": region}
    if 0 < evidence.offset < start and len(evidence.text) <= _SNIPPET:
        line = {"startColumn": start - evidence.offset, "snippet": {"text": _clean(evidence.text)}}
        place["contextRegion"] = {**region, **line}
    return {"physicalLocation": place, "message": {"text": _ROLES[evidence.role]}}


def _whole_file(file: str) -> dict[str, Any]:
    """Point at the beginning of a log: code scanning shows no result without a place."""
    region = {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1}
    return {"physicalLocation": {"artifactLocation": artifact(file), "region": region}}


def _clean(value: str | float) -> Any:
    """Write control characters visibly; half of a surrogate pair, which JSON readers refuse, is a question mark."""
    if not isinstance(value, str):
        return value
    return "\n".join(visible(line) for line in value.split("\n")).encode("utf-8", "replace").decode()
