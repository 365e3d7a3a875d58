"""``oortriage experiment`` end to end: the contract, its formats, progress, and every mistake."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import T4, Run, command, complained
from tests.cli.replaying import ARGUMENTS, KERNEL, REFERENCE, VLLM, cache, replay, table, vllm

__all__ = ["cache", "replay", "vllm"]  # fixtures

FP32 = (*REFERENCE, "--gpu", "T4", "--dtype", "float32", "--head-size", "256", "--window", "0")
GRID = ("--vary", "num_stages=1,3", "--vary", "TILE_SIZE=16,32")


def keeps_the_contract(found: Any) -> None:
    cells = {(one["settings"]["num_stages"], one["settings"]["TILE_SIZE"]): one for one in found["cells"]}
    assert {at: (one["required_bytes"], one["fits"]) for at, one in cells.items()} == {
        (1, 16): (49152, True), (1, 32): (81920, False), (3, 16): (49152, True), (3, 32): (81920, False),
    }  # fmt: skip
    assert found["effects"] == {"num_stages": 0, "TILE_SIZE": 32768}
    assert found["interactions"] == {"num_stages x TILE_SIZE": 0}
    assert found["baseline"] == {"num_stages": 3, "TILE_SIZE": 32}
    assert found["recommendation"]["settings"] == {"num_stages": 3, "TILE_SIZE": 16}
    assert (found["recommendation"]["freed_bytes"], found["recommendation"]["spills"]) == (32768, 0)
    assert found["sentence"] == (
        "num_stages moves 0 bytes on sm_75; TILE_SIZE moves up to 32,768; "
        "TILE_SIZE 32 -> 16 frees 32,768 bytes: 49,152 of 65,536."
    )


@pytest.fixture(scope="module")
def grid(replay: Run) -> Any:
    return table(replay("experiment", *FP32, *GRID, "--format", "json"))


def test_the_contract_and_the_sentence_of_the_issue(grid: Any) -> None:
    keeps_the_contract(grid)


def test_from_the_log_by_vllms_kernel(vllm: Run) -> None:
    found = table(vllm("experiment", T4, *GRID, "--window", "0", "--format", "json"))
    keeps_the_contract(found)
    assert (found["kernel"], found["source"]) == ("vllm.unified_attention", "vllm 0.17.1, its wheel")
    assert found["origin"]["head_size"].startswith("log line ")
    named = vllm("experiment", *VLLM, *FP32[2:], "--gpu", "Tesla T4", *GRID, "--format", "json")
    assert table(named)["cells"] == found["cells"]


@pytest.mark.usefixtures("grid")
def test_every_format_says_the_same(replay: Run, tmp_path: Path, grid: Any) -> None:
    lines = list(csv.DictReader(io.StringIO(replay("experiment", *FP32, *GRID, "--format", "csv").stdout)))
    assert [int(one["required_bytes"]) for one in lines] == [one["required_bytes"] for one in grid["cells"]]
    page = tmp_path / "page.md"
    done = replay("experiment", *FP32, *GRID, "--format", "markdown", "-o", page, "--svg", tmp_path / "grid.svg")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert page.read_text(encoding="utf-8").startswith("**num\\_stages moves 0 bytes on sm\\_75; ")
    assert ET.parse(tmp_path / "grid.svg").getroot().tag.endswith("svg")
    text = replay("experiment", *FP32, *GRID).stdout
    assert " ".join(text.split()).startswith(grid["sentence"])
    assert "✓ 49,152" in text
    assert "✗ 81,920" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.usefixtures("grid")
def test_progress_is_shown_beside_the_result_and_not_in_it(
    environment: dict[str, str], cache: Path, nowhere: Path
) -> None:
    import pty

    ours, theirs = pty.openpty()
    shown: list[bytes] = []

    def watch() -> None:
        with contextlib.suppress(OSError):  # that is how a pseudo-terminal ends
            while piece := os.read(ours, 65536):
                shown.append(piece)

    watcher = threading.Thread(target=watch)
    watcher.start()
    done = subprocess.run(
        command(["experiment", *FP32, "--vary", "num_stages=1,2", "--format", "json"]), stdout=subprocess.PIPE,
        stderr=theirs, env={**environment, "OORTRIAGE_CACHE": str(cache), "TERM": "xterm"}, cwd=nowhere, timeout=300,
        check=False,
    )  # fmt: skip
    os.close(theirs)
    watcher.join(timeout=30)
    os.close(ours)
    assert done.returncode == 0
    assert json.loads(done.stdout)["effects"] == {"num_stages": 0}
    assert re.search(rb"(\d+)/\1\b", b"".join(shown))


def test_levels_that_do_not_compile_stay_without_a_figure(replay: Run) -> None:
    found = table(replay("experiment", *FP32, "--vary", "tile=17,32", "--format", "json"))
    assert [(one["required_bytes"], one["fits"]) for one in found["cells"]] == [(None, None), (81920, False)]
    assert "arange's range must be a power of 2" in found["cells"][0]["note"]
    assert found["effects"] == {"TILE_SIZE": None} or found["effects"] == {"tile": None}
    assert (found["recommendation"], found["sentence"]) == (None, "nothing in this grid fits in 65,536 bytes.")


def test_nothing_compiles_is_three(replay: Run) -> None:
    done = replay("experiment", *FP32, "--set", "num_warps=3", "--vary", "num_stages=1,2")
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.startswith("nothing could be compiled.\n")
    assert "num_warps must be a power of 2" in " ".join(done.stdout.split())


def test_a_kernel_of_ones_own_without_a_value_for_what_is_varied(replay: Run, tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(KERNEL)
    without = [word for index, word in enumerate(ARGUMENTS) if "BM=64" not in ARGUMENTS[index : index + 2]]
    found = table(
        replay(
            "experiment",
            "--kernel",
            tmp_path / "k.py:product",
            "--gpu",
            "A100",
            *without,
            "--vary",
            "BM=64,32",
            "-f",
            "json",
        )
    )
    assert found["baseline"] == {"BM": 64}
    assert found["effects"]["BM"] > 0
    assert [one["fits"] for one in found["cells"]] == [True, True]
    assert "the kernel fits as it is" in found["sentence"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--vary", "tile"], "--vary tile: write NAME=16,32,64"),
        (["--vary", "tile=16", "--vary", "TILE_SIZE=32"], "TILE_SIZE is given twice"),
        (["--vary", "num_warps=few"], "--vary num_warps: few is no whole number above 0"),
        (["--vary", "head_size=wide"], "head_size: 'wide' is no whole number"),
        (["--vary", "a=" + ",".join(map(str, range(60))), "--vary", "b=" + ",".join(map(str, range(60)))],
         "that is a grid of 3,600 cells; 2,000 are the most"),
    ],
    ids=["no value", "twice", "text", "parameter", "huge"],
)  # fmt: skip
def test_mistakes(replay: Run, arguments: list[str], words: str) -> None:
    assert words in complained(replay("experiment", *FP32, *arguments))
