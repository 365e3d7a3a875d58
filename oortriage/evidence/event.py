"""Events: what the rules found in a log, each with its line, and resolved where they overlap."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from oortriage.evidence.matcher import Match, Matcher
from oortriage.evidence.mention import has_structure, is_mention
from oortriage.evidence.rule import Rule
from oortriage.intake.line import Kind, Line
from oortriage.intake.log import Log, Stream

_QUALITY = {"exact": 2, "partial": 1, "paraphrase": 0}
#: ``software`` of the rules that know only that memory ran out, in any program's words.
LAST_RESORT = "general"
_ERROR_LEVELS = frozenset({"E", "F", "ERROR", "FATAL", "CRITICAL", "EXCEPTION"})
_ERROR_WORD = re.compile(
    r"\berrors?\b|\bfatal\b|\babort|\bfail(?:ed|ure|s)?\b|\bpanic|\bterminat|\bexception\b|\bcannot\b|\bunable\b|"
    r"could not|\bcrash|Error\b|\bwhat\(\):",
    re.IGNORECASE,
)
_TAKES_OUT = {"benign": 2, "recovered": 1}


class Event(msgspec.Struct):
    """One occurrence of a rule's message. ``order`` is its position in reading order."""

    rule: Rule
    match: Match
    line: Line
    #: Characters of ``line.body`` in front of the match.
    offset: int
    stream: str
    order: int
    #: Positions of the first and the last line that the match covers.
    first_order: int
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
    structured = has_structure(log)
    for stream in log.streams:
        matches = matcher.find(stream.text)
        events.extend(_event(stream, match, structured=structured) for match in _resolved(matches))
    events.sort(key=lambda event: (event.order, event.offset))
    return _without_guesses(events)


def _without_guesses(events: list[Event]) -> list[Event]:
    """Drop last-resort matches where a rule knows the line, and where the line is no error."""
    known: set[int] = set()
    wrapped: set[int] = set()
    for event in events:
        if event.rule.is_event and event.rule.software != LAST_RESORT:
            (wrapped if event.rule.role == "wrapper" else known).update(_lines_of(event))
    kept: list[Event] = []
    # A guess that names a resource stands before one that does not, and a wrapper hides only the latter.
    for event in sorted(events, key=lambda event: event.rule.role == "wrapper"):
        if event.rule.software == LAST_RESORT:
            taken = known | wrapped if event.rule.role == "wrapper" else known
            if taken.intersection(_lines_of(event)) or not _is_error(event.line):
                continue
            known.update(_lines_of(event))
        kept.append(event)
    return sorted(kept, key=lambda event: (event.order, event.offset))


def _lines_of(event: Event) -> range:
    return range(event.first_order, event.last_order + 1)


def _is_error(line: Line) -> bool:
    return (
        line.kind is Kind.EXCEPTION
        or line.prefix.level in _ERROR_LEVELS
        or (line.prefix.level in ("", "W", "WARN", "WARNING") and bool(_ERROR_WORD.search(line.body)))
    )


def _event(stream: Stream, pair: tuple[Match, list[Match]], *, structured: bool) -> Event:
    match, covered = pair
    line, offset = stream.line_at(match.at)
    first, first_offset = stream.line_at(match.start)
    last, _ = stream.line_at(max(match.start, match.end - 1))
    return Event(
        rule=match.rule,
        match=match,
        line=line,
        offset=offset,
        stream=stream.name,
        order=line.order,
        first_order=first.order,
        last_order=last.order,
        mentioned=is_mention(first, first_offset, match, structured=structured),
        also=tuple(sorted({one.rule.code for one in covered} - {match.rule.code})),
        phase=match.rule.phase or next((one.rule.phase for one in covered if one.rule.phase), ""),
    )


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
