"""What the command asks of its child process, and what comes back. All sizes in bytes."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.source import SourceSpec
from oortriage.ledger.allocation import Ledger


class Cell(msgspec.Struct, frozen=True):
    """One compilation: a recipe's shape, and the constants or launch options that are forced."""

    shape: dict[str, Any] = {}
    overrides: dict[str, Any] = {}


class Job(msgspec.Struct, frozen=True):
    """Cells of one recipe for one card. ``kernel`` is a recipe's name, or ``FILE.py:FUNCTION``."""

    kernel: str
    card: Card
    cells: tuple[Cell, ...]
    source: SourceSpec | None = None
    registers: bool = False
    memory_bytes: int = 0


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

    @property
    def launched(self) -> tuple[Kernel, ...]:
        """The kernels that were launched in earnest."""
        return tuple(kernel for kernel in self.kernels if not kernel.tuning) or self.kernels

    @property
    def largest(self) -> Kernel | None:
        """The launched kernel that needs most."""
        return max(self.launched, key=lambda kernel: kernel.required_bytes, default=None)
