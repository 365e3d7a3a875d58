"""The text of a cost measurement: every figure of the table, what is open, and how to send it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from oortriage.fix.cost import measure
from oortriage.replay.job import Cell, LiveResult
from oortriage.report.cost import closing_text, cost_text
from tests.fix.costing import ENV, SOURCE, T4, StubCard, stub_card

__all__ = ["stub_card"]
Put = Callable[..., StubCard]


def times(_window: int, tile: int, warps: int) -> float:
    return {(16, 4): 1.0, (32, 4): 0.8, (32, 2): 0.5}[tile, warps]


def line_of(text: str, *words: str) -> list[str]:
    (line,) = [one for one in text.splitlines() if one.split()[: len(words)] == list(words)]
    return line.split()


def test_the_table_says_times_and_ratios(stub_card: Put) -> None:
    stub_card(time=times)
    text = cost_text(measure(SOURCE, ENV))
    assert line_of(text, "4", "2", "full", "prefill", "1", "x", "2048")[7:] == ["1.000", "refused", "=", "2.00"]
    assert line_of(text, "4", "2", "sliding", "prefill", "1", "x", "2048")[7:] == ["1.000", "1.25", "1.25", "2.00"]
    assert line_of(text, "1", "4", "full", "decode", "8", "x", "512")[7:] == ["1.000", "=", "=", "="]
    assert "vLLM 0.17.1's attention in FP32 with head size 256 on NVIDIA H200, playing sm_75, limit 65,536" in text
    assert "27 outputs held against float64, the largest error 3.0e-07" in text


def test_means_and_machine_code(stub_card: Put) -> None:
    stub_card(time=times)
    text = cost_text(measure(SOURCE, ENV))
    assert line_of(text, "all", "full", "sliding") == ["all", "full", "sliding", "prefill", "decode", "mixed"]
    assert line_of(text, "TILE16")[3:5] == ["1.00", "(1.00)"]  # only in decode does the control run on full layers
    assert line_of(text, "TILE16")[5:7] == ["1.00", "(0.80)"]
    assert line_of(text, "batches") == ["batches", "36", "18", "18", "12", "18", "6"]
    code = line_of(text, "sliding", "prefill", "2", "tile", "32,", "2", "warps")
    assert code[7:] == ["51,200", "255", "1,408", "/", "1,400", "1,400", "200", "384", "WARPS2"]
    assert line_of(text, "full", "prefill", "2", "tile", "32,", "4", "warps")[12:] == ["0", "-", "-", "control"]


def test_what_is_open_and_how_a_t4_owner_sends_it(stub_card: Put) -> None:
    stub_card(time=times)
    text = " ".join(cost_text(measure(SOURCE, ENV)).split())
    assert "recommended: TILE16-FULL" in text
    assert text.count("only a real sm_75 card can settle:") == 3
    assert "`oortriage patch measure --vllm 0.17.1 --format json --output t4.json` settles it" in text
    assert "attach the JSON (--format json --output FILE) to an issue of this project" in text
    assert "measured with capability 9.0, torch 2.11.0" in text


def test_on_a_t4_nothing_is_open(stub_card: Put) -> None:
    stub_card(T4, time=times)
    text = closing_text(measure(SOURCE, ENV), "t4.json")
    assert "recommended: WARPS2" in text
    assert "can settle" not in text
    assert "settles it" not in text
    assert "attach t4.json to an issue" in text


def test_a_problem_stands_at_the_top_and_in_its_rows(stub_card: Put) -> None:
    def spoil(cell: Cell, result: LiveResult) -> LiveResult:
        bad: dict[str, Any] = {"status": "failed", "message": "RuntimeError: \x1b[31mbad"}
        return msgspec.structs.replace(result, **bad) if cell.overrides == {"TILE_SIZE": 16} else result

    stub_card().change = spoil
    text = cost_text(measure(SOURCE, ENV))
    assert "PROBLEM: tile16, full, 4 x 2 heads, prefill 4 x 512: failed: RuntimeError: \\x1b[31mbad" in text
    assert line_of(text, "4", "2", "full", "prefill", "1", "x", "2048")[7:] == ["failed", "refused", "failed", "-"]
    assert "recommended:" not in text
    assert "no recommendation: TILE16 has not run every batch" in text
