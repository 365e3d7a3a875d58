"""The diagnosis: the public contract, version 1. Frozen data, no behaviour beyond plain access."""

from __future__ import annotations

from typing import Literal

import msgspec

from oortriage.budget.figure import Figure
from oortriage.budget.log_budget import Check, Part, PoolUse
from oortriage.budget.solution import Solution
from oortriage.evidence.rule import Resource
from oortriage.ledger.decision import Step

SCHEMA_VERSION = 1

Status = Literal["fatal", "recovered", "unknown"]
Phase = Literal[
    "load",
    "profile",
    "kv_init",
    "graph_capture",
    "warmup",
    "prefill",
    "decode",
    "training_forward",
    "training_backward",
    "optimizer",
    "compile",
    "unknown",
]
Safety = Literal["safe", "costs_speed", "changes_output", "risky"]


class Evidence(msgspec.Struct, frozen=True):
    """A line that proves something. ``line`` and ``column`` are 1-based, in the raw file.

    ``text`` is the raw line, or the part of a long one round its message; ``offset`` is where in
    ``text`` the message begins, 0-based, in characters.
    """

    file: str
    line: int
    column: int
    text: str
    role: Literal["root", "same_failure", "wrapper", "recovered", "context"]
    code: str = ""
    stream: str = ""
    offset: int = 0


class StatedFact(msgspec.Struct, frozen=True):
    """What the log says about the environment, with the line that says it."""

    value: str | int | float
    file: str
    line: int
    confidence: float
    source: str


class RuledOut(msgspec.Struct, frozen=True):
    """A resource the text could be mistaken for, and the line or arithmetic that rules it out."""

    resource: Resource
    reason: str
    line: int = 0


class Mask(msgspec.Struct, frozen=True):
    """A wrapper line: it reports a failure whose cause stands elsewhere."""

    code: str
    title: str
    line: int


class BillTerm(msgspec.Struct, frozen=True):
    """One buffer of a bill; ``bytes`` is for all of its copies."""

    name: str
    expression: str
    bytes: int


class BillView(msgspec.Struct, frozen=True):
    """A byte ledger. ``basis`` says whose word it is."""

    basis: Literal["arithmetic", "compiler"]
    total_bytes: int
    terms: list[BillTerm]
    settings: dict[str, int]
    note: str
    alternatives: int = 0


class BudgetView(msgspec.Struct, frozen=True):
    """An engine's memory decision, rebuilt from what the log prints; sizes in bytes.

    ``figures`` by name, each measured, derived or estimated. ``checks`` hold printed figures against their sums.
    ``solutions`` are what must change; ``fits`` and ``no_window`` among them name no change.
    """

    version: str
    engine: str
    figures: dict[str, Figure]
    parts: list[Part] = []
    checks: list[Check] = []
    use: PoolUse | None = None
    solutions: list[Solution] = []
    notes: list[str] = []


class Prescription(msgspec.Struct, frozen=True):
    """One thing to change: the exact change, its computed effect, cost, safety, and the check."""

    change: str
    effect: str
    cost: str = ""
    safety: Safety = "safe"
    verify: str = ""


class WillNotHelp(msgspec.Struct, frozen=True):
    """Advice people give for this failure that has no effect on it, and why."""

    advice: str
    why: str


class OtherFailure(msgspec.Struct, frozen=True):
    """A second failure in the same file: another run, or a later one of the same run."""

    code: str
    resource: Resource
    line: int
    relation: Literal["other_run", "later", "warning"]


class Diagnosis(msgspec.Struct, frozen=True):
    """One log's verdict and all that supports it; see ``design`` in the documentation."""

    schema_version: int
    file: str
    code: str
    title: str
    resource: Resource
    cause: str
    phase: Phase
    status: Status
    confidence: float
    fingerprint: str
    summary: str
    evidence: list[Evidence] = []
    numbers: dict[str, int | float] = {}
    facts: dict[str, StatedFact] = {}
    masked_by: list[Mask] = []
    decision: list[Step] = []
    ruled_out: list[RuledOut] = []
    missing: list[str] = []
    bill: BillView | None = None
    compiled_bill: BillView | None = None
    budget: BudgetView | None = None
    prescriptions: list[Prescription] = []
    will_not_help: list[WillNotHelp] = []
    others: list[OtherFailure] = []
    occurrences: int = 0
    streams: list[str] = []
    notes: list[str] = []

    @property
    def exit_code(self) -> int:
        """0 no resource failure, 1 found and classified, 3 there and not determined."""
        if self.resource == "none":
            return 0
        return 3 if self.resource == "undetermined" else 1
