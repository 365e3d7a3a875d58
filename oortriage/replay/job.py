"""What the command asks of its child process, and what comes back. All sizes in bytes."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from oortriage.gpu.card.timing import RUNS
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.live import TIMED, Batch
from oortriage.kernels.source import SourceSpec
from oortriage.ledger.allocation import Ledger


class Cell(msgspec.Struct, frozen=True):
    """One compilation: a recipe's shape, and the constants or launch options that are forced."""

    shape: dict[str, Any] = {}
    overrides: dict[str, Any] = {}


Mode = Literal["native", "emulated"]


class TimingPlan(msgspec.Struct, frozen=True):
    """What is timed: batches, runs of each, and whether what the card can do at most is measured beside them."""

    batches: tuple[Batch, ...] = TIMED
    runs: int = RUNS
    ceilings: bool = True


class LiveAsk(msgspec.Struct, frozen=True):
    """What a job is to do on the card that is there. ``mode``: as it is, or playing the job's card.

    A cell that stands in the job again is not checked again, only timed: so cells are compared in turns.
    """

    mode: Mode
    device: int = 0
    check: bool = True
    time: bool = True
    seed: int = 0
    plan: TimingPlan = TimingPlan()


class Check(msgspec.Struct, frozen=True):
    """A batch held against float64: relative error, and outputs that were not written or are no numbers."""

    batch: str
    error: float
    tolerance: float
    missing: int

    @property
    def passed(self) -> bool:
        """Whether every output is there and the error within the tolerance."""
        return self.missing == 0 and self.error <= self.tolerance


class Timing(msgspec.Struct, frozen=True):
    """A batch timed: ms a call, and the bytes/s and FLOP/s that it comes to at least."""

    batch: str
    median_ms: float
    low_ms: float
    high_ms: float
    runs: int
    graph: bool
    bytes_per_second: float
    flop_per_second: float


class LiveKernel(msgspec.Struct, frozen=True):
    """A kernel as loaded. ``driver_bytes``: shared memory by the driver's profiler; None: not to be had."""

    name: str
    shared_bytes: int
    registers: int
    spills: int
    driver_bytes: int | None = None


class LiveResult(msgspec.Struct, frozen=True):
    """What became of a cell on the card.

    ``out_of_resources`` has the figures that Triton's error printed; ``loaded`` is a captured kernel, which
    the card took and which is not launched, for a capsule holds no data; ``refused`` was not tried.
    """

    status: Literal["ran", "loaded", "out_of_resources", "failed", "refused"]
    device: str
    mode: Mode
    message: str = ""
    required_bytes: int | None = None
    limit_bytes: int | None = None
    kernels: tuple[LiveKernel, ...] = ()
    checks: tuple[Check, ...] = ()
    timings: tuple[Timing, ...] = ()
    ceilings: dict[str, float] = {}
    environment: dict[str, str] = {}


class Job(msgspec.Struct, frozen=True):
    """Cells of one recipe for one card. ``kernel`` is a recipe's name, or ``FILE.py:FUNCTION``."""

    kernel: str
    card: Card
    cells: tuple[Cell, ...]
    source: SourceSpec | None = None
    registers: bool = False
    memory_bytes: int = 0
    live: LiveAsk | None = None


class Registers(msgspec.Struct, frozen=True):
    """What the assembler says of a kernel, per thread: registers, bytes of stack and of spills.

    ``static_shared`` is shared memory in bytes that the machine code itself holds.
    """

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    static_shared: int
    assembler: str


class Kernel(msgspec.Struct, frozen=True):
    """One kernel as launched. ``tuning``: only tried by an autotuner."""

    name: str
    settings: dict[str, Any]
    required_bytes: int
    tensor_memory_columns: int
    threads: int
    ledger: Ledger
    tuning: bool = False
    registers: Registers | None = None


class Failure(msgspec.Struct, frozen=True):
    """Why a cell has no figure: the kernel does not compile, the compiler died or took too long."""

    kind: Literal["does_not_compile", "crashed", "timeout", "memory", "environment", "usage"]
    message: str


class Outcome(msgspec.Struct, frozen=True):
    """What became of a cell. ``files`` are the source files used, with their SHA-256."""

    cell: int
    kernels: tuple[Kernel, ...] = ()
    failure: Failure | None = None
    files: dict[str, str] = {}
    stand_ins: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    triton: str = ""
    live: LiveResult | None = None

    @property
    def launched(self) -> tuple[Kernel, ...]:
        """The kernels that were launched in earnest."""
        return tuple(kernel for kernel in self.kernels if not kernel.tuning) or self.kernels

    @property
    def largest(self) -> Kernel | None:
        """The launched kernel that needs most."""
        return max(self.launched, key=lambda kernel: kernel.required_bytes, default=None)
