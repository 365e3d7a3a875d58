"""The child's work on a real card: launch, check against float64, time; every cell ends in a result with a reason."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import platform
import traceback
from collections.abc import Iterator
from typing import Any

import msgspec

from oortriage.cache import cache_folder
from oortriage.capture.capsule import is_capsule
from oortriage.errors import UsageError
from oortriage.gpu.card.session import CardSession, driver_bytes
from oortriage.gpu.card.timing import ceilings, time_call
from oortriage.kernels._interface import Recipe
from oortriage.kernels.live import CHECKED, Batch, Live
from oortriage.replay.job import Cell, Check, Job, LiveAsk, LiveKernel, LiveResult, Outcome, Timing

#: Relative error of attention in each type: rounding of its inputs, of P before the second product, and of
#: the output. TF32 keeps 10 bits of a float32's mantissa, as float16 does (NVIDIA Ampere whitepaper).
TOLERANCES = {"float32": 1e-5, "tf32": 2e-3, "float16": 2e-3, "bfloat16": 1.6e-2}
#: A case's inputs and outputs must fit this many times: copies, reference, cache of the allocator.
_ROOM = 3
_MOST_COPIES = 16


def live_cells(job: Job, recipe: Recipe, library: Any) -> Iterator[Outcome]:
    """Run the cells of a job on the card.

    A CUDA error other than running out of resources poisons the process: the cell gets it as its result
    and the process ends; what is left is done by a fresh one.

    Raises:
        UsageError: torch sees no card, or the recipe cannot be run in earnest.
    """
    ask = job.live
    captured = is_capsule(job.kernel)
    if ask is None or (recipe.live is None and not captured):
        raise UsageError(f"{recipe.name} is compiled only: there are no inputs and no reference to run it with")
    import torch

    if not torch.cuda.is_available():
        raise UsageError("PyTorch sees no CUDA device; without one the virtual result is what there is")
    if ask.mode == "emulated":
        folder = cache_folder() / "text-for-driver" / job.card.target.name
        os.environ["TRITON_CACHE_DIR"] = str(folder)  # apart: the binaries in there are PTX
    torch.cuda.set_device(ask.device)
    about = _environment(ask)
    reach: dict[str, dict[str, float]] = {}
    for index, cell in enumerate(job.cells):
        again = cell in job.cells[:index]
        once = msgspec.structs.replace(ask, check=False) if again else ask
        result = _cell(job, once, recipe, library, cell, about)
        dtype = str(cell.shape.get("dtype", ""))
        if result.timings and ask.plan.ceilings and dtype not in reach:  # what the card can do at most differs by type
            reach[dtype] = ceilings(dtype)
        yield Outcome(index, live=msgspec.structs.replace(result, ceilings=reach.get(dtype, {}), environment=about))
        if result.status == "failed" and _poisoned():
            return


def _cell(job: Job, ask: LiveAsk, recipe: Recipe, library: Any, cell: Cell, about: dict[str, str]) -> LiveResult:
    from triton.runtime.errors import OutOfResources

    session = CardSession(job.card, cell.overrides, emulated=ask.mode == "emulated")
    base = LiveResult("ran" if recipe.live else "loaded", about["device"], ask.mode)
    checks, timings, seen = list[Check](), list[Timing](), dict[str, int]()
    try:
        with session.run():
            if recipe.live:
                checks, timings, seen = _run(job, ask, recipe.live, library, cell)
            else:
                recipe.call(library, cell.shape)
    except OutOfResources as problem:
        return msgspec.structs.replace(
            base,
            status="out_of_resources",
            message=str(problem),
            required_bytes=int(problem.required),
            limit_bytes=int(problem.limit),
        )
    except _NoRoomError as problem:
        return msgspec.structs.replace(base, status="refused", message=str(problem))
    except Exception as problem:  # noqa: BLE001 (whatever a kernel or the driver raises is the result)
        traceback.print_exc()
        lines = str(problem).strip().splitlines() or [""]
        return msgspec.structs.replace(base, status="failed", message=f"{type(problem).__name__}: {lines[0]}")
    kernels = tuple(
        LiveKernel(one.name, one.shared_bytes, one.registers, one.spills, seen.get(one.name))
        for one in session.loaded.values()
    )
    largest = max((one.shared_bytes for one in kernels), default=None)
    return msgspec.structs.replace(
        base,
        required_bytes=largest,
        limit_bytes=job.card.limit_bytes,
        kernels=kernels,
        checks=tuple(checks),
        timings=tuple(timings),
    )


def _run(
    job: Job, ask: LiveAsk, live: Live, library: Any, cell: Cell
) -> tuple[list[Check], list[Timing], dict[str, int]]:
    import torch

    device = _device(ask)
    checks, timings, seen = list[Check](), list[Timing](), dict[str, int]()
    tolerance = TOLERANCES[_precision(job, str(cell.shape["dtype"]))]
    batches = [one for one in CHECKED if _wanted(one, cell)]
    for batch in batches if ask.check else batches[:1]:
        case = live(library, cell.shape, batch, device, ask.seed, 1)
        case.poison()
        case.call(0)
        torch.cuda.synchronize()
        if ask.check:
            error, missing = case.error()
            checks.append(Check(batch.name, error, tolerance, missing))
            seen |= driver_bytes(lambda case=case: case.call(0))  # type: ignore[misc]
    for batch in (one for one in ask.plan.batches if _wanted(one, cell)) if ask.time else ():
        one = live(library, cell.shape, batch, device, ask.seed, 1)
        copies = _copies(one.bytes_moved)
        _make_sure_of_room(_ROOM * copies * one.bytes_moved)
        case = live(library, cell.shape, batch, device, ask.seed, copies)
        timed = time_call(case.call, case.copies, ask.plan.runs)
        seconds = timed.median_ms / 1e3
        timings.append(
            Timing(
                batch.name,
                timed.median_ms,
                timed.low_ms,
                timed.high_ms,
                timed.runs,
                timed.graph,
                case.bytes_moved / seconds,
                case.flops / seconds,
            )
        )
    return checks, timings, seen


def _device(ask: LiveAsk) -> str:
    return f"cuda:{ask.device}"


def _wanted(batch: Batch, cell: Cell) -> bool:
    """Tell whether a cell is about this batch."""
    phase = cell.shape.get("phase", "")
    return not phase or phase == batch.taken_by


def _precision(job: Job, dtype: str) -> str:
    """Name the arithmetic of a product: float32 is cut to TF32 where the target has it, unless told otherwise."""
    has_tf32 = job.card.target.backend == "cuda" and int(job.card.target.arch) >= 80
    return "tf32" if dtype == "float32" and has_tf32 else dtype


class _NoRoomError(Exception):
    """Others hold the device memory that this would take."""


def _make_sure_of_room(size: int) -> None:
    import torch

    free, whole = torch.cuda.mem_get_info()
    if size > free:
        raise _NoRoomError(
            f"{size:,} bytes of device memory are needed and {free:,} of {whole:,} are free: "
            "other processes hold the rest"
        )


def _copies(size: int) -> int:
    """Choose how many copies to rotate, so that together they are three times the card's cache."""
    import torch

    cache = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "L2_cache_size", 64 << 20)
    return max(2, min(_MOST_COPIES, -(-3 * cache // max(1, size))))


def _environment(ask: LiveAsk) -> dict[str, str]:
    import torch
    import triton

    capability = torch.cuda.get_device_capability(ask.device)
    found = {
        "device": torch.cuda.get_device_name(ask.device),
        "capability": f"{capability[0]}.{capability[1]}",
        "torch": str(torch.__version__),  # a class of its own, which is no plain text
        "triton": str(triton.__version__),
        "cuda": str(torch.version.cuda),
        "python": platform.python_version(),
        "date": dt.datetime.now(dt.timezone.utc).date().isoformat(),
    }
    with contextlib.suppress(Exception):
        import pynvml

        pynvml.nvmlInit()
        found["driver"] = str(pynvml.nvmlSystemGetDriverVersion())
    return found


def _poisoned() -> bool:
    """Tell whether the context still works after an error."""
    import torch

    try:
        torch.cuda.synchronize()
        torch.zeros(1, device="cuda").item()
    except Exception:  # noqa: BLE001 (any error here means the same)
        return True
    return False
