"""The worker: one outcome a cell, whatever a kernel does; a card's settings and registers where they are asked for."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from oortriage.gpu.virtual.adapter import Target, UnsupportedTritonError
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.registry import find_recipe
from oortriage.replay import worker
from oortriage.replay.job import Cell, Job, Outcome
from tests.gpu.virtual.compiling import ROOT

T4 = Card(Target("cuda", 75, 32), 65_536)
H100 = Card(Target("cuda", 90, 32), 232_448)
#: Kernels of the tests, as a user's own file.
TUNED = ROOT / "tests" / "gpu" / "virtual" / "tuned.py"
KERNELS = ROOT / "tests" / "gpu" / "virtual" / "kernels.py"


def work(job: Job, **variables: str) -> list[Outcome]:
    """Run the worker on a job."""
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-m", "oortriage.replay.worker"],
        input=msgspec.json.encode(job),
        capture_output=True,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return [msgspec.json.decode(line, type=Outcome) for line in done.stdout.splitlines()]


def reference(*overrides: dict[str, Any], card: Card = T4, **named: Any) -> Job:
    recipe = find_recipe("reference.attention")
    shape, _ = recipe.shape({"dtype": "float16", "head_size": 64})
    return Job(recipe.name, card, tuple(Cell(shape, one) for one in overrides), **named)


def test_cells_differ_by_what_is_forced() -> None:
    outcomes = work(reference({}, {"TILE_SIZE": 16}, {"TILE_SIZE": 16, "NO_SUCH": 1}, {"num_warps": 8, "AGAIN": 2}))
    assert [one.cell for one in outcomes] == [0, 1, 2, 3]
    assert [one.kernels[0].required_bytes for one in outcomes][:3] == [12_288, 8_192, 8_192]
    assert [one.unused for one in outcomes] == [(), (), ("NO_SUCH",), ("AGAIN",)]
    assert [one.kernels[0].threads for one in outcomes] == [128, 128, 128, 256]
    settings = outcomes[1].kernels[0].settings
    assert (settings["TILE_SIZE"], settings["HEAD_SIZE"], settings["num_warps"]) == (16, 64, 4)
    assert {one.triton for one in outcomes} == {outcomes[0].triton} != {""}


def test_a_kernel_that_does_not_compile_says_why() -> None:
    first, second, third = work(reference({"TILE_SIZE": 3}, {"TILE_SIZE": 8}, {}))
    assert first.failure
    assert first.failure.kind == "does_not_compile"
    assert "power of 2" in first.failure.message
    assert "\n" not in first.failure.message
    assert second.failure
    assert third.failure is None


def test_warps_that_a_kernel_adds_are_counted() -> None:
    shape = {"a": "*fp16", "b": "*fp16", "out": "*fp16", "m": "i32", "n": "1024", "k": "1024"}
    blocks = {"BM": "128", "BN": "128", "BK": "64", "SPECIALISED": "true", "num_stages": "3"}
    (found,) = work(Job(f"{KERNELS}:descriptors", H100, (Cell({**shape, **blocks}),)))
    (kernel,) = found.kernels
    assert kernel.settings["num_warps"] == 4
    assert kernel.threads == 384


def test_registers_are_of_what_is_launched_in_earnest() -> None:
    text = TUNED.read_text() + "\nbest = tuned([LARGE, SMALL])\n"
    (found,) = work(job_of(text, registers=True))
    trials = [kernel for kernel in found.kernels if kernel.tuning]
    (launched,) = found.launched
    assert launched.registers
    assert launched.registers.registers > 30
    assert [kernel.registers for kernel in trials] == [None]
    assert len(found.kernels) == 2  # the one launched was tried too, and counts once


def job_of(text: str, **named: Any) -> Job:
    path = Path(os.environ["PYTEST_TMP"]) / "own.py"
    path.write_text(text)
    shape = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "depth": "4096"}
    return Job(f"{path}:best", msgspec.structs.replace(T4, limit_bytes=20_000), (Cell(shape),), **named)


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTEST_TMP", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_a_refusal_of_the_assembler_leaves_the_figure(tmp_path: Path) -> None:
    ptxas = tmp_path / "ptxas"
    ptxas.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Cuda, release 12.8, V12.8.93" && exit 0\nexit 255\n')
    ptxas.chmod(ptxas.stat().st_mode | stat.S_IXUSR)
    (found,) = work(reference({}, registers=True), TRITON_PTXAS_PATH=str(ptxas))
    assert found.failure is None
    assert (found.kernels[0].required_bytes, found.kernels[0].registers) == (12_288, None)


HUNGRY = """
class Hungry:
    arg_names = ["size"]

    def __getitem__(self, grid):
        return lambda size: bytearray(size)


hungry = Hungry()
"""


def test_memory_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "hungry.py"
    path.write_text(HUNGRY)
    cells = tuple(Cell({"size": size}) for size in (1 << 20, 2 << 30, 1 << 20))
    first, second = work(Job(f"{path}:hungry", T4, cells, memory_bytes=2 << 30))
    assert first.failure is None
    assert second.failure  # and the worker ends: what is left of its memory is nobody's guess
    assert (second.cell, second.failure.kind) == (-1, "memory")


def test_memory_that_does_not_hold_the_compiler_is_no_missing_compiler() -> None:
    (found,) = work(reference({}, memory_bytes=100 << 20))
    assert found.failure
    assert "not installed" not in found.failure.message


def test_what_a_job_lacks_is_said_once() -> None:
    (found,) = work(Job("vllm.unified_attention", T4, (Cell(), Cell())))
    assert found.cell == -1
    assert found.failure
    assert (found.failure.kind, found.failure.message) == ("environment", "the source of vllm is needed")


def test_a_wrapper_on_tensors_needs_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UnsupportedTritonError, match=r"pip install 'oortriage\[torch\]'"), worker._torch(reference({})):
        pass


def launch(kernel: str, required: int, *, tuning: bool = False, **settings: int) -> Any:
    return SimpleNamespace(
        kernel=kernel, settings=settings, tuning=tuning, allocation=SimpleNamespace(shared_bytes=required)
    )


def test_a_launch_in_earnest_stands_for_its_trial() -> None:
    trial, earnest = launch("a", 64, BM=16, tuning=True), launch("a", 64, BM=16)
    other, typed = launch("a", 64, BM=32, tuning=True), launch("a", 128, BM=16)
    assert worker._once([trial, other, earnest, earnest, typed]) == [earnest, other, typed]
    assert worker._once([]) == []


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (ValueError("one line"), "ValueError: one line"),
        (ValueError(""), "ValueError: "),
        (RuntimeError("first\n\n  middle\nlast  \n"), "RuntimeError: first ... last"),
        (SystemExit(4), "SystemExit: 4"),
    ],
)
def test_a_reason_is_one_line(problem: BaseException, message: str) -> None:
    assert worker._reason(problem) == message


def test_without_limits_of_the_system_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    worker._limit_memory(1 << 40)
