"""Many verdicts to groups of one failure each: counts, first and last seen, the spread of figures and machines.

What is kept of a log is small, and adding is independent of order: the groups are the same whichever log is
read first.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from oortriage.evidence.rule import Resource
from oortriage.triage.clock import Moment
from oortriage.triage.diagnosis import Diagnosis

SCHEMA_VERSION = 1

By = Literal["fingerprint", "cause", "code", "resource"]

#: Figures that are names, not amounts: their spread says nothing.
_NAMES = frozenset({"pid", "device_index", "exit_code", "signal", "cuda_error", "xid", "source_line"})
#: Characters that are kept of a fact and of the line that proves a verdict.
_FACT, _PROOF = 80, 400
#: Failures come before doubts, and doubts before logs without a failure; by exit code.
_RANK = {1: 0, 3: 1, 0: 2}


class Example(msgspec.Struct, frozen=True):
    """The log that stands for its group: the surest verdict, of those the first by name. ``line`` 0: no line."""

    file: str
    line: int
    text: str


class Sighting(msgspec.Struct, frozen=True):
    """What a group needs of one log; ``gpu`` and ``versions`` (by package) are as the log states them."""

    file: str
    fingerprint: str
    code: str
    title: str
    resource: Resource
    cause: str
    phase: str
    confidence: float
    exit_code: int
    occurrences: int
    when: Moment
    line: int = 0
    text: str = ""
    numbers: dict[str, int | float] = {}
    gpu: str = ""
    versions: dict[str, str] = {}


class Spread(msgspec.Struct, frozen=True):
    """Least and most of a figure, and how many logs print it. Bytes where the figure's name ends so."""

    least: int | float
    most: int | float
    logs: int


class Group(msgspec.Struct, frozen=True):
    """Logs of one failure.

    Code, title, resource, cause and phase are those of ``example``; ``codes`` counts the logs of each code.
    ``occurrences`` counts printed failures, of which a log holds several. ``gpus`` and ``versions`` map what logs
    state to how many do. ``files`` are all logs of the group, by name.
    """

    key: str
    fingerprint: str
    code: str
    title: str
    resource: Resource
    cause: str
    phase: str
    confidence: float
    exit_code: int
    logs: int
    occurrences: int
    first_seen: Moment
    last_seen: Moment
    example: Example
    figures: dict[str, Spread]
    gpus: dict[str, int]
    versions: dict[str, dict[str, int]]
    codes: dict[str, int]
    fingerprints: int
    files: list[str]


class Failed(msgspec.Struct, frozen=True, order=True):
    """An input that could not be read, or that its reader did not survive."""

    file: str
    reason: str


class Groups(msgspec.Struct, frozen=True):
    """All groups, failures first, the largest first. ``logs`` are those with a verdict."""

    schema_version: int
    by: By
    logs: int
    groups: list[Group]
    failed: list[Failed] = []
    interrupted: bool = False

    @property
    def exit_code(self) -> int:
        """0 nothing failed, 1 a failure was found, 3 one that could not be determined, 2 an input was unreadable."""
        codes = {group.exit_code for group in self.groups}
        return 2 if self.failed else 1 if 1 in codes else 3 if 3 in codes else 0


def sighting(diagnosis: Diagnosis, when: Moment) -> Sighting:
    """Take from a diagnosis what its group needs."""
    root = next((one for one in diagnosis.evidence if one.role == "root"), None)
    proof = root or next(iter(diagnosis.evidence), None)
    facts = {name: " ".join(str(fact.value).split())[:_FACT] for name, fact in diagnosis.facts.items()}
    return Sighting(
        file=diagnosis.file,
        fingerprint=diagnosis.fingerprint,
        code=diagnosis.code,
        title=diagnosis.title,
        resource=diagnosis.resource,
        cause=diagnosis.cause,
        phase=diagnosis.phase,
        confidence=diagnosis.confidence,
        exit_code=diagnosis.exit_code,
        occurrences=diagnosis.occurrences,
        when=when,
        line=proof.line if proof else 0,
        text=_quoted(proof.text, proof.offset) if proof else "",
        numbers={name: value for name, value in diagnosis.numbers.items() if name not in _NAMES},
        gpu=facts.get("gpu", ""),
        versions={
            name.removesuffix("_version"): value for name, value in facts.items() if name.endswith("_version") and value
        },
    )


