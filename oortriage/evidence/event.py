"""Events: what the rules found in a log, each with its line, and resolved where they overlap."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from oortriage.evidence.matcher import Match, Matcher
from oortriage.evidence.rule import Rule
from oortriage.intake.line import Kind, Line
from oortriage.intake.log import Log, Stream

_QUALITY = {"exact": 2, "partial": 1, "paraphrase": 0}
_TAKES_OUT = {"benign": 2, "recovered": 1}

#: What may stand in front of a printed message on its line: an exception's class, a logger's words.
_PRINTED_LEAD = re.compile(
    r"(?:^|[\s(\"'`>|])(?:[\w.]*(?:Error|Exception|OutOfResources|Warning|Died|exc)\w*\b[:(]?|error|ERROR|"
    r"failed with|raised|WARN|fatal|Exception|Runtime|caused by|Caused by|reason|message|msg|"
    r"terminated|occurred)[^\n]{0,60}$",
)
#: The exception's class right in front: the message was raised, whatever the line begins with.
_RAISED_LEAD = re.compile(r"[\w.]*(?:Error|Exception|OutOfResources|Failed): ?$")
#: The message is a quoted value: of a ``repr``, an argument, a field of JSON.
_VALUE_LEAD = re.compile(r"[(=:\[{,]\s*\\?[\"'`](?:[\w.]*(?:Error|Exception|OutOfResources): ?)?$")
#: A quotation that begins in running text, right before the message. A value in JSON, a ``repr``
#: or an argument follows a colon, a bracket or an equals sign instead.
_QUOTED_WHOLE = re.compile(r"(?:^\s*|\w )[\"'](?:[\w.]*(?:Error|Exception|OutOfResources): ?)?$")
_TALK = re.compile(
    r"\b(?:if you (?:see|get|hit|run into|encounter)|when you (?:see|get)|such as|for example|e\.g\.|"
    r"to avoid|avoids?|prevents?|fix(?:es|ed)? (?:for|the|an?)|troubleshoot|see the|documentation|"
    r"docs|refer to|known issue|common (?:error|cause)|similar to|looks like|instead of|"
    r"errors? (?:like|such)|may (?:cause|lead|result)|can (?:cause|lead|result)|might|"
    r"in case of|to (?:handle|catch|test|simulate|reproduce)|retry on|asserts?|expects?|"
    r"no more|no longer|without)\b",
    re.IGNORECASE,
)


class Event(msgspec.Struct):
    """One occurrence of a rule's message. ``order`` is its position in reading order."""

    rule: Rule
    match: Match
    line: Line
    #: Characters of ``line.body`` in front of the match.
    offset: int
    stream: str
    order: int
    last_order: int
    mentioned: bool
    #: Other rules whose text this one covers.
    also: tuple[str, ...] = ()
    #: The phase that a covered wrapper or sibling named.
    phase: str = ""

    @property
    def code(self) -> str:
        """The code of the rule."""
        return self.rule.code


def find_events(log: Log, matcher: Matcher) -> list[Event]:
    """Find every event of a log, in reading order, one for each piece of text."""
    events: list[Event] = []
    for stream in log.streams:
        matches = matcher.find(stream.text)
        events.extend(_event(stream, match) for match in _resolved(matches))
    events.sort(key=lambda event: (event.order, event.offset))
    return events


def _event(stream: Stream, pair: tuple[Match, list[Match]]) -> Event:
    match, covered = pair
    line, offset = stream.line_at(match.at)
    last, _ = stream.line_at(max(match.start, match.end - 1))
    return Event(
        rule=match.rule,
        match=match,
        line=line,
        offset=offset,
        stream=stream.name,
        order=line.order,
        last_order=last.order,
        mentioned=_is_mention(*stream.line_at(match.start), match),
        also=tuple(sorted({one.rule.code for one in covered} - {match.rule.code})),
        phase=match.rule.phase or next((one.rule.phase for one in covered if one.rule.phase), ""),
    )


def _quote_is_open(before: str) -> bool:
    """Tell whether a text ends inside quotation marks of some kind."""
    return any(before.count(mark) % 2 for mark in ('"', "`")) or bool(re.search(r"(?:^|\s)'[^'\n]{0,60}$", before))


def _is_mention(line: Line, offset: int, match: Match) -> bool:
    """Tell a sentence that talks about a message from the message itself."""
    if not match.rule.is_event:
        return False
    if line.in_help:
        return True
    if line.kind is Kind.EXCEPTION:
        return False
    before = line.body[:offset]
    after = line.body[offset + len(match.text) :] if "\n" not in match.text else ""
    talked = bool(_TALK.search(before))
    if _VALUE_LEAD.search(before):
        return False
    if _QUOTED_WHOLE.search(before):
        return True
    if _RAISED_LEAD.search(before) and not (talked and _quote_is_open(before)):
        return False
    if _PRINTED_LEAD.search(before) and not talked:
        return False
    if talked:
        return True
    if line.in_prose and match.pattern.quality != "exact":
        return bool(_TALK.search(after)) or len(before.split()) > 3
    if _quote_is_open(before) and len(before.split()) > 2:
        return True
    # A numberless phrase in the middle of a long sentence is talk more often than not.
    return not match.numbers and len(before.split()) > 12 and bool(_TALK.search(after))


def _resolved(matches: list[Match]) -> Iterator[tuple[Match, list[Match]]]:
    """Group overlapping matches and keep what each group comes to.

    A benign or recovered wording takes the plain failure inside it out. Of two failures in the
    same text the more exact one stays. Wrappers and facts stay beside whatever they overlap.
    """
    groups: list[list[Match]] = []
    reach = -1
    for match in matches:
        if not match.rule.is_event or match.rule.role == "wrapper":
            yield match, []
            continue
        if groups and match.start < reach:
            groups[-1].append(match)
        else:
            groups.append([match])
        reach = max(reach, match.end)
    for group in groups:
        best = max(group, key=_rank)
        # Long groups chain through partial overlaps: what does not touch the best one stands alone.
        overlapping = [one for one in group if one.start < best.end and best.start < one.end]
        yield best, [one for one in overlapping if one is not best]
        rest = [one for one in group if one not in overlapping]
        if rest:
            yield from _resolved(rest)


def _rank(match: Match) -> tuple[int, int, int, int]:
    return (
        _TAKES_OUT.get(match.rule.role, 0),
        _QUALITY[match.pattern.quality],
        len(match.numbers),
        match.end - match.start,
    )
