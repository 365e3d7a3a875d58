"""What goes to the child and comes back survives the way, and says which kernel counts."""

from __future__ import annotations

import msgspec
import pytest

from oortriage.gpu.virtual.adapter import Target
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.source import SourceSpec
from oortriage.ledger.allocation import Buffer, Ledger
from oortriage.replay.job import Cell, Failure, Job, Kernel, Outcome, Registers

LEDGER = Ledger((Buffer("K", "operand", "ttg.local_alloc", (32, 256), "f32", 32_768, 0, shares_with=("P",)),), 32_768)


def kernel(name: str, required: int, *, tuning: bool = False) -> Kernel:
    return Kernel(name, {"TILE_SIZE": 32}, required, 0, 128, Ledger((), required), tuning)


@pytest.mark.parametrize(
    "card", [Card(Target("cuda", 75, 32), 65_536), Card(Target("hip", "gfx942", 64), 65_536, "MI300X")]
)
@pytest.mark.parametrize("source", [None, SourceSpec("vllm", "0.17.1", "folder", "/src/vllm")])
def test_a_job_survives_the_way(card: Card, source: SourceSpec | None) -> None:
    cells = (
        Cell({"dtype": "float16", "window": 0, "scale": 0.5, "causal": True, "kv": None}, {"TILE_SIZE": 16}),
        Cell(),
    )
    job = Job("reference.attention", card, cells, source, registers=True, memory_bytes=1 << 30)
    assert msgspec.json.decode(msgspec.json.encode(job), type=Job) == job


def test_an_outcome_survives_the_way() -> None:
    whole = msgspec.structs.replace(
        kernel("attention", 32_768), ledger=LEDGER, registers=Registers(255, 8, 16, 24, 0, "ptxas 12.8.93")
    )
    outcome = Outcome(3, (whole,), None, {"vllm/envs.py": "ab"}, ("vllm.envs.X",), ("TILE",), "3.6.0")
    assert msgspec.json.decode(msgspec.json.encode(outcome), type=Outcome) == outcome
    failed = Outcome(0, failure=Failure("timeout", "too long"))
    assert msgspec.json.decode(msgspec.json.encode(failed), type=Outcome) == failed


def test_an_unknown_kind_of_failure_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"cell": 0, "failure": {"kind": "tired", "message": ""}}', type=Outcome)


def test_what_was_launched_in_earnest_counts() -> None:
    outcome = Outcome(0, (kernel("matmul", 98_304, tuning=True), kernel("matmul", 32_768), kernel("reduce", 128)))
    assert [one.required_bytes for one in outcome.launched] == [32_768, 128]
    assert outcome.largest
    assert outcome.largest.required_bytes == 32_768


def test_where_all_were_trials_they_count() -> None:
    outcome = Outcome(0, (kernel("matmul", 98_304, tuning=True), kernel("matmul", 65_536, tuning=True)))
    assert len(outcome.launched) == 2
    assert outcome.largest
    assert outcome.largest.required_bytes == 98_304


def test_nothing_launched_has_no_largest() -> None:
    assert Outcome(0).largest is None
    assert Outcome(0).launched == ()
