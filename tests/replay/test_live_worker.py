"""The child's part that needs no card: which batches a cell gets, and which cells are checked."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from oortriage.gpu.card.timing import Timed
from oortriage.gpu.virtual.adapter import Target
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.live import CHECKED, TIMED, Batch, LiveCase
from oortriage.kernels.registry import find_recipe
from oortriage.replay import live_worker
from oortriage.replay.job import Cell, Job, LiveAsk, LiveResult, Timing, TimingPlan

torch = pytest.importorskip("torch")
T4 = Card(Target("cuda", 75, 32), 65_536, "T4")
PREFILL, DECODE = Cell({"phase": "prefill", "dtype": "float32"}), Cell({"phase": "decode", "dtype": "float32"})


@pytest.mark.parametrize(
    ("batch", "phase"),
    [
        (TIMED[0], "prefill"),
        (TIMED[2], "decode"),
        (CHECKED[2], "prefill"),  # mixed
        (Batch("decode 160", ((1, 9),) * 160, phase="prefill"), "prefill"),
    ],
)
def test_a_batch_belongs_to_the_phase_whose_launch_takes_it(batch: Batch, phase: str) -> None:
    assert live_worker._wanted(batch, PREFILL) == (phase == "prefill")
    assert live_worker._wanted(batch, DECODE) == (phase == "decode")
    assert live_worker._wanted(batch, Cell())


@pytest.mark.parametrize("ceilings", [True, False])
def test_a_cell_that_is_there_again_is_timed_and_not_checked(
    monkeypatch: pytest.MonkeyPatch, *, ceilings: bool
) -> None:
    asks: list[LiveAsk] = []
    measured: list[str] = []

    def cell(_job: Job, ask: LiveAsk, *_: object) -> LiveResult:
        asks.append(ask)
        return LiveResult("ran", "H200", "native", timings=(Timing("x", 1, 1, 1, 20, False, 1, 1),))

    def reach(dtype: str) -> dict[str, float]:
        measured.append(dtype)
        return {"copy_bytes_per_second": 1.0}

    monkeypatch.setattr(live_worker, "_cell", cell)
    monkeypatch.setattr(live_worker, "_environment", lambda _: {"device": "H200"})
    monkeypatch.setattr(live_worker, "ceilings", reach)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)
    cells = (PREFILL, DECODE, DECODE, PREFILL)
    ask = LiveAsk("native", plan=TimingPlan(TIMED[:1], 20, ceilings=ceilings))
    job = Job("reference.attention", T4, cells, live=ask)
    found = list(live_worker.live_cells(job, find_recipe("reference.attention"), None))
    assert [one.check for one in asks] == [True, True, False, False]
    assert all(one.time and one.plan == ask.plan for one in asks)
    assert measured == (["float32"] if ceilings else [])
    assert [bool(one.live and one.live.ceilings) for one in found] == [ceilings] * 4


def test_a_plan_survives_the_way_to_the_child() -> None:
    ask = LiveAsk(
        "emulated", plan=TimingPlan((Batch("decode 160", ((1, 9),) * 2, phase="prefill"),), 7, ceilings=False)
    )
    assert msgspec.json.decode(msgspec.json.encode(ask), type=LiveAsk) == ask


class Kernel:
    """Writes what it should, and notes the batches that it is called with."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def live(self, _library: object, _shape: object, batch: Batch, _device: str, _seed: int, copies: int) -> LiveCase:
        outputs = [torch.zeros(4) for _ in range(copies)]

        def call(index: int) -> None:
            self.called.append(batch.name)
            outputs[index].fill_(1)

        return LiveCase(call, outputs, lambda: torch.ones(4, dtype=torch.float64), 8, 8)


@pytest.mark.parametrize(("cell", "checked"), [(PREFILL, ["prefill", "mixed"]), (DECODE, ["decode"])])
@pytest.mark.parametrize("check", [True, False])
def test_what_is_checked_and_timed(
    monkeypatch: pytest.MonkeyPatch, cell: Cell, checked: list[str], *, check: bool
) -> None:
    runs: list[int] = []
    profiled: list[str] = []

    def timed(call: Callable[[int], object], copies: int, count: int) -> Timed:
        runs.append(count)
        call(copies - 1)
        return Timed(2.0, 1.0, 3.0, count, graph=False)

    def profile(call: Callable[[], object]) -> dict[str, int]:
        call()
        profiled.append("x")
        return {"attention": 49_152}

    monkeypatch.setattr(live_worker, "time_call", timed)
    monkeypatch.setattr(live_worker, "driver_bytes", profile)
    monkeypatch.setattr(live_worker, "_copies", lambda _: 2)
    monkeypatch.setattr(live_worker, "_make_sure_of_room", lambda _: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    kernel = Kernel()
    plan = TimingPlan((Batch("decode 160", ((1, 9),) * 160, phase="prefill"), Batch("decode 8", ((1, 9),) * 8)), 20)
    job = Job("vllm.unified_attention", T4, (cell,))
    ask = LiveAsk("emulated", check=check, plan=plan)
    checks, timings, seen = live_worker._run(job, ask, kernel.live, None, cell)
    assert [one.batch for one in checks] == (checked if check else [])
    assert all(one.passed and one.tolerance == 1e-5 for one in checks)
    assert [(one.batch, one.median_ms, one.runs) for one in timings] == [
        ("decode 160" if cell is PREFILL else "decode 8", 2.0, 20)
    ]
    assert (len(profiled), bool(seen)) == (len(checked), True) if check else (0, False)
    # A cell that is only timed is launched once before, for it may not fit.
    assert kernel.called[0] == checked[0]
    assert runs == [20]
