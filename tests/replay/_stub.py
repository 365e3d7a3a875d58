"""A compiler that computes: bytes by a formula in place of child processes, so that every figure can be done by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from oortriage.ledger.allocation import Buffer, Ledger
from oortriage.replay.cells import Compilation
from oortriage.replay.job import Cell, Failure, Kernel, Outcome, Registers
from oortriage.triage.diagnosis import Diagnosis, StatedFact
from tests.report._made import made

#: The constants that the stub's kernel has, with the values its caller gives.
CONSTANTS: dict[str, Any] = {"TILE_SIZE": 32, "num_stages": 3, "num_warps": 4}

Formula = Callable[[dict[str, Any]], "int | str"]


def attention_bytes(settings: dict[str, Any]) -> int:
    """What full attention needs on Turing: K and V tiles, and Q of 16 rows; more than two stages move nothing."""
    width = {"float32": 4, "float16": 2, "bfloat16": 2}[settings["dtype"]]
    window = 1 if settings.get("window") else 2
    return int(width * settings["head_size"] * (window * settings["TILE_SIZE"] + 16))


class Stub:
    """Stands in for ``compile_cells``; ``asked`` are the cells it was given, those for registers apart.

    Args:
        formula: bytes for the settings of a cell, or why it does not compile.
        spills: bytes stored by spills; None for no assembler.
    """

    def __init__(self, formula: Formula, spills: Callable[[dict[str, Any]], int | None] = lambda _: 0) -> None:
        self.formula, self.spills = formula, spills
        self.asked: list[Cell] = []
        self.registers_of: list[dict[str, Any]] = []
        self.sources: list[str] = []

    def __call__(
        self, what: Compilation, cells: Sequence[Cell], *, progress: Any = None, **_: Any
    ) -> tuple[list[Outcome], list[str]]:
        self.sources.append(what.source.version if what.source else "")
        if progress:
            progress(len(cells), len(cells))
        return [self._outcome(what, index, cell) for index, cell in enumerate(cells)], []

    def _outcome(self, what: Compilation, index: int, cell: Cell) -> Outcome:
        if not what.registers:
            self.asked.append(cell)
        known = {name: value for name, value in cell.overrides.items() if name in CONSTANTS}
        settings = {**cell.shape, **CONSTANTS, **({"TILE_SIZE": cell.shape["tile"]} if "tile" in cell.shape else {})}
        settings |= known
        unused = tuple(sorted(set(cell.overrides) - set(known)))
        found = self.formula(settings)
        if isinstance(found, str):
            kind, _, message = found.rpartition("|")
            failure = msgspec.convert({"kind": kind or "does_not_compile", "message": message}, Failure)
            return Outcome(index, failure=failure, unused=unused, triton="3.6.0")
        registers = None
        if what.registers:
            self.registers_of.append({name: settings[name] for name in CONSTANTS})
            stored = self.spills(settings)
            registers = None if stored is None else Registers(64, stored, 0, 0, 0, "ptxas 12.8")
        constants = {name: settings[name] for name in CONSTANTS}
        return Outcome(index, kernels=(kernel_of(found, constants, registers),), unused=unused, triton="3.6.0")


def kernel_of(size: int, constants: dict[str, Any] | None = None, registers: Registers | None = None) -> Kernel:
    buffer = Buffer(
        "K", "operand", "ttg.local_alloc", (size // 4,), "f32", size, 0, "lib/kernel.py", 7, 5, "K = load()"
    )
    return Kernel("attention", constants or dict(CONSTANTS), size, 0, 128, Ledger((buffer,), size), registers=registers)


VLLM_FILE = "site-packages/vllm/v1/attention/ops/triton_unified_attention.py"


def crash(required: int = 81920, limit: int = 65536, resource: Any = "shared_memory", **facts: Any) -> Diagnosis:
    """A crash log's diagnosis with these facts; every fact stands on line 7."""
    numbers = {name: size for name, size in (("required_bytes", required), ("limit_bytes", limit)) if size}
    return made(
        file="crash.log",
        resource=resource,
        numbers=numbers,
        facts={name: StatedFact(value, "crash.log", 7, 0.9, "x") for name, value in facts.items()},
    )


@pytest.fixture
def stubbed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Stub]:
    """Put a stub in the place of the compiler; selections need none either."""
    from oortriage.replay import compiler_env, experiment, fit, reproduce, selection

    monkeypatch.setattr(selection, "compiler_env", lambda version="": compiler_env.CompilerEnv(version or "3.6.0"))

    def put(formula: Formula = attention_bytes, **more: Any) -> Stub:
        stub = Stub(formula, **more)
        for module in (reproduce, experiment, fit):
            monkeypatch.setattr(module, "compile_cells", stub)
        return stub

    return put
