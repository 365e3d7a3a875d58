"""What a cost measurement holds: launches, times as ratios, machine code, and the means over groups of rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import Literal

import msgspec

from oortriage.replay.job import Mode

#: The launch as vLLM's own policy chooses it; no rule has this name.
CONTROL = "control"
#: The rule that every ratio is to.
BASE = "tile16"

Kind = Literal["prefill", "decode", "mixed"]
Layers = Literal["full", "sliding"]
Phase = Literal["prefill", "decode"]
Group = Literal["all", "full", "sliding", "prefill", "decode", "mixed"]
GROUPS: tuple[Group, ...] = ("all", "full", "sliding", "prefill", "decode", "mixed")


class Launch(msgspec.Struct, frozen=True):
    """How the kernel is launched: K/V tile in tokens, and warps a block."""

    tile: int
    num_warps: int

    def __str__(self) -> str:
        """Name it for people."""
        return f"tile {self.tile}, {self.num_warps} warps"


class CostRow(msgspec.Struct, frozen=True):
    """One batch under one rule. Times in ms a call; rules that launch alike share one measurement.

    ``status`` is that of the card, or ``wrong`` where an output is not what float64 says. ``median_ms`` is the mean
    of ``turns_ms``, the medians of turns that are run to and fro: what drifts evenly falls out of it. ``low_ms`` and
    ``high_ms`` are tenth and ninetieth of a hundred.
    ``to_tile16`` and ``to_control`` say how many times as fast it is; None where either has no time.
    """

    rule: str
    layer: Layers
    kv_heads: int
    q_per_kv: int
    batch: str
    kind: Kind
    launch: Launch
    status: Literal["ran", "out_of_resources", "failed", "refused", "wrong"]
    median_ms: float | None = None
    turns_ms: tuple[float, ...] = ()
    low_ms: float | None = None
    high_ms: float | None = None
    to_tile16: float | None = None
    to_control: float | None = None
    message: str = ""


class Mean(msgspec.Struct, frozen=True):
    """Geometric means of a rule's ratios over a group of rows; ``alike`` of them launch as TILE16 does."""

    rule: str
    group: Group
    rows: int
    alike: int
    to_tile16: float
    to_control: float | None = None


class Code(msgspec.Struct, frozen=True):
    """Machine code of one launch, a thread: registers, and bytes of local memory and of spills.

    The first figures are those of ``assembler`` for sm_75. The driver's are those of the code that was timed, for
    ``driver_target``; None where nothing was loaded.
    """

    rules: tuple[str, ...]
    layer: Layers
    phase: Phase
    q_per_kv: int
    launch: Launch
    shared_bytes: int | None
    assembler: str = ""
    registers: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    local_bytes: int | None = None
    driver_target: str = ""
    driver_registers: int | None = None
    driver_local_bytes: int | None = None

    @property
    def hidden_bytes(self) -> int:
        """Bytes a thread that sm_75's code keeps in local memory and the code that was timed did not."""
        return max(0, (self.local_bytes or 0) - (self.driver_local_bytes or 0))


class Cost(msgspec.Struct, frozen=True):
    """What the rules cost. ``mode``: how ``device`` was used; emulated, only ratios mean something.

    ``drift``: by how many times two turns of the same launch differ, the geometric mean. ``problems``: candidates'
    rows without a time, in words. ``open``: what only a real sm_75 card can settle; empty when it was one.
    ``oortriage`` is the version of this tool, where it is told.
    """

    schema_version: int
    vllm: str
    source: str
    files: dict[str, str]
    device: str
    mode: Mode
    target: str
    limit_bytes: int
    environment: dict[str, str]
    rules: list[str]
    rows: list[CostRow]
    means: list[Mean]
    drift: float
    checks: int
    largest_error: float
    code: list[Code]
    recommended: str
    recommendation: str
    open: list[str]
    problems: list[str]
    notes: list[str] = []
    oortriage: str = ""

    @property
    def status(self) -> Literal["passed", "failed", "not_run"]:
        """As a layer of a proof: passed with every candidate timed and right, not run for want of memory alone."""
        if not self.problems:
            return "passed"
        lacking = all(row.status in ("ran", "refused") for row in self.rows if row.rule in self.rules)
        return "not_run" if lacking else "failed"

    @property
    def exit_code(self) -> int:
        """0 every candidate has times and right outputs, 1 not."""
        return 1 if self.problems else 0


def geometric_mean(values: Sequence[float]) -> float | None:
    """Return the geometric mean; None of nothing."""
    return exp(sum(log(value) for value in values) / len(values)) if values else None


def with_ratios(rows: Sequence[CostRow]) -> list[CostRow]:
    """Hold each row's time against those of TILE16 and of the control in the same batch."""
    times = {(row.rule, *_place(row)): row.median_ms for row in rows}

    def ratio(row: CostRow, rule: str) -> float | None:
        other = times.get((rule, *_place(row)))
        return other / row.median_ms if other and row.median_ms else None

    return [msgspec.structs.replace(row, to_tile16=ratio(row, BASE), to_control=ratio(row, CONTROL)) for row in rows]


def _place(row: CostRow) -> tuple[object, ...]:
    return row.layer, row.kv_heads, row.q_per_kv, row.batch


def means(rows: Sequence[CostRow], rules: Sequence[str]) -> list[Mean]:
    """Take the means of each rule's ratios: of all rows, of each kind of layer, of each kind of batch."""
    base = {_place(row): row.launch for row in rows if row.rule == BASE}
    found = []
    for rule in rules:
        for group in GROUPS:
            some = [row for row in rows if row.rule == rule and group in ("all", row.layer, row.kind)]
            mean = geometric_mean([row.to_tile16 for row in some if row.to_tile16])
            if mean is None:
                continue
            timed = [row for row in some if row.to_tile16]
            alike = sum(row.launch == base[_place(row)] for row in timed)
            held = geometric_mean([row.to_control for row in timed if row.to_control])
            found.append(Mean(rule, group, len(timed), alike, mean, held))
    return found


def drift(rows: Sequence[CostRow]) -> float:
    """Say by how many times turns of the same launch differ: the geometric mean, 1 where there is nothing."""
    return geometric_mean([max(row.turns_ms) / min(row.turns_ms) for row in rows if row.turns_ms]) or 1.0
