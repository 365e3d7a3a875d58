"""PyTorch's out-of-memory message, printed as each generation of its allocator prints it.

Written from the format strings in the knowledge file, not from the rules: a test builds a message
from figures, and the tool has to find its way back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

KIB, MIB, GIB = 1024, 1024**2, 1024**3

#: The hint at the end of the message; each wording dates the wheel it was read from.
HINT_P3 = (
    " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid"
    " fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
)
HINT_P4 = (
    " If reserved but unallocated memory is large try setting max_split_size_mb to avoid"
    " fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
)
HINT_P5 = (
    " If reserved but unallocated memory is large try setting"
    " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation"
    " for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)
HINT_P7 = HINT_P5.replace("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
HINT_P8 = HINT_P5.replace(
    "https://pytorch.org/docs/stable/notes/cuda.html#environment-variables",
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf",
)


def size(count: float) -> str:
    """Write a byte count as the allocator does: two decimals, each unit up to and with its end."""
    if count <= KIB:
        return f"{round(count)} bytes"
    for limit, factor, unit in ((MIB, KIB, "KiB"), (GIB, MIB, "MiB")):
        if count <= limit:
            return f"{count / factor:.2f} {unit}"
    return f"{count / GIB:.2f} GiB"


@dataclass(frozen=True)
class Figures:
    """The figures of one message in bytes. ``others`` are clauses of other processes (pid, size).

    ``allocated`` includes ``pools`` (private pools); ``own`` is the clause of this process.
    """

    tried: float
    capacity: float
    free: float
    allocated: float
    idle: float = 0.0
    pools: float = 0.0
    allowed: float | None = None
    own: float | None = None
    others: tuple[tuple[int, float], ...] = ()

    @property
    def reserved(self) -> float:
        return self.allocated + self.idle


def gib(
    tried: float,
    capacity: float,
    free: float,
    allocated: float,
    *,
    idle: float = 0.0,
    reserved: float | None = None,
    pools: float = 0.0,
    allowed: float | None = None,
    own: float | None = None,
    others: tuple[tuple[int, float], ...] = (),
) -> Figures:
    """Give figures in GiB; ``reserved`` may stand for ``idle``."""
    if reserved is not None:
        idle = reserved - allocated
    return Figures(
        tried * GIB,
        capacity * GIB,
        free * GIB,
        allocated * GIB,
        idle * GIB,
        pools * GIB,
        None if allowed is None else allowed * GIB,
        None if own is None else own * GIB,
        tuple((pid, held * GIB) for pid, held in others),
    )


def _gpu_0(figures: Figures, device: str, tail: str) -> str:
    allowed = f"{size(figures.allowed)} allowed; " if figures.allowed is not None else ""
    return (
        f"{device} out of memory. Tried to allocate {size(figures.tried)} (GPU 0; "
        f"{size(figures.capacity)} total capacity; {size(figures.allocated)} already allocated; "
        f"{size(figures.free)} free; {allowed}{tail})"
    )


def p1(figures: Figures) -> str:
    """PyTorch 1.0 to 1.3, whose ``cached`` leaves out what is allocated."""
    return f"RuntimeError: {_gpu_0(figures, 'CUDA', f'{size(figures.idle)} cached')}"


def p2(figures: Figures, device: str = "CUDA") -> str:
    """PyTorch 1.4 to 1.9, whose ``reserved`` includes what is allocated."""
    tail = f"{size(figures.reserved)} reserved in total by PyTorch"
    return f"RuntimeError: {_gpu_0(figures, device, tail)}"


def p3(figures: Figures, device: str = "CUDA") -> str:
    """PyTorch 1.10 to 2.0."""
    return f"torch.cuda.OutOfMemoryError: {p2(figures, device).partition(': ')[2]}{HINT_P3}"


def _from_2_1(figures: Figures, device: str, exception: str, hint: str, capacity: str = "capacity") -> str:
    clauses = "".join(f"Process {pid} has {size(b)} memory in use. " for pid, b in figures.others)
    if figures.own is not None:
        clauses += f"Including non-PyTorch memory, this process has {size(figures.own)} memory in use. "
    allowed = f"{size(figures.allowed)} allowed; " if figures.allowed is not None else ""
    pools = f"with {size(figures.pools)} allocated in private pools (e.g., {device} Graphs), " if figures.pools else ""
    return (
        f"{exception}: {device} out of memory. Tried to allocate {size(figures.tried)}. GPU 0 has a"
        f" total {capacity} of {size(figures.capacity)} of which {size(figures.free)} is free. "
        f"{allowed}{clauses}Of the allocated memory {size(figures.allocated)} is allocated by"
        f" PyTorch, {pools}and {size(figures.idle)} is reserved by PyTorch but unallocated.{hint}"
    )


def p4(figures: Figures) -> str:
    """PyTorch 2.1, dated by its typo."""
    without_pools = replace(figures, pools=0.0)
    return _from_2_1(without_pools, "CUDA", "torch.cuda.OutOfMemoryError", HINT_P4, "capacty")


def p5(figures: Figures) -> str:
    """PyTorch 2.2 and 2.3."""
    return _from_2_1(replace(figures, pools=0.0), "CUDA", "torch.cuda.OutOfMemoryError", HINT_P5)


def p6(figures: Figures, device: str = "CUDA") -> str:
    """PyTorch 2.4 to 2.9."""
    return _from_2_1(figures, device, "torch.OutOfMemoryError", HINT_P5)


def p7(figures: Figures) -> str:
    """PyTorch 2.10."""
    return _from_2_1(figures, "CUDA", "torch.OutOfMemoryError", HINT_P7)


def p8(figures: Figures) -> str:
    """PyTorch 2.11 to 2.14."""
    return _from_2_1(figures, "CUDA", "torch.OutOfMemoryError", HINT_P8)


def hip(figures: Figures) -> str:
    """PyTorch 2.4 and later on ROCm, which prints no process clauses."""
    return p6(replace(figures, own=None, others=()), "HIP")


def npu(figures: Figures) -> str:
    """torch_npu: the text of 1.10 with ``current active``, and no space in front of the hint."""
    return (
        f"RuntimeError: NPU out of memory. Tried to allocate {size(figures.tried)} (NPU 0; "
        f"{size(figures.capacity)} total capacity; {size(figures.allocated)} already allocated; "
        f"{size(figures.allocated)} current active; {size(figures.free)} free; "
        f"{size(figures.reserved)} reserved in total by PyTorch)"
        ".If reserved memory is >> allocated memory try setting max_split_size_mb to avoid"
        " fragmentation."
    )


def xpu(figures: Figures) -> str:
    """PyTorch 2.9 and later on Intel."""
    return (
        f"torch.OutOfMemoryError: XPU out of memory. Tried to allocate {size(figures.tried)}. GPU 0"
        f" has a total capacity of {size(figures.capacity)} of which {size(figures.free)} is free."
        f" Of the allocated memory {size(figures.allocated)} is allocated by PyTorch, and"
        f" {size(figures.idle)} is reserved by PyTorch but unallocated. Please use `empty_cache` to"
        " release all unoccupied cached memory."
    )


#: A plain shortage on an 80 GB card: the failure for tests in which the figures do not matter.
PLAIN = p6(gib(2, 79.14, 1, 70, idle=1, own=78.1))
#: The failure of vllm#36802.
SHARED = (
    "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 81920, "
    "Hardware limit: 65536. Reducing block sizes or `num_stages` may help."
)
NO_BLOCKS = (
    "ValueError: No available memory for the cache blocks. Try increasing "
    "`gpu_memory_utilization` when initializing the engine."
)


def traceback(
    exception: str,
    *frames: tuple[str, str] | tuple[str, int, str],
    prefix: str = "",
    source: str = "",
) -> str:
    """Print a Python traceback; a frame is ``(file, function)`` or ``(file, line, function)``."""
    lines = ["Traceback (most recent call last):"]
    for frame in frames or (("/app/main.py", "main"),):
        file, number, function = (frame[0], 7, frame[1]) if len(frame) == 2 else frame
        lines += [f'  File "{file}", line {number}, in {function}', f"    {source or 'step()'}"]
    lines.append(exception)
    return "".join(f"{prefix}{line}\n" for line in lines)
