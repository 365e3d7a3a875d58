"""What is left for the KV cache on a card after vLLM's start-up profiling, release by release."""

from __future__ import annotations

from typing import Literal

import msgspec

from oortriage.budget.figure import Figure

#: vLLM's old engine (removed in 0.11.0) and the present one.
Engine = Literal["v0", "v1"]
#: How the release measures what is not KV cache.
Formula = Literal["free_before_after", "device_peak", "instance_increase", "free_consumed", "given"]


class Gate(msgspec.Struct, frozen=True):
    """The check before anything is loaded: free memory against what is asked for. Bytes."""

    passes: bool
    free: Figure
    wanted: Figure
    message: str = ""


class Available(msgspec.Struct, frozen=True, kw_only=True):
    """The budget of one rank, every term in bytes; ``available`` is what the KV cache gets (may be negative)."""

    version: str
    engine: Engine
    formula: Formula
    total: Figure
    utilization: Figure
    requested: Figure
    weights: Figure
    activation: Figure
    non_torch: Figure
    graphs: Figure | None = None
    #: Whether graphs are taken from the budget (from 0.20.0 on) or must fit beside it.
    graphs_charged: bool = False
    others: Figure | None = None
    available: Figure
    #: What is left outside the budget, where graphs that are not charged, and other processes, must fit.
    outside: Figure
    gate: Gate | None = None
    notes: tuple[str, ...] = ()


def available_for_kv(
    *,
    version: str,
    total: Figure,
    weights: Figure,
    activation: Figure,
    non_torch: Figure | None = None,
    graphs: Figure | None = None,
    utilization: float | None = None,
    free: Figure | None = None,
    others: Figure | None = None,
    kv_cache_memory: int | None = None,
    engine: Engine | None = None,
    charge_graphs: bool | None = None,
    unified: bool = False,
) -> Available:
    """Work out what vLLM leaves for the KV cache. All memory in bytes, of one rank."""
    raise NotImplementedError


def default_engine(version: str) -> Engine:
    """Name the engine a release starts when nobody chooses."""
    raise NotImplementedError


def default_utilization(version: str) -> Figure:
    """Return the release's own ``gpu_memory_utilization``."""
    raise NotImplementedError


def non_torch_memory(version: str, *, tp: int = 1, pp: int = 1) -> Figure:
    """Estimate what the process holds on the card outside torch, as far as it is charged to the budget, bytes."""
    raise NotImplementedError
