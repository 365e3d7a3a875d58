"""A case: everything the log gives about one failure, and what a resource's expert makes of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from oortriage.evidence.event import Event
from oortriage.evidence.fact import Fact, Value
from oortriage.intake.log import Log
from oortriage.intake.traceback import Raised
from oortriage.ledger.decision import Step
from oortriage.triage.diagnosis import (
    BillView,
    Phase,
    Prescription,
    RuledOut,
    WillNotHelp,
)
from oortriage.triage.root import Root
from oortriage.triage.version import within

_SERVERS = frozenset({"vllm", "sglang", "tgi", "lmdeploy", "tensorrt-llm", "llama.cpp", "ollama"})
#: Packages whose frames name the program, and the program.
_FOLDERS = (
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("lmdeploy", "lmdeploy"),
    ("text_generation_server", "tgi"),
    ("tensorrt_llm", "tensorrt-llm"),
)
_TRAINING = frozenset({"training_forward", "training_backward", "optimizer"})


class Facts:
    """The facts of a log by name.

    Of several readings the surest, and of those the last before the failure, speaks.
    """

    def __init__(self, facts: Iterable[Fact], before_line: int = 0) -> None:
        """Index the facts.

        Args:
            facts: facts in reading order.
            before_line: line of the failure; facts of a later run do not replace earlier ones.
        """
        self._best: dict[str, Fact] = {}
        for fact in facts:
            held = self._best.get(fact.name)
            later = before_line and fact.line > before_line
            if held is None or (fact.confidence >= held.confidence and not later):
                self._best[fact.name] = fact

    def __iter__(self) -> Iterator[Fact]:
        """Iterate over the speaking facts in order of name."""
        return iter(self._best[name] for name in sorted(self._best))

    def add(self, fact: Fact) -> None:
        """Add a derived fact, unless the log states it at least as surely."""
        held = self._best.get(fact.name)
        if held is None or held.confidence < fact.confidence:
            self._best[fact.name] = fact

    def fact(self, name: str) -> Fact | None:
        """Return the fact of a name, with its line."""
        return self._best.get(name)

    def value(self, name: str) -> Value | None:
        """Return the bare value of a fact."""
        fact = self._best.get(name)
        return fact.value if fact else None

    def text(self, name: str) -> str:
        """Return a fact as text; empty when the log does not say."""
        value = self.value(name)
        return "" if value is None else str(value)

    def number(self, name: str) -> float | None:
        """Return a fact as a number; None when it is absent or not one."""
        value = self.value(name)
        if isinstance(value, str):
            found = re.fullmatch(r"-?\d+(?:\.\d+)?", value.strip())
            return float(value) if found else None
        return value

    def allows(self, software: str, since: str, until: str) -> bool:
        """Tell whether a remedy for some releases may be given: unknown versions are let pass."""
        return within(self.text(f"{software}_version"), since, until) is not False


class Case(msgspec.Struct, frozen=True):
    """One failure: the root event, its figures (companions' added), the facts, the frames."""

    log: Log
    root: Root
    event: Event
    numbers: dict[str, int | float]
    facts: Facts
    phase: Phase
    raised: Raised | None
    events: Sequence[Event]

    def number(self, name: str) -> int | float | None:
        """Return a figure of the failure, or the fact of the same name."""
        value = self.numbers.get(name)
        return value if value is not None else self.facts.number(name)

    @property
    def program(self) -> str:
        """The program that failed: ``vllm``, ``sglang``, another server, ``training`` or ``script``.

        The failing rule's own software says it, else the frames, else what else the log holds.
        """
        if self.event.rule.software in _SERVERS:
            return self.event.rule.software
        files = " ".join(frame.file for frame in self.raised.frames) if self.raised else ""
        for folder, name in _FOLDERS:
            if re.search(rf"(?:^|[/\\]){folder}[/\\]", files):
                return name
        heard = [event.rule.software for event in self.events if event.rule.software in _SERVERS]
        if heard:
            return max(heard, key=heard.count)
        return "training" if self.phase in _TRAINING else "script"

    def has(self, *codes: str) -> bool:
        """Tell whether any event of these codes (or code beginnings) is in the log."""
        return any(event.code.startswith(codes) for event in self.events)

    def text_has(self, pattern: str) -> bool:
        """Tell whether a pattern occurs in the text of any stream."""
        expression = re.compile(pattern)
        return any(expression.search(stream.text) for stream in self.log.streams)


class Finding(msgspec.Struct):
    """What a resource's expert says of a case. ``doubt`` lowers the confidence (0 to 1)."""

    cause: str = ""
    summary: str = ""
    numbers: dict[str, int | float] = {}
    ruled_out: list[RuledOut] = []
    missing: list[str] = []
    bill: BillView | None = None
    prescriptions: list[Prescription] = []
    will_not_help: list[WillNotHelp] = []
    notes: list[str] = []
    doubt: float = 0.0
    #: The tests that led to the cause, in order.
    decision: list[Step] = []
    #: Words of remedies that the log's own figures or settings speak against.
    forbidden: set[str] = set()
    #: Words of warnings that do not fit these figures.
    inapplicable: set[str] = set()
