"""Prediction beside the card: every way in which they can disagree is a finding, and the fastest is found."""

from __future__ import annotations

import pytest

from oortriage.ledger.allocation import Ledger
from oortriage.replay.job import Check, Kernel, LiveKernel, LiveResult, Outcome, Timing
from oortriage.replay.live_grid import LiveCell, LiveGrid, _cell, _finding, fastest, shrinking_tiles
from oortriage.replay.options import Options
from oortriage.report.live import live_lines

GOOD = Check("prefill", 3e-7, 1e-5, 0)


def predicted(size: int) -> Outcome:
    return Outcome(0, kernels=(Kernel("attention", {}, size, 0, 128, Ledger((), size)),))


def on_card(status="ran", size=49_152, **more) -> LiveResult:
    kernels = (LiveKernel("attention", size, 100, 0, more.pop("driver", size)),) if status == "ran" else ()
    return LiveResult(
        status, "NVIDIA H200", "emulated", required_bytes=size, limit_bytes=65_536, kernels=kernels, **more
    )


def timing(ms: float) -> Timing:
    return Timing("prefill", ms, ms, ms, 40, False, 1e12, 1e13)


@pytest.mark.parametrize(
    ("size", "result"),
    [
        (49_152, on_card(checks=(GOOD,))),
        (49_152, on_card(driver=None)),
        (81_920, on_card("out_of_resources", 81_920)),
    ],
)
def test_agreement(size: int, result: LiveResult) -> None:
    assert _cell({}, predicted(size), result, 65_536).agrees


@pytest.mark.parametrize(
    ("size", "result", "words"),
    [
        (49_152, on_card(size=50_000), "predicted 49152, on the card 50000"),
        (49_152, on_card("out_of_resources", 49_152), "out_of_resources"),
        (81_920, on_card(size=81_920), "81920 (ran)"),
        (49_152, on_card(driver=49_408), "predicted 49152"),
        (49_152, on_card(checks=(Check("decode", 0.3, 1e-5, 0),)), "decode is wrong"),
        (49_152, on_card(checks=(Check("mixed", 1e-7, 1e-5, 4),)), "4 not written"),
        (49_152, LiveResult("failed", "x", "native", message="illegal memory access"), "illegal memory access"),
    ],
)
def test_every_disagreement_is_a_finding(size: int, result: LiveResult, words: str) -> None:
    cell = _cell({"TILE_SIZE": 16}, predicted(size), result, 65_536)
    assert not cell.agrees
    assert words in _finding(cell)
    assert _finding(cell).startswith("TILE_SIZE=16")


def cell(settings, *times: float, agrees=True, status="ran") -> LiveCell:
    return LiveCell(settings, 1, True, on_card(status, timings=tuple(timing(ms) for ms in times)), agrees)


def test_the_fastest_of_what_fits_with_its_margin_over_tile_16() -> None:
    best = fastest(
        [cell({"TILE_SIZE": 16, "num_warps": 4}, 0.9, 3.6), cell({"TILE_SIZE": 32, "num_warps": 2}, 0.6, 2.7)]
    )
    assert best
    assert best.settings == {"TILE_SIZE": 32, "num_warps": 2}
    assert best.margin == pytest.approx((0.9 * 3.6 / 0.6 / 2.7) ** 0.5)
    assert "1.41 times as fast" in best.sentence


def test_a_wrong_or_refused_cell_is_never_the_fastest() -> None:
    assert fastest([cell({"TILE_SIZE": 32}, 0.1, agrees=False), cell({"TILE_SIZE": 16}, 0.9)]).settings == {
        "TILE_SIZE": 16
    }
    assert fastest([cell({"TILE_SIZE": 32}, status="out_of_resources")]) is None


def test_a_cell_without_room_does_not_count_as_disagreement() -> None:
    refused = LiveCell({}, 1, True, LiveResult("refused", "x", "native", message="others hold it"), agrees=False)
    grid = LiveGrid("native", "NVIDIA H200", "sm_90", 1, [refused], None)
    assert grid.agrees
    assert "not run, others hold it" in live_lines(grid)[1]


def test_the_failing_tile_then_every_smaller_one(monkeypatch) -> None:
    from oortriage.replay.compiler_env import CompilerEnv
    from oortriage.replay.selection import select

    monkeypatch.setattr("oortriage.replay.selection.compiler_env", lambda _: CompilerEnv("3.6.0"))
    chosen = select(Options(kernel="reference.attention", gpu="T4"))
    assert shrinking_tiles(chosen, {"TILE_SIZE": 64}) == [{}, {"TILE_SIZE": 32}, {"TILE_SIZE": 16}]
    assert shrinking_tiles(chosen, {}) == [{}]


def report(mode: str) -> str:
    result = LiveResult(
        "ran",
        "NVIDIA H200",
        mode,
        required_bytes=49_152,
        checks=(GOOD,),
        timings=(timing(0.5),),
        ceilings={"copy_bytes_per_second": 4e12, "tf32_flop_per_second": 4e13},
    )
    cells = [LiveCell({}, 49_152, True, result, agrees=True)]
    return "\n".join(live_lines(LiveGrid(mode, "NVIDIA H200", "sm_75", 65_536, cells, None)))


def test_the_report_says_error_time_and_reach() -> None:
    text = report("native")
    assert "agree in every cell; NVIDIA H200, as it is, limit 65,536 bytes" in text
    assert "as launched: ran, 49,152 bytes, error 3.0e-07 (at most 1e-05)" in text
    assert "25% of the FLOP/s, 25% of the bytes/s" in text
    assert "copy 4.00 TB/s, tf32 product 40 TFLOP/s" in text


def test_of_a_card_that_is_played_no_reach_is_claimed() -> None:
    text = report("emulated")
    assert "playing sm_75" in text
    assert "0.500 ms" in text
    assert "FLOP/s" not in text
