"""Asks vLLM's real wrapper, in a child process, what it launches: tile, warps and, where wanted, bytes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from oortriage.errors import OortriageError
from oortriage.fix.hooks import JOIN, KERNELS, MODULES, install, parts, uninstall
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.source import SourceSpec
from oortriage.replay.compiler_env import compiler_env

RECIPE = "vllm.unified_attention"
_SECONDS = 600.0
#: As a program text: ``-m`` would take modules from the current folder.
_PROGRAM = "import sys; sys.path = [one for one in sys.path if one]; from oortriage.fix.probe import main; main()"


class Row(msgspec.Struct, frozen=True):
    """One launch to ask for: a card, and a shape of the recipe."""

    card: Card
    shape: dict[str, Any]


class ProbeJob(msgspec.Struct, frozen=True):
    """Rows for one source. They are asked once for each of ``plugins``: a rule's hooks; empty for none."""

    source: SourceSpec
    rows: tuple[Row, ...]
    plugins: tuple[str, ...] = ("",)
    compile: bool = False


class Launched(msgspec.Struct, frozen=True):
    """What was launched. ``tile`` None: the kernel has no tile of its own.

    ``error`` where nothing was, or where a split decode would be joined with another tile than it was computed with.
    """

    tile: int | None = None
    num_warps: int | None = None
    required_bytes: int | None = None
    error: str = ""


def probe(jobs: Sequence[ProbeJob]) -> list[list[list[Launched]]]:
    """Run jobs in one child process: starting it costs most.

    Returns:
        For each job and each of its plugins, an answer a row.

    Raises:
        OortriageError: it does not start (no Triton, no torch).
    """
    try:
        done = subprocess.run(  # noqa: S603 (our own interpreter, and a program that is a constant)
            [sys.executable, "-c", _PROGRAM],
            input=msgspec.json.encode(list(jobs)),
            capture_output=True,
            env=compiler_env("").variables(),
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as problem:
        raise OortriageError(f"the kernel's wrapper did not answer within {_SECONDS:g} s") from problem
    try:
        return msgspec.json.decode(done.stdout, type=list[list[list[Launched]]])
    except msgspec.DecodeError as problem:
        last = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"])[-1]
        raise OortriageError(f"vLLM's attention module cannot be asked: {last}") from problem


def main() -> None:
    """Answer jobs on standard input; the child's side."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    import torch  # noqa: F401 (said plainly where it is missing, before a module of vLLM's fails on it)

    found = [_answers(job) for job in msgspec.json.decode(sys.stdin.buffer.read(), type=list[ProbeJob])]
    out.write(msgspec.json.encode(found))
    out.flush()
    os._exit(0)  # Triton's bindings report leaked objects at exit


def _answers(job: ProbeJob) -> list[list[Launched]]:
    from oortriage.fix.rules import find_rule
    from oortriage.kernels.libraries import open_library
    from oortriage.kernels.registry import find_recipe

    recipe = find_recipe(RECIPE)
    finders = list(sys.meta_path)
    try:
        library = open_library(recipe, job.source, job.rows[0].card)
        module = library.module(*MODULES)
        recorders = [] if job.compile else _record(module)
        found = []
        for plugin in job.plugins:
            before = parts(module)
            if plugin:
                install(module, find_rule(plugin))
            found.append([_answer(job, recipe, library, module, row, recorders) for row in job.rows])
            uninstall(module, before)
    except Exception as problem:  # noqa: BLE001 (one source that cannot be imported must not end the others)
        failed = Launched(error=f"{type(problem).__name__}: {problem}"[:400])
        return [[failed for _ in job.rows] for _ in job.plugins]
    finally:  # the next source is another vLLM
        sys.meta_path[:] = finders
        for name in [one for one in sys.modules if one.partition(".")[0] == "vllm"]:
            del sys.modules[name]
    return found


class _Recorder:
    """Stands in for a kernel: notes what it would be launched with."""

    def __init__(self, kernel: Any) -> None:
        self.arg_names = kernel.arg_names
        self.__name__ = getattr(kernel, "__name__", "kernel")
        self.noted: list[dict[str, Any]] = []

    def __getitem__(self, _grid: Any) -> Any:
        return lambda *_, **named: self.noted.append(named)


def _record(module: Any) -> list[_Recorder]:
    recorders = []
    for name in (*KERNELS, JOIN):
        if hasattr(module, name):
            setattr(module, name, recorder := _Recorder(getattr(module, name)))
            recorders.append(recorder)
    return recorders


def _answer(
    job: ProbeJob, recipe: Any, library: Any, module: Any, row: Row, recorders: Sequence[_Recorder]
) -> Launched:
    from oortriage.gpu.virtual.session import Session
    from oortriage.gpu.virtual.torch_face import torch_sees
    from oortriage.kernels.libraries.vllm import Platform

    module.current_platform = Platform(row.card, set())
    for recorder in recorders:
        recorder.noted.clear()
    shape = recipe.shape(row.shape)[0]
    session = Session(row.card)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch_sees(row.card))
            if job.compile:
                stack.enter_context(session.run())
            recipe.call(library, shape)
    except Exception as problem:  # noqa: BLE001 (a kernel may raise anything; it becomes the answer)
        return Launched(error=f"{type(problem).__name__}: {problem}"[:400])
    launches: list[tuple[str, dict[str, Any], int | None]]
    if job.compile:
        launches = [(one.kernel, one.settings, one.allocation.shared_bytes) for one in session.launches]
    else:
        launches = [(recorder.__name__, named, None) for recorder in recorders for named in recorder.noted]
    return _launched(launches)


def _launched(launches: Sequence[tuple[str, dict[str, Any], int | None]]) -> Launched:
    """Sum up launches (name, settings, bytes): the attention kernel that needs most stands for them."""
    made = [(settings, size) for name, settings, size in launches if name in KERNELS]
    if not made:
        return Launched(error="nothing was launched")
    settings, size = max(made, key=lambda one: one[1] or 0)
    tile = settings.get("TILE_SIZE")
    joined = [settings.get("TILE_SIZE") for name, settings, _ in launches if name == JOIN]
    if any(one != tile for one in joined):
        return Launched(error=f"parts computed with a tile of {tile} would be joined with one of {joined[0]}")
    return Launched(tile, settings.get("num_warps"), size)
