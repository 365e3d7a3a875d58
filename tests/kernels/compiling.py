"""Compiles cells of a recipe in a child process, as the command does; tests say which figures come out.

Skips, and says why, where the library's source cannot be had (no package index) or where torch or a
Triton that the adapter knows is missing.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import msgspec
import pytest

from oortriage.gpu.virtual.adapter import Target
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.registry import find_recipe
from oortriage.kernels.source import SourceError, find_source
from oortriage.replay.compiler_env import compiler_env
from oortriage.replay.job import Cell, Job, Kernel, Outcome

pytest.importorskip("triton")
pytest.importorskip("torch")

_LIMITS = {
    61: 49_152,
    70: 98_304,
    75: 65_536,
    80: 166_912,
    86: 101_376,
    89: 101_376,
    90: 232_448,
    120: 101_376,
    121: 101_376,
}


def nvidia(arch: int) -> Card:
    """A card of this architecture (75 for sm_75) with the limit its driver prints, in bytes."""
    return Card(Target("cuda", arch, 32), _LIMITS[arch])


def amd(arch: str, limit: int = 65_536) -> Card:
    """An AMD card; waves are 64 wide on gfx9 and 32 on RDNA."""
    return Card(Target("hip", arch, 64 if arch.startswith("gfx9") else 32), limit)


def compile_cells(kernel: str, card: Card, cells: Sequence[Cell | dict], version: str = "") -> list[Outcome]:
    """Run one job through the worker and return an outcome a cell.

    A plain ``dict`` is a shape; what it leaves out is the recipe's default.
    """
    recipe = find_recipe(kernel)
    full = []
    for cell in cells:
        given = cell if isinstance(cell, Cell) else Cell(cell)
        full.append(msgspec.structs.replace(given, shape=recipe.shape(given.shape)[0]))
    try:
        source = find_source(recipe.library, version) if recipe.library else None
    except SourceError as problem:
        pytest.skip(str(problem))
    job = Job(kernel, card, tuple(full), source)
    worker = [sys.executable, "-m", "oortriage.replay.worker"]
    done = subprocess.run(
        worker, input=msgspec.json.encode(job), capture_output=True, check=False, env=compiler_env().variables()
    )
    outcomes = [msgspec.json.decode(line, type=Outcome) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    if outcomes and outcomes[0].cell < 0:  # the job did not start
        failure = outcomes[0].failure
        pytest.skip(failure.message if failure else "the worker did not start")
    assert len(outcomes) == len(full)
    return outcomes


def kernel_of(outcome: Outcome, name: str) -> Kernel:
    """Return the launch of a kernel; fails with the reason when the cell has none."""
    assert not outcome.failure, outcome.failure
    return next(kernel for kernel in outcome.launched if kernel.name == name)


def bytes_of(outcome: Outcome, name: str = "") -> int:
    """Return what a kernel (or the largest) asks for, in bytes."""
    if name:
        return kernel_of(outcome, name).required_bytes
    assert not outcome.failure, outcome.failure
    assert outcome.largest
    return outcome.largest.required_bytes
