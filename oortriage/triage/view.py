"""Events, facts and roots in the words of the public contract."""

from __future__ import annotations

import re
from typing import Literal

from oortriage.evidence.event import Event
from oortriage.intake.clean import clean
from oortriage.intake.line import Line, Piece
from oortriage.intake.log import Log
from oortriage.triage.case import Facts
from oortriage.triage.diagnosis import Evidence, Mask, OtherFailure, StatedFact
from oortriage.triage.root import Root

Role = Literal["root", "same_failure", "wrapper", "recovered", "context"]

#: Characters of a line that a quotation keeps.
_TEXT_KEPT = 2000
#: Words of a message that every way of escaping leaves as they are.
_PLAIN = re.compile(r"[ !#-&(-\[\]-~]{1,40}")


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
    at = _found(piece, line.body[offset:], column - 1 - piece.column)
    start = max(0, at - _TEXT_KEPT // 4) if len(piece.raw) > _TEXT_KEPT else 0
    return Evidence(
        file=log.name,
        line=piece.number,
        column=piece.column + at + 1,
        text=piece.raw[start : start + _TEXT_KEPT],
        role=role,
        code=code,
        stream=stream,
        offset=at - start,
    )


def _found(piece: Piece, message: str, expected: int) -> int:
    """Say where in a raw line its message stands, nearest to where it should be.

    A line of JSON spells its message with escapes, and all lines of that message are counted from
    its beginning, so it stands further on than a count of characters says.
    """
    words = _PLAIN.match(message)
    if not words or clean(piece.raw[expected:]).startswith(words.group()):
        return expected
    further = piece.raw.find(words.group(), expected)
    return further if further >= 0 else expected


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
