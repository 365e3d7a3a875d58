"""PyTorch's out-of-memory message, printed as each generation of its allocator prints it.

Written from the format strings in the knowledge file, not from the rules: the tests build a message
from figures and see whether the tool finds its way back.
"""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB, GIB = 1024, 1024**2, 1024**3

#: Hints that end the message; each dates the wheel it was read from.
HINT_P3 = (
    " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation."
    "  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
)
HINT_P4 = (
    " If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation."
    "  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
)
HINT_P5 = (
    " If reserved but unallocated memory is large try setting"
    " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for"
    " Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)
HINT_P7 = HINT_P5.replace("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
HINT_P8 = HINT_P5.replace(
    "https://pytorch.org/docs/stable/notes/cuda.html#environment-variables",
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf",
)


def size(count: float) -> str:
    """Write a byte count as ``c10::cuda::format_size`` does: two decimals, each unit up to its end."""
    if count <= KIB:
        return f"{round(count)} bytes"
    for limit, factor, unit in ((MIB, KIB, "KiB"), (GIB, MIB, "MiB")):
        if count <= limit:
            return f"{count / factor:.2f} {unit}"
    return f"{count / GIB:.2f} GiB"


@dataclass(frozen=True)
class Printed:
    """The figures of one report in bytes, with the letters of the knowledge file.

    T tried, C capacity, F free, A allocated, U reserved but not allocated, G private pools,
    L allowed, M this process; ``others`` are the clauses of other processes.
    """

    T: float
    C: float
    F: float
    A: float
    U: float = 0.0
    G: float = 0.0
    L: float | None = None
    M: float | None = None
    others: tuple[tuple[int, float], ...] = ()

    @property
    def R(self) -> float:  # noqa: N802 - the letter of the knowledge file
        """Reserved: allocated and idle together."""
        return self.A + self.U


def gib(T: float, C: float, F: float, A: float, **more: float | tuple[tuple[int, float], ...]) -> Printed:  # noqa: N803
    """Figures in GiB; ``R=`` may stand for ``U=``."""
    if "R" in more:
        more["U"] = float(more.pop("R")) - A  # type: ignore[arg-type]
    others = tuple((pid, held * GIB) for pid, held in more.pop("others", ()))  # type: ignore[union-attr]
    scaled = {name: value * GIB for name, value in more.items()}  # type: ignore[operator]
    return Printed(T * GIB, C * GIB, F * GIB, A * GIB, others=others, **scaled)


def p1(f: Printed, device: str = "CUDA") -> str:
    """PyTorch 1.0 to 1.3: ``cached`` leaves out what is allocated."""
    return (
        f"RuntimeError: {device} out of memory. Tried to allocate {size(f.T)} (GPU 0; {size(f.C)} total capacity; "
        f"{size(f.A)} already allocated; {size(f.F)} free; {size(f.U)} cached)"
    )


def p2(f: Printed, device: str = "CUDA") -> str:
    """PyTorch 1.4 to 1.9: ``reserved`` includes what is allocated."""
    allowed = f"{size(f.L)} allowed; " if f.L is not None else ""
    return (
        f"RuntimeError: {device} out of memory. Tried to allocate {size(f.T)} (GPU 0; {size(f.C)} total capacity; "
        f"{size(f.A)} already allocated; {size(f.F)} free; {allowed}{size(f.R)} reserved in total by PyTorch)"
    )


def p3(f: Printed, device: str = "CUDA") -> str:
    """PyTorch 1.10 to 2.0."""
    return p2(f, device).replace("RuntimeError", "torch.cuda.OutOfMemoryError") + HINT_P3


def _later(f: Printed, device: str, exception: str, hint: str, capacity: str = "capacity") -> str:
    clauses = "".join(f"Process {pid} has {size(held)} memory in use. " for pid, held in f.others)
    if f.M is not None:
        clauses += f"Including non-PyTorch memory, this process has {size(f.M)} memory in use. "
    allowed = f"{size(f.L)} allowed; " if f.L is not None else ""
    graphs = f"with {size(f.G)} allocated in private pools (e.g., {device.replace('CUDA', 'CUDA')} Graphs), " if f.G else ""
    return (
        f"{exception}: {device} out of memory. Tried to allocate {size(f.T)}. GPU 0 has a total {capacity} of "
        f"{size(f.C)} of which {size(f.F)} is free. {allowed}{clauses}Of the allocated memory {size(f.A)} is "
        f"allocated by PyTorch, {graphs}and {size(f.U)} is reserved by PyTorch but unallocated.{hint}"
    )


def p4(f: Printed, device: str = "CUDA") -> str:
    """PyTorch 2.1, whose typo dates it."""
    return _later(f, device, "torch.cuda.OutOfMemoryError", HINT_P4, "capacty")


def p5(f: Printed, device: str = "CUDA") -> str:
    """PyTorch 2.2 and 2.3."""
    return _later(f, device, "torch.cuda.OutOfMemoryError", HINT_P5)


def p6(f: Printed, device: str = "CUDA") -> str:
    """PyTorch 2.4 to 2.9."""
    return _later(f, device, "torch.OutOfMemoryError", HINT_P5)


def p7(f: Printed, device: str = "CUDA") -> str:
    """PyTorch 2.10."""
    return _later(f, device, "torch.OutOfMemoryError", HINT_P7)


def p8(f: Printed, device: str = "CUDA") -> str:
    """PyTorch 2.11 to 2.14."""
    return _later(f, device, "torch.OutOfMemoryError", HINT_P8)


def npu(f: Printed) -> str:
    """torch_npu: the text of 1.10 with ``current active``, and no space before the hint."""
    return (
        f"RuntimeError: NPU out of memory. Tried to allocate {size(f.T)} (NPU 0; {size(f.C)} total capacity; "
        f"{size(f.A)} already allocated; {size(f.A)} current active; {size(f.F)} free; "
        f"{size(f.R)} reserved in total by PyTorch).If reserved memory is >> allocated memory try setting"
        " max_split_size_mb to avoid fragmentation."
    )


def xpu(f: Printed) -> str:
    """PyTorch 2.9 and later on Intel."""
    return (
        f"torch.OutOfMemoryError: XPU out of memory. Tried to allocate {size(f.T)}. GPU 0 has a total capacity of "
        f"{size(f.C)} of which {size(f.F)} is free. Of the allocated memory {size(f.A)} is allocated by PyTorch, and "
        f"{size(f.U)} is reserved by PyTorch but unallocated. Please use `empty_cache` to release all unoccupied "
        "cached memory."
    )
