"""A card and a compiler by formula, so that every time and ratio of a cost measurement can be done by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from oortriage.fix import cost, cost_plan
from oortriage.kernels.source import SourceSpec
from oortriage.ledger.allocation import Ledger
from oortriage.replay import live
from oortriage.replay.cells import Compilation
from oortriage.replay.compiler_env import CompilerEnv
from oortriage.replay.job import (
    Cell,
    Check,
    Job,
    Kernel,
    LiveKernel,
    LiveResult,
    Outcome,
    Registers,
    Timing,
)
from oortriage.replay.live import LocalCard

H200, T4 = LocalCard("NVIDIA H200", (9, 0), 1), LocalCard("Tesla T4", (7, 5), 1)
SOURCE, ENV = SourceSpec("vllm", "0.17.1", "wheel", "https://example.invalid/vllm.whl"), CompilerEnv("3.6.0")
BYTES = {(0, 32, 4): 81_920, (0, 16, 4): 49_152, (0, 32, 2): 49_152}


def settings_of(cell: Cell) -> tuple[int, int, int]:
    """Window, tile and warps as vLLM 0.17.1 launches: 16 only where a full layer decodes."""
    window = int(cell.shape["window"])
    tile = 16 if cell.shape["phase"] == "decode" and not window else 32
    return window, int(cell.overrides.get("TILE_SIZE", tile)), int(cell.overrides.get("num_warps", 4))


def sm75_local(window: int, tile: int, warps: int) -> int:
    """Bytes a thread that ptxas keeps in local memory."""
    return 1_400 if warps == 2 else 384 if window and tile == 32 else 0


class StubCard:
    """Answers jobs in place of the child; ``jobs`` are what it was given.

    Args:
        card: which card is there.
        time: ms of a launch (window, tile, warps) before drift.
        drift: by how much each cell of the job is slower than the one before.
        local: words a thread in local memory of the code that is loaded.
    """

    def __init__(
        self,
        card: LocalCard = H200,
        time: Callable[[int, int, int], float] = lambda _window, tile, _warps: float(tile),
        drift: float = 0.0,
        local: Callable[[int, int, int], int] = lambda *_: 96,
    ) -> None:
        self.card, self.time, self.drift, self.local = card, time, drift, local
        self.jobs: list[Job] = []
        self.change: Callable[[Cell, LiveResult], LiveResult] = lambda _cell, result: result

    def run_job(self, job: Job, _env: Any, done: Callable[[Outcome], None], **_: Any) -> None:
        self.jobs.append(job)
        for index, cell in enumerate(job.cells):
            result = self.change(cell, self._result(job, index, cell))
            done(Outcome(index, live=msgspec.structs.replace(result, environment=self.environment)))

    @property
    def environment(self) -> dict[str, str]:
        return {"device": self.card.name, "capability": ".".join(map(str, self.card.capability)), "torch": "2.11.0"}

    def _result(self, job: Job, index: int, cell: Cell) -> LiveResult:
        assert job.live
        settings = settings_of(cell)
        size = BYTES.get(settings, 51_200)
        base = LiveResult("ran", self.card.name, job.live.mode, required_bytes=size, limit_bytes=job.card.limit_bytes)
        if size > job.card.limit_bytes:
            return msgspec.structs.replace(base, status="out_of_resources")
        checks = () if cell in job.cells[:index] else (Check("prefill", 3e-7, 1e-5, 0),)
        ms = self.time(*settings) * (1 + self.drift * index)
        timings = tuple(
            Timing(one.name, ms, ms * 0.9, ms * 1.1, job.live.plan.runs, False, 1.0, 1.0)
            for one in job.live.plan.batches
            if one.taken_by == cell.shape["phase"]
        )
        kernels = (LiveKernel("attention", size, 200, self.local(*settings)), LiveKernel("reduce", 0, 20, 0))
        return msgspec.structs.replace(base, kernels=kernels, checks=checks, timings=timings)


def compiled(what: Compilation, cells: Sequence[Cell], **_: Any) -> tuple[list[Outcome], list[str]]:
    assert what.registers
    return [_outcome(index, cell) for index, cell in enumerate(cells)], []


def _outcome(index: int, cell: Cell) -> Outcome:
    window, tile, warps = settings_of(cell)
    local = sm75_local(window, tile, warps)
    registers = Registers(255 if local else 168, local + 8 if local else 0, local, local, 0, "ptxas 12.8.93")
    size = BYTES.get((window, tile, warps), 51_200)
    constants = {"TILE_SIZE": tile, "num_warps": warps}
    kernel = Kernel("attention", constants, size, 0, 32 * warps, Ledger((), size), registers=registers)
    return Outcome(index, kernels=(kernel,), files={"vllm/attention.py": "ab"})


@pytest.fixture
def stub_card(monkeypatch: pytest.MonkeyPatch) -> Callable[..., StubCard]:
    """Put a card and a compiler in place."""

    def put(*given: Any, **named: Any) -> StubCard:
        stub = StubCard(*given, **named)
        for module in (cost, cost_plan):
            monkeypatch.setattr(module, "compile_cells", compiled)
        for module in (cost, live):
            monkeypatch.setattr(module, "local_card", lambda _device=0: stub.card)
        monkeypatch.setattr(live, "run_job", stub.run_job)
        return stub

    return put
