"""Rules against text: anchors first, then the regular expressions in a window round each anchor."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from oortriage.errors import RuleError
from oortriage.evidence.literals import LiteralSet, fold
from oortriage.evidence.rule import Pattern, Rule, flexible_spaces
from oortriage.evidence.values import CONVERTERS

#: A message spans few lines; a window of this many characters round an anchor holds the longest
#: known (cudaMallocAsync's six lines, a PyTorch message with a dozen process clauses).
WINDOW_BEFORE = 600
WINDOW_AFTER = 3000

#: Of a rule that matches more often than this in one text, the first and the last halves are kept:
#: what began the trouble stands among the first, what ended the run among the last.
MATCHES_KEPT = 200


class Match(msgspec.Struct, frozen=True):
    """A rule found in a text: where, and what its groups say. Offsets are characters.

    ``at`` is where the message proper begins: a group of that name, or else the first line that
    does more than announce it (a class name, a ``raised:``).
    """

    rule: Rule
    pattern: Pattern
    start: int
    end: int
    text: str
    numbers: dict[str, int | float]
    details: dict[str, str]
    at: int = 0


class Matcher:
    """A set of rules, ready to be matched; regular expressions are compiled on first use."""

    def __init__(self, rules: Sequence[Rule], *, guarded: frozenset[str] = frozenset()) -> None:
        """Prepare the rules.

        Args:
            rules: the rules to look for.
            guarded: codes of rules that the project did not write. Their expressions run under
                a time limit, so that none can hang the tool.
        """
        self.rules = tuple(rules)
        self._by_anchor: dict[str, list[Rule]] = defaultdict(list)
        for rule in self.rules:
            for anchor in {fold(anchor) for anchor in rule.anchors}:
                self._by_anchor[anchor].append(rule)
        self._literals = LiteralSet(self._by_anchor)
        #: By expression, case and guard: a rule and a user's copy of it may share the first two.
        self._compiled: dict[tuple[str, bool, bool], Any] = {}
        self._guarded = guarded
        #: Codes of guarded rules whose expression ran into the time limit.
        self.timed_out: set[str] = set()

    def find(self, text: str) -> list[Match]:
        """Return every match in the text, in order of position."""
        anchors: dict[str, list[tuple[int, int]]] = defaultdict(list)
        by_code: dict[str, Rule] = {}
        for literal, start, end in self._literals.find(fold(text)):
            for rule in self._by_anchor[literal]:
                anchors[rule.code].append((start, end))
                by_code[rule.code] = rule
        found = [match for code, places in anchors.items() for match in self._matches_of(by_code[code], text, places)]
        return sorted(found, key=lambda match: (match.start, match.rule.code))

    def _matches_of(self, rule: Rule, text: str, places: list[tuple[int, int]]) -> list[Match]:
        """Match one rule round its anchors; a match that leaves every anchor out is not one.

        Windows of neighbouring anchors are joined first, so that no text is searched twice however
        often an anchor occurs. Of patterns that match the same text the first one stands.
        """
        first: list[Match] = []
        last: deque[Match] = deque(maxlen=MATCHES_KEPT // 2)
        for low, high, starts in _windows(places, len(text)):
            taken: list[Match] = []
            for pattern in rule.pattern:
                for hit in self._iterate(rule, pattern, text, low, high):
                    match = _match(rule, pattern, hit, starts)
                    if match and not any(_overlap(match, one) for one in taken[-8:]):
                        taken.append(match)
            taken.sort(key=lambda match: match.start)
            room = max(0, MATCHES_KEPT // 2 - len(first))
            first += taken[:room]
            last.extend(taken[room:])
        return [*first, *last]

    def _iterate(self, rule: Rule, pattern: Pattern, text: str, low: int, high: int) -> Iterable[re.Match[str]]:
        if rule.code in self._guarded:
            return self._iterate_guarded(rule, pattern, text, low, high)
        expression: re.Pattern[str] = self._compile(rule, pattern)
        return expression.finditer(text, low, high)

    def _iterate_guarded(self, rule: Rule, pattern: Pattern, text: str, low: int, high: int) -> Iterator[re.Match[str]]:
        if rule.code in self.timed_out:
            return
        expression = self._compile(rule, pattern)
        try:
            yield from expression.finditer(text, low, high, timeout=0.25)
        except TimeoutError:
            self.timed_out.add(rule.code)

    def _compile(self, rule: Rule, pattern: Pattern) -> Any:
        guarded = rule.code in self._guarded
        key = (pattern.regex, pattern.ignore_case, guarded)
        if key not in self._compiled:
            source = flexible_spaces(pattern.regex)
            if guarded:
                self._compiled[key] = _compile_guarded(rule, source, ignore_case=pattern.ignore_case)
            else:
                self._compiled[key] = re.compile(source, re.IGNORECASE if pattern.ignore_case else 0)
        return self._compiled[key]


def _compile_guarded(rule: Rule, source: str, *, ignore_case: bool) -> Any:
    """Compile with ``regex``, which knows time limits; it also reads braces as fuzzy matching."""
    import regex

    try:
        return regex.compile(source, regex.IGNORECASE if ignore_case else 0)
    except regex.error as problem:
        raise RuleError(f"{rule.path}: the regex cannot run under a time limit: {problem}") from problem


def _windows(places: list[tuple[int, int]], length: int) -> Iterator[tuple[int, int, list[int]]]:
    """Join the windows round anchors: where each begins and ends, and the anchors' starts in order.

    Anchors come by their ends, so that a long one may stand behind a short one inside it.
    """
    low = high = -1
    starts: list[int] = []
    for start, end in sorted(places):
        if starts and start - WINDOW_BEFORE <= high:
            starts.append(start)
            high = min(length, max(high, end + WINDOW_AFTER))
            continue
        if starts:
            yield low, high, starts
        low, high = max(0, start - WINDOW_BEFORE), min(length, end + WINDOW_AFTER)
        starts = [start]
    if starts:
        yield low, high, starts


def _match(rule: Rule, pattern: Pattern, hit: re.Match[str], starts: list[int]) -> Match | None:
    after = bisect_left(starts, hit.start())
    if after == len(starts) or starts[after] >= hit.end():
        return None
    captured = _read_captures(pattern, hit)
    if captured is None:
        return None
    numbers, details = captured
    marked = hit.start("at") if "at" in hit.re.groupindex else -1
    at = marked if marked >= 0 else hit.start() + _lead_in(hit.group())
    return Match(rule, pattern, hit.start(), hit.end(), hit.group(), numbers, details, at)


def _lead_in(text: str) -> int:
    skipped = 0
    while (end := text.find("\n", skipped)) >= 0 and text[skipped:end].rstrip().endswith(":"):
        skipped = end + 1
    return skipped if text[skipped:].strip() else 0


def _overlap(one: Match, other: Match) -> bool:
    return one.start < other.end and other.start < one.end


def _read_captures(pattern: Pattern, found: re.Match[str]) -> tuple[dict[str, int | float], dict[str, str]] | None:
    """Convert the groups by their declared types; a group that is no number spoils the match."""
    numbers: dict[str, int | float] = {}
    details: dict[str, str] = {}
    for name, kind in pattern.captures.items():
        raw = found.group(name)
        if raw is None:
            continue
        try:
            value = CONVERTERS[kind](raw)
        except (ValueError, OverflowError):
            return None
        if isinstance(value, str):
            details[name] = value
        else:
            numbers[name] = value
    return numbers, details