def _quoted(text: str, offset: int) -> str:
    """Take the message of a line, without what loggers put in front of it."""
    return text[offset : offset + _PROOF].strip()


def key_of(one: Sighting, by: By) -> str:
    """Name the group that a log belongs to."""
    if by == "fingerprint":
        return one.fingerprint
    if by == "resource":
        return one.resource
    return one.code or "-" if by == "code" else "/".join(part for part in (one.resource, one.cause) if part)


class _Open:
    """A group that still grows. Every step is a count, a least or a most: none depends on the order."""

    def __init__(self) -> None:
        self.best: Sighting | None = None
        self.first = self.last = Moment("", "unknown")
        self.occurrences = 0
        self.files: list[str] = []
        self.figures: dict[str, Spread] = {}
        self.gpus: dict[str, int] = {}
        self.versions: dict[str, dict[str, int]] = {}
        self.codes: dict[str, int] = {}
        self.exit_codes: set[int] = set()
        self.fingerprints: set[str] = set()

    def add(self, one: Sighting) -> None:
        if self.best is None or _order(one) < _order(self.best):
            self.best = one
        if one.when.time:
            self.first = min(self.first, one.when) if self.first.time else one.when
            self.last = max(self.last, one.when) if self.last.time else one.when
        self.occurrences += max(1, one.occurrences) if one.exit_code else one.occurrences
        self.files.append(one.file)
        for name, value in one.numbers.items():
            held = self.figures.get(name)
            least, most, logs = (held.least, held.most, held.logs) if held else (value, value, 0)
            self.figures[name] = Spread(min(least, value), max(most, value), logs + 1)
        _count(self.codes, one.code)
        _count(self.gpus, one.gpu)
        for name, version in one.versions.items():
            _count(self.versions.setdefault(name, {}), version)
        self.exit_codes.add(one.exit_code)
        self.fingerprints.add(one.fingerprint)

    def close(self, key: str) -> Group:
        best = self.best
        assert best is not None
        return Group(
            key=key,
            fingerprint=best.fingerprint,
            code=best.code,
            title=best.title,
            resource=best.resource,
            cause=best.cause,
            phase=best.phase,
            confidence=best.confidence,
            exit_code=min(self.exit_codes, key=_RANK.__getitem__),
            logs=len(self.files),
            occurrences=self.occurrences,
            first_seen=self.first,
            last_seen=self.last,
            example=Example(best.file, best.line, best.text),
            figures=dict(sorted(self.figures.items())),
            gpus=_by_count(self.gpus),
            versions={name: _by_count(counts) for name, counts in sorted(self.versions.items())},
            codes=_by_count(self.codes),
            fingerprints=len(self.fingerprints),
            files=sorted(self.files),
        )


class Grouping:
    """Logs added one by one, in any order, and the groups they make."""

    def __init__(self, by: By = "fingerprint") -> None:
        """Begin without logs; ``by`` says what logs of one group share."""
        self._by: By = by
        self._open: dict[str, _Open] = {}
        self._failed: list[Failed] = []
        self._logs = 0

    def add(self, one: Sighting) -> None:
        """Count a log."""
        self._logs += 1
        self._open.setdefault(key_of(one, self._by), _Open()).add(one)

    def fail(self, file: str, reason: str) -> None:
        """Count an input without a verdict."""
        self._failed.append(Failed(file, reason))

    def result(self, *, interrupted: bool = False) -> Groups:
        """Return what was found so far: failures first, the largest group first."""
        closed = [group.close(key) for key, group in self._open.items()]
        closed.sort(key=lambda group: (_RANK[group.exit_code], -group.logs, group.key))
        return Groups(SCHEMA_VERSION, self._by, self._logs, closed, sorted(self._failed), interrupted)


def _order(one: Sighting) -> tuple[int, float, str, int]:
    """Rank the logs of a group: a named failure before a doubt, the surest, then by name."""
    return _RANK[one.exit_code], -one.confidence, one.file, one.line


def _count(counts: dict[str, int], value: str) -> None:
    if value:
        counts[value] = counts.get(value, 0) + 1


def _by_count(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
