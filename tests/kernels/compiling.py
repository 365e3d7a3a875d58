"""Compiles cells of a recipe in a child process, as the command does; tests say which figures come out.

Skips, and says why, where the library's source cannot be had (no package index) or where torch or a
Triton that the adapter knows is missing.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

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
    job = msgspec.json.encode(Job(kernel, card, tuple(full), source))
    code, said, complained = _forked(job) if recipe.needs_torch else _started(job)
    outcomes = [msgspec.json.decode(line, type=Outcome) for line in said.splitlines()]
    assert code == 0, complained.decode()[-2000:]
    if outcomes and outcomes[0].cell < 0:  # the job did not start
        failure = outcomes[0].failure
        pytest.skip(failure.message if failure else "the worker did not start")
    assert len(outcomes) == len(full)
    return outcomes


def _started(job: bytes) -> tuple[int, bytes, bytes]:
    worker = [sys.executable, "-m", "oortriage.replay.worker"]
    done = subprocess.run(worker, input=job, capture_output=True, check=False, env=compiler_env().variables())
    return done.returncode, done.stdout, done.stderr


#: Imports what every worker imports, then becomes one worker a line: a folder with the job, and with room for what it
#: says. Importing takes seconds, which a hundred tests would each spend.
_PARENT = """
import os, sys
import torch, triton
import oortriage.replay.worker as worker

for line in sys.stdin:
    place = line.strip()
    child = os.fork()
    if not child:
        for number, name in enumerate(("job", "said", "complained")):
            flags = os.O_RDONLY if not number else os.O_WRONLY | os.O_CREAT
            os.dup2(os.open(os.path.join(place, name), flags, 0o600), number)
        sys.stdin = os.fdopen(0)
        worker.main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def _parent() -> subprocess.Popen[str]:
    """Start the parent of all workers of this process; it ends when its standard input does."""
    return subprocess.Popen(
        [sys.executable, "-c", _PARENT],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=compiler_env().variables(),
    )  # fmt: skip


def _forked(job: bytes) -> tuple[int, bytes, bytes]:
    parent = _parent()
    assert parent.stdin
    assert parent.stdout
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "job").write_bytes(job)
        parent.stdin.write(f"{place}\n")
        parent.stdin.flush()
        code = int(parent.stdout.readline())
        return code, (folder / "said").read_bytes(), (folder / "complained").read_bytes()


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
