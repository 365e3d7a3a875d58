"""Events, facts and roots in the words of the public contract."""

from __future__ import annotations

from typing import Literal

from oortriage.evidence.event import Event
from oortriage.intake.line import Line
from oortriage.intake.log import Log
from oortriage.triage.case import Facts
from oortriage.triage.diagnosis import Evidence, Mask, OtherFailure, StatedFact
from oortriage.triage.root import Root

Role = Literal["root", "same_failure", "wrapper", "recovered", "context"]

#: Characters of a line that a quotation keeps.
_TEXT_KEPT = 2000


def evidence(log: Log, root: Root, event: Event) -> list[Evidence]:
    """Quote the root line first, then what belongs to it, then the lines that only report it."""
    quotes = [quote(log, event.line, event.offset, "root", event.code, event.stream)]
    quotes += [
        quote(log, one.line, one.offset, "same_failure", one.code, one.stream)
        for one in (*root.companions[:2], *root.same[:3])
    ]
    quotes += [quote(log, one.line, one.offset, "wrapper", one.code, one.stream) for one in root.wrappers[:3]]
    return quotes


def quote(log: Log, line: Line, offset: int, role: Role, code: str, stream: str) -> Evidence:
    """Quote a line with its place in the raw file; of a giant one the part round ``offset``."""
    piece, column = line.place(offset)
    text = piece.raw
    if len(text) > _TEXT_KEPT:
        start = max(0, column - 1 - piece.column - _TEXT_KEPT // 4)
        text = text[start : start + _TEXT_KEPT]
    return Evidence(
        file=log.name,
        line=piece.number,
        column=column,
        text=text,
        role=role,
        code=code,
        stream=stream,
    )


def masks(root: Root) -> list[Mask]:
    """List the wrappers, each code once."""
    seen: dict[str, Mask] = {}
    for one in root.wrappers:
        seen.setdefault(one.code, Mask(one.code, one.rule.title, one.line.number))
    return list(seen.values())


def others(root: Root) -> list[OtherFailure]:
    """List other failures of the file: of earlier runs, later ones of this run, and warnings."""
    views = [OtherFailure(one.code, one.rule.resource, one.line.number, "other_run") for one in root.other_runs]
    views += [OtherFailure(one.code, one.rule.resource, one.line.number, "later") for one in root.later[:5]]
    seen: set[str] = set()
    for one in root.warnings:
        if one.code not in seen:
            seen.add(one.code)
            views.append(OtherFailure(one.code, one.rule.resource, one.line.number, "warning"))
    return views


def facts_view(facts: Facts) -> dict[str, StatedFact]:
    """Show each fact with the line that states it."""
    return {
        fact.name: StatedFact(fact.value, fact.file, fact.line, round(fact.confidence, 2), fact.source)
        for fact in facts
    }
