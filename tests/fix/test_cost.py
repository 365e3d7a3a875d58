"""The cost of each rule: what is launched where, in which turns, and what the times say; by a stubbed card."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from oortriage.errors import OortriageError, UsageError
from oortriage.fix import cost as module
from oortriage.fix import cost_plan
from oortriage.fix import verify as verifying
from oortriage.fix.cost import in_words, machine_code, measure, summary, without_paths
from oortriage.fix.cost_plan import BATCHES, HEADS, candidates, places_of, turns_of
from oortriage.fix.cost_table import Cost, CostRow, Launch, drift, geometric_mean, means, with_ratios
from oortriage.kernels.source import SourceError, find_source, open_source
from oortriage.replay.compiler_env import compiler_env
from oortriage.replay.job import Cell, Check, LiveResult, Outcome
from oortriage.replay.live import NoCardError
from tests.conftest import ROOT
from tests.fix.costing import ENV, H200, SOURCE, T4, StubCard, compiled, stub_card

__all__ = ["stub_card"]
Put = Callable[..., StubCard]
T16, T32, W2 = Launch(16, 4), Launch(32, 4), Launch(32, 2)


def rows_of(found: Cost, rule: str, layer: str, batch: str = "prefill 1 x 2048") -> list[CostRow]:
    return [row for row in found.rows if (row.rule, row.layer, row.batch) == (rule, layer, batch)]


def mean_of(found: Cost, rule: str, group: str) -> Any:
    return next(one for one in found.means if (one.rule, one.group) == (rule, group))


def test_a_rule_changes_only_the_launches_that_its_conditions_name(stub_card: Put) -> None:
    stub_card()
    places, files = places_of(candidates("0.17.1"), SOURCE, ENV, use_cache=False)
    assert files == {"vllm/attention.py": "ab"}
    assert {(one.layer, one.phase): tuple(one.launches.values()) for one in places} == {
        ("full", "prefill"): (T32, T16, T16, W2),
        ("full", "decode"): (T16, T16, T16, T16),
        ("sliding", "prefill"): (T32, T16, T32, W2),
        ("sliding", "decode"): (T32, T16, T32, W2),
    }
    assert list(places[0].launches) == ["control", "tile16", "tile16-full", "warps2"]
    assert list(places[0].forced.values()) == [{}, {"TILE_SIZE": 16}, {"num_warps": 2}]


def test_launches_of_one_place_run_to_and_fro(stub_card: Put) -> None:
    stub_card()
    places, _ = places_of(candidates(""), SOURCE, ENV, use_cache=False)
    turns = list(turns_of(places))
    assert [one.launch for one in turns[:8]] == [T32, T16, W2, W2, T16, T32, T16, T16]
    assert len(turns) == 2 * len(HEADS) * (3 + 1 + 3 + 3)
    assert all(sum(one.cell == other.cell for other in turns) == 2 for one in turns)


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("0.13.0", ["tile16", "warps2"]),
        ("0.14.1", ["tile16", "tile16-full", "warps2"]),
        ("0.33.0+cu129", ["tile16", "tile16-full", "warps2"]),
        ("", ["tile16", "tile16-full", "warps2"]),
    ],
)
def test_candidates_by_release(version: str, names: list[str]) -> None:
    assert [one.name for one in candidates(version)] == names


def test_one_job_times_prefill_decode_and_mixed_and_no_ceilings(stub_card: Put) -> None:
    stub = stub_card()
    found = measure(SOURCE, ENV)
    (job,) = stub.jobs
    assert job.live
    assert (job.card.target.name, job.card.limit_bytes, job.live.check) == ("sm_75", 65_536, True)
    assert (job.live.plan.ceilings, job.live.plan.batches) == (False, BATCHES)
    assert {row.kind for row in found.rows} == {"prefill", "decode", "mixed"}
    assert len({(row.kv_heads, row.q_per_kv, row.layer, row.batch) for row in found.rows}) == 3 * 2 * len(BATCHES)
    assert found.status == "passed"
    assert found.exit_code == 0
    # One check a distinct launch that ran: of 30, three are the control's on full layers, which is refused.
    assert (found.checks, found.largest_error) == (27, 3e-7)


def test_ratios_by_hand(stub_card: Put) -> None:
    stub_card(time=lambda window, tile, warps: tile * (3.0 if window else 2.0) / (2 if warps == 2 else 1))
    found = measure(SOURCE, ENV)
    (full, *_), (sliding, *_) = rows_of(found, "warps2", "full"), rows_of(found, "warps2", "sliding")
    assert (full.median_ms, full.to_tile16, full.to_control) == (32.0, 1.0, None)
    assert (sliding.median_ms, sliding.to_tile16, sliding.to_control) == (48.0, 1.0, 2.0)
    half = rows_of(found, "tile16-full", "sliding")[0]
    assert (half.median_ms, half.to_tile16, half.to_control) == (96.0, 0.5, 1.0)
    assert (half.low_ms, half.high_ms) == (pytest.approx(96 * 0.9), pytest.approx(96 * 1.1))


def test_on_full_layers_the_control_is_refused_and_on_sliding_ones_it_is_the_base(stub_card: Put) -> None:
    stub_card()
    found = measure(SOURCE, ENV)
    assert {row.status for row in rows_of(found, "control", "full")} == {"out_of_resources"}
    assert {row.status for row in rows_of(found, "control", "sliding")} == {"ran"}
    assert not found.problems  # what the control does is no fault of a candidate
    # Beyond vLLM's bound a decode step is taken by prefill's kernel, which is refused as well.
    assert {row.status for row in rows_of(found, "control", "full", "decode 160 x 256")} == {"out_of_resources"}
    assert {row.status for row in rows_of(found, "control", "full", "decode 8 x 512")} == {"ran"}


def test_a_card_that_grows_slower_favours_nobody(stub_card: Put) -> None:
    stub_card(drift=0.01)
    found = measure(SOURCE, ENV)
    for row in rows_of(found, "warps2", "full") + rows_of(found, "tile16-full", "sliding"):
        assert row.to_tile16 == pytest.approx(0.5)
    assert found.drift > 1.01


def test_means_by_hand(stub_card: Put) -> None:
    stub_card(time=lambda _window, tile, warps: tile / warps)
    found = measure(SOURCE, ENV)
    # Of six batches four are taken by prefill's launch, and only that changes on full layers.
    assert mean_of(found, "warps2", "full").to_tile16 == pytest.approx(0.25 ** (4 / 6))
    assert mean_of(found, "warps2", "full").alike == 6
    assert mean_of(found, "warps2", "sliding").to_tile16 == pytest.approx(0.25)
    assert mean_of(found, "warps2", "sliding").to_control == pytest.approx(0.5)
    assert mean_of(found, "warps2", "all").rows == 36
    assert mean_of(found, "tile16-full", "full").to_tile16 == 1.0
    assert mean_of(found, "tile16", "mixed").to_tile16 == 1.0


def test_geometric_means_and_drift_of_nothing() -> None:
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert geometric_mean([]) is None
    assert drift([]) == 1.0
    row = CostRow("warps2", "full", 4, 2, "prefill", "prefill", W2, "ran", 3.0, (3.0, 3.0))
    assert with_ratios([row])[0].to_tile16 is None
    assert means([row], ["warps2"]) == []


def test_machine_code_of_both_compilers(stub_card: Put) -> None:
    stub_card()
    found = measure(SOURCE, ENV)
    assert len(found.code) == 2 * (3 + 1 + 3 + 3)  # two and four query heads a KV head
    one = next(one for one in found.code if (one.layer, one.phase, one.launch) == ("sliding", "prefill", W2))
    assert (one.registers, one.spill_stores, one.spill_loads, one.local_bytes) == (255, 1_408, 1_400, 1_400)
    assert (one.driver_target, one.driver_registers, one.driver_local_bytes) == ("sm_90", 200, 4 * 96)
    refused = next(one for one in found.code if one.launch == T32 and one.layer == "full")
    assert (refused.driver_registers, refused.shared_bytes) == (None, 81_920)


def faster_with_two_warps(_window: int, tile: int, warps: int) -> float:
    return {(16, 4): 1.0, (32, 4): 0.9, (32, 2): 0.5}[tile, warps]


def test_a_time_that_hides_spills_is_no_reason(stub_card: Put) -> None:
    stub_card(time=faster_with_two_warps)
    found = measure(SOURCE, ENV)
    # 96 words are 384 bytes: as many as ptxas keeps of tile 32 with four warps, fewer than with two.
    assert found.recommended == "tile16-full"
    assert found.recommendation.startswith("TILE16-FULL: 1.05 times as fast as TILE16")
    assert "WARPS2 is 1.78 times as fast (full 1.59, sliding 2.00), which is no proof" in found.recommendation
    assert "1,400 bytes a thread in local memory (full prefill), the code that was timed 384" in found.recommendation
    assert len(found.open) == 3
    assert "WARPS2" in found.open[1]
    assert "255 registers, 1,408 / 1,400 bytes" in found.open[1]


def test_a_real_t4_settles_it(stub_card: Put) -> None:
    stub_card(T4, time=faster_with_two_warps)
    found = measure(SOURCE, ENV)
    assert (found.mode, found.recommended, found.open) == ("native", "warps2", [])
    assert found.recommendation.startswith("WARPS2: 1.78 times as fast as TILE16, the geometric mean of 36 batches")
    assert "no proof" not in found.recommendation


def test_forced_natively_another_card_settles_nothing(stub_card: Put) -> None:
    stub_card(time=faster_with_two_warps)
    found = measure(SOURCE, ENV, "native")
    assert (found.mode, found.target) == ("native", "sm_90")
    assert "ran its own code" in found.open[0]
    assert {row.status for row in rows_of(found, "control", "full")} == {"ran"}


def test_a_gain_that_is_less_than_the_drift_is_none(stub_card: Put) -> None:
    stub_card(T4, time=lambda _window, tile, warps: 1.0 if (tile, warps) == (16, 4) else 0.999, drift=0.01)
    found = measure(SOURCE, ENV)
    assert found.recommended == "tile16"
    assert found.recommendation.startswith("TILE16: no rule whose time can be trusted gains more")
    assert f"{found.drift:.3f} times" in found.recommendation


def test_where_every_other_time_hides_spills_tile16_stays(stub_card: Put) -> None:
    stub_card(local=lambda *_: 0, time=faster_with_two_warps)
    found = measure(SOURCE, ENV)
    assert found.recommendation.startswith("TILE16: no other rule's time on NVIDIA H200 can be trusted for sm_75.")


@pytest.mark.parametrize(
    ("change", "status", "layer"),
    [
        ({"checks": (Check("prefill", 0.3, 1e-5, 7),)}, "wrong", "failed"),
        ({"status": "failed", "message": "RuntimeError: illegal memory access"}, "failed", "failed"),
        ({"status": "out_of_resources"}, "out_of_resources", "failed"),
        ({"status": "refused", "message": "others hold it"}, "refused", "not_run"),
        ({"timings": ()}, "failed", "failed"),
    ],
)
def test_a_candidate_without_a_right_output_or_a_time_is_out(
    stub_card: Put, change: dict[str, Any], status: str, layer: str
) -> None:
    def spoil(cell: Cell, result: LiveResult) -> LiveResult:
        return msgspec.structs.replace(result, **change) if cell.overrides == {"num_warps": 2} else result

    stub_card(T4, time=faster_with_two_warps).change = spoil
    found = measure(SOURCE, ENV)
    assert {row.status for row in rows_of(found, "warps2", "full")} == {status}
    assert (found.status, found.exit_code) == (layer, 1)
    assert len(found.problems) == 3 * (4 + 6)
    assert found.recommended == "tile16-full"
    assert f"WARPS2 is out: {status.replace('_', ' ')} in 30 rows" in found.recommendation
    assert "rows have no time: warps2, full, 4 x 2 heads" in summary(found)
    assert not [one for one in found.means if (one.rule, one.group) == ("warps2", "sliding")]


def test_without_tile16_nothing_is_recommended(stub_card: Put) -> None:
    def spoil(cell: Cell, result: LiveResult) -> LiveResult:
        return msgspec.structs.replace(result, status="failed") if cell.overrides == {"TILE_SIZE": 16} else result

    stub_card(T4).change = spoil
    found = measure(SOURCE, ENV)
    assert found.recommended == ""
    assert "TILE16 has not run every batch" in found.recommendation


def test_nothing_in_a_result_names_the_machine(stub_card: Put) -> None:
    def lost(cell: Cell, result: LiveResult) -> LiveResult:
        said = f"OSError: {platform.node()}: /home/somebody/.cache/x.so: cannot open"
        return msgspec.structs.replace(result, status="failed", message=said) if cell.overrides else result

    stub_card().change = lost
    folder = msgspec.structs.replace(SOURCE, kind="folder", location="/home/somebody/vllm")
    text = msgspec.json.encode(measure(folder, ENV)).decode()
    assert "somebody" not in text
    assert "OSError: (host): (path): cannot open" in text
    assert without_paths("1/2 of C:\\Users\\me\\x.dll and /tmp/a/b: no") == "1/2 of (path) and (path): no"


def test_without_a_card_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch, stub_card: Put) -> None:
    stub_card()
    asked: list[Any] = []

    def none(_device: int = 0) -> None:
        raise NoCardError("no device 0")

    monkeypatch.setattr(module, "local_card", none)
    monkeypatch.setattr(cost_plan, "compile_cells", lambda *given, **_: asked.append(given))
    with pytest.raises(NoCardError):
        measure(SOURCE, ENV)
    assert asked == []


def test_a_mode_that_is_none_is_told_before_anything_is_compiled(stub_card: Put) -> None:
    stub = stub_card()
    with pytest.raises(UsageError, match="native or emulated"):
        measure(SOURCE, ENV, "sideways")
    assert stub.jobs == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"TILE_SIZE": 16, "num_warps": 4}, "nothing to measure"), ({"num_warps": 4}, "0.11.0 or later")],
)
def test_a_policy_that_no_rule_changes(
    stub_card: Put, monkeypatch: pytest.MonkeyPatch, settings: dict[str, int], words: str
) -> None:
    stub_card()

    def other(*given: Any, **named: Any) -> tuple[list[Outcome], list[str]]:
        outcomes, notes = compiled(*given, **named)
        kernels = [msgspec.structs.replace(one.kernels[0], settings=settings) for one in outcomes]
        return [
            msgspec.structs.replace(one, kernels=(kernel,)) for one, kernel in zip(outcomes, kernels, strict=True)
        ], notes

    monkeypatch.setattr(cost_plan, "compile_cells", other)
    with pytest.raises(UsageError, match=words):
        measure(SOURCE, ENV)


def layer_of(live: str) -> Any:
    return verifying._cost(SOURCE, ENV, live, use_cache=False)


def test_the_layer_of_a_verification(stub_card: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_card(T4, time=faster_with_two_warps)
    done = layer_of("auto")
    assert done.status == "passed"
    assert "36 batches on Tesla T4, native, 27 outputs" in done.detail
    assert "WARPS2: 1.78 times" in done.detail
    off = layer_of("off")
    assert off.status == "not_run"
    assert off.detail == f"needs a card for the times; {in_words(machine_code(SOURCE, ENV))}"
    assert "full layers: tile 16, 4 warps: 168 registers, 0 / 0 bytes spilled; tile 32, 2 warps: 255" in off.detail
    assert "sliding layers: tile 32, 4 warps: 255 registers, 392 / 384 bytes spilled" in off.detail

    def none(_device: int = 0) -> None:
        raise NoCardError("no device 0")

    monkeypatch.setattr(module, "local_card", none)
    assert layer_of("auto").detail.startswith("needs a card for the times; here: no device 0; ptxas for sm_75")


def test_a_layer_with_a_wrong_candidate_fails(stub_card: Put) -> None:
    stub_card(H200).change = lambda cell, result: (
        msgspec.structs.replace(result, checks=(Check("mixed", 1e-7, 1e-5, 4),)) if cell.overrides else result
    )
    done = layer_of("auto")
    assert done.status == "failed"
    assert "wrong: mixed: error 1.0e-07 of at most 1e-05, 4 not written" in done.detail


def test_a_kernel_that_does_not_compile_says_so(stub_card: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_card()
    monkeypatch.setattr(
        cost_plan, "compile_cells", lambda _what, cells, **_: ([Outcome(index) for index in range(len(cells))], [])
    )
    with pytest.raises(OortriageError, match="does not compile: no launch"):
        machine_code(SOURCE, ENV)


@pytest.mark.index
@pytest.mark.parametrize("version", ["0.11.0", "0.17.1", "0.33.0"])
def test_the_real_wrapper_takes_each_batch_by_the_launch_that_is_written_for_it(version: str) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    try:
        open_source(find_source("vllm", version)).has("vllm/envs.py")
    except SourceError as problem:
        pytest.skip(f"vLLM's source cannot be read here: {problem}")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("launched.py")), version],
        env={**compiler_env("").variables(), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    decoding = {"full": 16, "sliding": 16 if version == "0.11.0" else 32}
    taken = {one.name: one.taken_by for one in BATCHES}
    found = json.loads(done.stdout)
    assert len(found) == 3 * 2 * len(BATCHES)
    for batch, layer, launches in found:
        whole = taken[batch] == "prefill"  # in one go; else split along the context, and put together again
        tile = 32 if whole else decoding[layer]
        assert [one for _, one in launches] == [tile] * (1 if whole else 2), (batch, layer)
        assert (launches[-1][0] == "reduce_segments") != whole, (batch, layer)
