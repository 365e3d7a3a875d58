"""How long a call takes on the card: events, warm-up, inputs rotated past the cache, the spread shown."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import msgspec

#: A call shorter than this, in ms, is timed as a replayed graph: launching it takes as long as running it.
GRAPH_BELOW_MS = 0.2
WARM_UP = 5
RUNS = 40


class Timed(msgspec.Struct, frozen=True):
    """Milliseconds of one call: median, and the tenth and ninetieth of a hundred. ``graph``: replayed."""

    median_ms: float
    low_ms: float
    high_ms: float
    runs: int
    graph: bool


def time_call(call: Callable[[int], Any], copies: int, runs: int = RUNS) -> Timed:
    """Time ``call(i)`` in ``runs`` runs, where ``i`` chooses one of ``copies`` sets of inputs."""
    import torch

    for index in range(WARM_UP):
        call(index % copies)
    torch.cuda.synchronize()
    first = _events(lambda index: call(index % copies), 5)
    if statistics.median(first) >= GRAPH_BELOW_MS:
        return _timed(_events(lambda index: call(index % copies), runs), graph=False)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for index in range(copies):
            call(index)
    graph.replay()
    torch.cuda.synchronize()
    return _timed([one / copies for one in _events(lambda _: graph.replay(), runs)], graph=True)


def _events(call: Callable[[int], Any], runs: int) -> list[float]:
    import torch

    event: Any = torch.cuda.Event
    pairs = [(event(enable_timing=True), event(enable_timing=True)) for _ in range(runs)]
    for index, (start, end) in enumerate(pairs):
        start.record()
        call(index)
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in pairs]


def _timed(times: list[float], *, graph: bool) -> Timed:
    tenths = statistics.quantiles(times, n=10)
    return Timed(statistics.median(times), tenths[0], tenths[-1], len(times), graph)


def ceilings(dtype: str) -> dict[str, float]:
    """Measure what the card can do at most: bytes/s of a large copy, FLOP/s of a large matrix product.

    The product is torch's in the type given; float32 without TF32 and, under ``tf32``, with it.
    """
    import torch

    found = {"copy_bytes_per_second": _copy_rate()}
    size = 8192
    left = torch.randn(size, size, dtype=getattr(torch, dtype), device="cuda")
    right = torch.randn_like(left)
    for name, precision in ((dtype, "highest"), *((("tf32", "high"),) if dtype == "float32" else ())):
        torch.set_float32_matmul_precision(precision)
        product = time_call(lambda _: left @ right, 1)
        found[f"{name}_flop_per_second"] = 2 * size**3 / product.median_ms * 1e3
    torch.set_float32_matmul_precision("highest")
    return found


def _copy_rate() -> float:
    """Measure bytes/s of a copy of 1 GiB on the card: each byte is read and written."""
    import torch

    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / time_call(lambda _: target.copy_(source), 1).median_ms * 1e3
