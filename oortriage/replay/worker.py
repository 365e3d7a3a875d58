"""The child process: compiles the cells of a job on the virtual GPU, one line of JSON an outcome.

Started as ``python -m oortriage.replay.worker`` with the job on standard input. A crash of the
compiler ends this process alone. What a library prints on import goes to standard error.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from oortriage.errors import OortriageError
from oortriage.gpu.virtual.session import Launch, Session
from oortriage.kernels._interface import Library, Recipe
from oortriage.replay.job import Cell, Failure, Job, Kernel, Outcome, Registers


def main() -> None:
    """Read the job, write an outcome a cell, and leave without the interpreter's long goodbye."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever imported modules print must not end up among the results
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    if job.memory_bytes and not job.live:  # the driver maps far more address space than it uses
        _limit_memory(job.memory_bytes)
    try:
        _work(job, out)
    except OortriageError as problem:
        _put(out, Outcome(-1, failure=Failure("environment", str(problem))))
    except MemoryError:
        _put(out, Outcome(-1, failure=Failure("memory", "the compiler needs more memory than it may have")))
    out.flush()
    sys.stderr.flush()
    os._exit(0)  # Triton's bindings report leaked objects at exit, thousands of lines of them


def _work(job: Job, out: BinaryIO) -> None:
    from oortriage.gpu.virtual.adapter import version as triton_version
    from oortriage.gpu.virtual.adapter import without_torch

    version = triton_version()
    recipe, library = _open(job)
    if job.live:
        from oortriage.replay.live_worker import live_cells

        for outcome in live_cells(job, recipe, library):
            _put(out, msgspec.structs.replace(outcome, triton=version))
        return
    with contextlib.ExitStack() as stack:
        if recipe.needs_torch:
            stack.enter_context(_torch(job))
        else:
            without_torch()
        for index, cell in enumerate(job.cells):
            outcome = _cell(job, recipe, library, cell)
            _put(out, msgspec.structs.replace(outcome, cell=index, triton=version))


def _open(job: Job) -> tuple[Recipe, Any]:
    from oortriage.kernels.libraries import open_library
    from oortriage.kernels.registry import find_recipe
    from oortriage.kernels.user_kernel import is_user_kernel, user_recipe

    recipe = user_recipe(job.kernel) if is_user_kernel(job.kernel) else find_recipe(job.kernel)
    return recipe, open_library(recipe, job.source, job.card)


@contextlib.contextmanager
def _torch(job: Job) -> Iterator[None]:
    from oortriage.gpu.virtual.adapter import UnsupportedTritonError

    try:
        import torch  # noqa: F401
    except ImportError as problem:
        raise UnsupportedTritonError(
            f"{job.kernel} is called through its Python wrapper, which works on torch tensors: "
            "`pip install 'oortriage[torch]'` (a CPU build is enough), or use --kernel reference.attention"
        ) from problem
    from oortriage.gpu.virtual.torch_face import torch_sees

    with torch_sees(job.card):
        yield


def _cell(job: Job, recipe: Recipe, library: Library, cell: Cell) -> Outcome:
    session = Session(job.card, cell.overrides)
    failure, kernels = None, []
    try:
        with session.run():
            recipe.call(library, cell.shape)
        local: dict[str, str] = getattr(library, "local", {})
        kernels = [_kernel(job, launch, local) for launch in _once(session.launches)]
    except MemoryError:
        raise
    except OortriageError as problem:
        failure = Failure("environment", str(problem))
    except BaseException as problem:  # noqa: BLE001 (a kernel may raise anything, SystemExit too; it becomes the outcome)
        traceback.print_exc()
        failure = Failure("does_not_compile", _reason(problem))
    return Outcome(
        -1,
        kernels=tuple(kernels),
        failure=failure,
        files=dict(getattr(library, "files", {})),
        stand_ins=tuple(sorted(getattr(library, "noted", ()))),
        unused=tuple(sorted(set(cell.overrides) - session.taken)),
    )


def _once(launches: list[Launch]) -> list[Launch]:
    """Drop repeated launches of a kernel with the same settings and figure; one made in earnest stays."""
    kept: dict[tuple[str, str, int], Launch] = {}
    for launch in launches:
        key = (launch.kernel, str(launch.settings), launch.allocation.shared_bytes)
        if key not in kept or kept[key].tuning:
            kept[key] = launch
    return list(kept.values())


def _kernel(job: Job, launch: Launch, local: dict[str, str]) -> Kernel:
    """Itemise a launch; ``local`` maps files as they lie on this machine to their path in the package."""
    from oortriage.gpu.virtual.module_text import read_ledger

    allocation = launch.allocation
    ledger = read_ledger(allocation.text, allocation.shared_bytes, allocation.measure)
    buffers = tuple(msgspec.structs.replace(one, file=_shown(one.file, local)) for one in ledger.buffers)
    return Kernel(
        name=launch.kernel,
        settings=launch.settings,
        required_bytes=allocation.shared_bytes,
        tensor_memory_columns=allocation.tensor_memory_columns,
        threads=allocation.warps * job.card.target.warp_size,
        ledger=msgspec.structs.replace(ledger, buffers=buffers),
        tuning=launch.tuning,
        registers=_registers(job, launch),
    )


def _shown(file: str, local: dict[str, str]) -> str:
    """Name a source file for people: by its path in its package, which says nothing of this machine."""
    if file in local:
        return local[file]
    own = Path(__file__).parent.parent
    path = Path(file)
    return path.relative_to(own.parent).as_posix() if path.is_relative_to(own) else file


def _registers(job: Job, launch: Launch) -> Registers | None:
    """Assemble a kernel that is launched in earnest; none where the assembler refuses it."""
    from oortriage.gpu.virtual.registers import assemble

    if not job.registers or launch.tuning:
        return None
    try:
        return Registers(**assemble(launch.source, job.card.target, launch.options))
    except (RuntimeError, OSError):
        traceback.print_exc()  # the shared memory is known all the same
        return None


def _reason(problem: BaseException) -> str:
    """Say in one line what the compiler said; Triton's own errors end with the line that matters."""
    lines = [line for line in str(problem).strip().splitlines() if line.strip()]
    kind = type(problem).__name__
    marks = [index for index, line in enumerate(lines) if line.strip() == "^"]
    if lines and marks and 0 < marks[-1] < len(lines) - 1:  # "at 4:20:", the source down to the line, a mark below it
        source, said = lines[marks[-1] - 1].strip(), lines[-1].strip()
        return f"{kind}: {said}, {lines[0].strip().rstrip(':')} of the kernel: {source}"
    return f"{kind}: {lines[0].strip() if lines else ''}" + (f" ... {lines[-1].strip()}" if len(lines) > 1 else "")


def _limit_memory(size: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _put(out: BinaryIO, outcome: Outcome) -> None:
    out.write(msgspec.json.encode(outcome) + b"\n")
    out.flush()


if __name__ == "__main__":
    main()
