"""Reports of compiled kernels: as reviewed, no more than JSON says, within the width, and nothing acts on a reader."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from oortriage.gpu.occupancy import Occupancy
from oortriage.kernels._interface import Parameter, Recipe
from oortriage.kernels.registry import all_recipes
from oortriage.ledger.allocation import Ledger
from oortriage.replay.experiment import Experiment, GridCell, Recommendation
from oortriage.replay.fit import Fit, Row
from oortriage.replay.job import Failure, Registers
from oortriage.replay.reproduce import Match, Reproduction
from oortriage.report._interface import Style
from oortriage.report.replay import experiment_report, fit_report, recipe_list, recipe_page, reproduction_report
from tests.report._made import hostile
from tests.report.draw._made import ISSUE, LIMIT
from tests.report.test_text import active

WIDTHS = [60, 80, 120]
SETTINGS = {"dtype": "float32", "head_size": 256, "window": 0, "phase": "prefill", "TILE_SIZE": 32}


def reproduction(**fields: Any) -> Reproduction:
    base: dict[str, Any] = {
        "schema_version": 1,
        "verdict": "reproduced",
        "kernel": "vllm.unified_attention",
        "function": "kernel_unified_attention_2d",
        "target": "sm_75",
        "gpu": "Tesla T4",
        "triton": "3.6.0",
        "source": "vllm 0.17.1, its wheel",
        "settings": SETTINGS,
        "constants": {"TILE_SIZE": 32, "num_warps": 4, "num_stages": 3},
        "required_bytes": 81_920,
        "limit_bytes": LIMIT,
        "limit_from": "log",
        "fits": False,
        "over_bytes": 16_384,
        "printed_bytes": 81_920,
        "printed_from": "log",
        "buffers": list(ISSUE.buffers),
        "by_role": {"operand": 81_920},
        "exact_settings": [Match({**SETTINGS, "block_size": one}, 81_920, "k") for one in (16, 32)],
        "origin": {"dtype": "log line 20", "head_size": "log line 7", "window": "--window"},
        "assumptions": ["assumed: phase = prefill (what the batch does)", "stand-in used for vllm.envs.VLLM_X"],
        "notes": ["the log is of Triton 3.2.0, compiled with 3.6.0; `--triton 3.2.0` compiles with its own"],
    }
    return Reproduction(**{**base, **fields})


NOTHING: dict[str, Any] = {
    "required_bytes": None,
    "fits": None,
    "over_bytes": None,
    "buffers": [],
    "function": "",
    "by_role": {},
}
REPRODUCTIONS = {
    "reproduced": reproduction(),
    "other_settings": reproduction(
        verdict="reproduced_with_other_settings",
        changed={"head_size": 256, "window": 1024},
        notes=["head_size = 256 was tried; the default is 128"],
    ),
    "not_reproduced": reproduction(
        verdict="not_reproduced",
        printed_bytes=98_304,
        limit_from="table",
        exact_settings=[],
        nearest=[Match({**SETTINGS, "head_size": 512}, 98_000), Match(SETTINGS, 81_920)],
    ),
    "computed": reproduction(
        verdict="computed", printed_bytes=None, printed_from="", limit_from="table", exact_settings=[],
        limit_bytes=101_376, fits=True, over_bytes=0, origin={}, assumptions=[], notes=[],
    ),
    "registers": reproduction(
        registers=Registers(255, 1_932, 2_916, 480, 0, "ptxas 12.8"),
        occupancy=Occupancy(1, 4, 0.125, ("shared_memory",), 1, 2, 8, 16),
        tensor_memory_columns=128,
        others=[Match({"BLOCK": 4}, 512, "reduce_segments")],
    ),
    "failed": reproduction(
        verdict="failed", printed_bytes=None, printed_from="", exact_settings=[], **NOTHING,
        failure=Failure("does_not_compile", "CompilationError: incompatible dimensions, at 4:20 of the kernel: i + j"),
    ),
}  # fmt: skip


def experiment(**fields: Any) -> Experiment:
    best = Recommendation(
        {"num_stages": 3, "TILE_SIZE": 16}, "TILE_SIZE 32 -> 16", 49_152, 32_768, 16_384, 0,
        "TILE_SIZE 32 -> 16 frees 32,768 bytes: 49,152 of 65,536", ("num_warps 4 -> 2: 49,152 bytes, spills 1,932 bytes a thread",),
    )  # fmt: skip
    cells = [
        GridCell(
            {"num_stages": stages, "TILE_SIZE": tile}, size, size <= LIMIT, "k", Registers(64, spill, 0, 0, 0, "ptxas")
        )
        for stages in (1, 3)
        for tile, size, spill in ((16, 49_152, 0), (32, 81_920, 12))
    ] + [GridCell({"num_stages": 1, "TILE_SIZE": 17}, None, None, note="arange's range must be a power of 2")]
    base: dict[str, Any] = {
        "schema_version": 1,
        "kernel": "vllm.unified_attention",
        "target": "sm_75",
        "gpu": "Tesla T4",
        "triton": "3.6.0",
        "source": "vllm 0.17.1, its wheel",
        "limit_bytes": LIMIT,
        "factors": {"num_stages": [1, 3], "TILE_SIZE": [16, 32, 17]},
        "baseline": {"num_stages": 3, "TILE_SIZE": 32},
        "baseline_bytes": 81_920,
        "cells": cells,
        "effects": {"num_stages": 0, "TILE_SIZE": 32_768, "num_warps": None},
        "interactions": {"num_stages x TILE_SIZE": 64},
        "recommendation": best,
        "sentence": "num_stages moves 0 bytes on sm_75; TILE_SIZE moves up to 32,768; " + best.sentence + ".",
        "assumptions": ["assumed: block_size = 16 (tokens a page of the KV cache)"],
        "notes": ["the effect of num_warps cannot be told: fewer than two of its levels compile"],
    }
    return Experiment(**{**base, **fields})


def row(**fields: Any) -> Row:
    base: dict[str, Any] = {
        "gpu": "T4", "target": "sm_75", "version": "0.17.1", "layer_kind": "full attention", "layers": 5,
        "head_size": 256, "window": 0, "dtype": "float32", "phase": "prefill", "required_bytes": 81_920,
        "limit_bytes": LIMIT, "fits": False, "ledger": ISSUE, "note": "",
    }  # fmt: skip
    return Row(**{**base, **fields})


def fit(**fields: Any) -> Fit:
    rows = [
        row(),
        row(gpu="RTX 2080 Ti"),
        row(dtype="bfloat16", required_bytes=49_152, fits=True, ledger=None, note="this card has no bfloat16; serving engines refuse it"),
        row(layer_kind="sliding window 1024", layers=29, window=1024, required_bytes=None, fits=None, ledger=None, note="no"),
    ]  # fmt: skip
    base: dict[str, Any] = {
        "schema_version": 1, "model": "Gemma3ForConditionalGeneration", "kernel": "vllm.unified_attention",
        "triton": "3.6.0", "rows": rows, "since": ["T4, full attention, float32: does not fit from 0.12.0 on"],
        "assumptions": ["assumed: block_size = 16 (tokens a page of the KV cache)"], "notes": ["head size 256 = x"],
    }  # fmt: skip
    return Fit(**{**base, **fields})


def every(name: str, style: Style) -> list[str]:
    return [
        *(reproduction_report(one, name, style) for one in REPRODUCTIONS.values()),
        experiment_report(experiment(), name, style),
        fit_report(fit(), name, style),
    ]


@pytest.mark.parametrize("name", ["text", "markdown"])
@pytest.mark.parametrize("which", sorted(REPRODUCTIONS))
def test_a_reproduction_is_as_reviewed(which: str, name: str, snapshot: SnapshotAssertion) -> None:
    assert reproduction_report(REPRODUCTIONS[which], name, Style(width=80)) == snapshot


@pytest.mark.parametrize("name", ["text", "markdown", "csv"])
def test_an_experiment_is_as_reviewed(name: str, snapshot: SnapshotAssertion) -> None:
    assert experiment_report(experiment(), name, Style(width=80)) == snapshot


@pytest.mark.parametrize("name", ["text", "markdown"])
def test_a_fit_is_as_reviewed(name: str, snapshot: SnapshotAssertion) -> None:
    assert fit_report(fit(), name, Style(width=80)) == snapshot


@pytest.mark.parametrize("width", WIDTHS)
def test_lines_keep_the_width(width: int) -> None:
    for report in every("text", Style(width=width)):
        for line in report.splitlines():
            assert cell_len(line) <= width, line


@pytest.mark.parametrize("width", WIDTHS)
def test_no_blank_lines_pile_up(width: int) -> None:
    for report in every("text", Style(width=width)):
        assert "\n\n\n" not in report
        assert report.endswith("\n")
        assert not report.endswith("\n\n")
        assert not report.startswith("\n")
        assert not [line for line in report.splitlines() if line != line.rstrip()]


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+", text.replace(",", "")))


@pytest.mark.parametrize("which", sorted(REPRODUCTIONS))
def test_text_says_no_figure_that_json_lacks(which: str) -> None:
    result = REPRODUCTIONS[which]
    said = reproduction_report(result, "text", Style(width=120))
    head = said.partition("Shared memory of one block")[0]  # the drawing's own tests look after the drawing
    tail = said.rpartition("\n\n")[2]
    written = json.dumps(json.loads(reproduction_report(result, "json", Style())), ensure_ascii=False)
    counted = {str(len(result.exact_settings)), "512", str(result.limit_bytes - (result.required_bytes or 0))}
    assert numbers(head + tail) <= numbers(written) | counted
    for note in (*result.assumptions, *result.notes):
        assert note in " ".join(said.split())


def test_json_of_a_reproduction_keeps_the_contract() -> None:
    found = json.loads(reproduction_report(reproduction(), "json", Style()))
    assert (found["required_bytes"], found["limit_bytes"], found["fits"]) == (81920, 65536, False)
    assert {"name", "shape", "dtype", "bytes", "offset", "file", "line", "shares_with"} <= set(found["buffers"][0])
    assert isinstance(found["assumptions"], list)
    assert (found["triton"], found["target"]) == ("3.6.0", "sm_75")


def test_json_of_the_others_keeps_the_contract() -> None:
    found = json.loads(experiment_report(experiment(), "json", Style()))
    assert found["cells"][0]["settings"] == {"num_stages": 1, "TILE_SIZE": 16}
    assert (found["cells"][0]["required_bytes"], found["cells"][0]["fits"]) == (49152, True)
    assert found["effects"]["TILE_SIZE"] == 32768
    assert found["recommendation"]["settings"] == {"num_stages": 3, "TILE_SIZE": 16}
    (first, *_) = json.loads(fit_report(fit(), "json", Style()))["rows"]
    assert {"gpu", "layer_kind", "dtype", "required_bytes", "limit_bytes", "fits"} <= set(first)


def test_csv_has_a_line_a_cell() -> None:
    lines = list(csv.DictReader(io.StringIO(experiment_report(experiment(), "csv", Style()))))
    assert len(lines) == 5
    assert lines[0] == {
        "num_stages": "1", "TILE_SIZE": "16", "required_bytes": "49152", "fits": "True", "registers": "64",
        "spill_bytes": "0", "note": "",
    }  # fmt: skip
    assert (lines[-1]["required_bytes"], lines[-1]["fits"], lines[-1]["note"]) == (
        "",
        "",
        "arange's range must be a power of 2",
    )


def test_rows_of_one_ledger_share_its_drawing() -> None:
    text = fit_report(fit(), "text", Style(width=120))
    assert text.count("Shared memory of one block") == 1
    assert (
        "T4, 0.17.1, full attention, float32, prefill; RTX 2080 Ti, 0.17.1, full attention, float32, prefill:" in text
    )


def hostile_reports(text: str, name: str) -> list[str]:
    buffers = [msgspec.structs.replace(one, name=text, file=text, text=text) for one in ISSUE.buffers]
    ledger = Ledger(tuple(buffers), ISSUE.total_bytes)
    settings_ = {"dtype": text}
    style = Style(width=80)
    one = reproduction(
        kernel=text, function=text, gpu=text, source=text, settings=settings_, buffers=buffers, changed=settings_,
        assumptions=[text], notes=[text], origin={text: text}, others=[Match(settings_, 3, text)],
        verdict="reproduced_with_other_settings",
    )  # fmt: skip
    failed = reproduction(verdict="failed", failure=Failure("crashed", text), **NOTHING)
    grid = experiment(
        kernel=text, gpu=text, source=text, baseline=settings_, factors={"dtype": [text]}, sentence=text, notes=[text],
        cells=[GridCell(settings_, None, None, note=text), GridCell({"dtype": "x"}, 5, True)], effects={text: 0},
        assumptions=[text], recommendation=None, interactions={text: 5},
    )  # fmt: skip
    rows = [row(gpu=text, layer_kind=text, dtype=text, version=text, phase=text, note=text, ledger=ledger)]
    fits = fit(model=text, rows=rows, notes=[text], since=[text], assumptions=[text])
    return [
        reproduction_report(one, name, style),
        reproduction_report(failed, name, style),
        experiment_report(grid, name, style),
        fit_report(fits, name, style),
    ]


@settings(max_examples=60, deadline=None)
@given(hostile)
def test_nothing_acts_on_a_terminal(text: str) -> None:
    for report in hostile_reports(f"a{text}z", "text"):
        assert active(report) == set()


@settings(max_examples=60, deadline=None)
@given(hostile)
def test_nothing_acts_on_a_page(text: str) -> None:
    for report in hostile_reports(f"a{text}z", "markdown"):
        outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", report)
        plain = re.sub(r"\\[\\`*_{}\[\]<>#|!~@&]", "", outside)
        plain = re.sub(r"(?m)^\*\*(.*)\*\*$", r"\1", plain)
        for mark in ("<", "`", "[", "![", "**"):
            assert mark not in plain, plain
        assert not re.search(r"@(?!\u200b)", plain)
        assert active(outside) <= {"\u200b"}


@given(st.text(max_size=20))
def test_csv_reads_back(note: str) -> None:
    grid = experiment(cells=[GridCell({"num_stages": 1, "TILE_SIZE": 16}, None, None, note=note.replace("\r", ""))])
    (_, line) = csv.reader(io.StringIO(experiment_report(grid, "csv", Style())))
    assert line[-1] == note.replace("\r", "")


def test_the_list_of_recipes() -> None:
    recipes = list(all_recipes().values())
    assert [line.split()[0] for line in recipe_list(recipes, as_json=False).splitlines()] == [
        one.name for one in recipes
    ]
    assert [one["name"] for one in json.loads(recipe_list(recipes, as_json=True))] == [one.name for one in recipes]
    assert recipe_list([], as_json=False) == ""


def test_the_page_of_a_recipe(snapshot: SnapshotAssertion) -> None:
    recipe = Recipe(
        name="gizmo.attention",
        title="The gizmo's attention",
        call=lambda _library, _shape: None,
        parameters=(Parameter("dtype", "float16", "element type"), Parameter("window", 0, "tokens, 0 for all")),
        library="gizmo",
        since="0.9.0",
        until="1.2.0",
        vary={"TILE_SIZE": (16, 32)},
    )
    assert recipe_page(recipe, as_json=False) == snapshot
    page = json.loads(recipe_page(recipe, as_json=True))
    assert page["parameters"][0]["name"] == "dtype"
    assert page["vary"] == {"TILE_SIZE": [16, 32]}
