"""What is left for the KV cache on a card after vLLM's start-up profiling, release by release."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from oortriage.budget.figure import Figure
from oortriage.budget.kv import Engine
from oortriage.budget.sums import estimate, sum_of
from oortriage.budget.versions import (
    GATE_SINCE,
    GIVEN_SINCE,
    GRAPHS_CHARGED_SINCE,
    Fact,
    between,
    default_engine,
    default_utilization,
    fact,
    has_engine,
    holds,
)
from oortriage.errors import UsageError
from oortriage.evidence.values import GIB

#: How the release measures what is not KV cache.
#:
#: ``free_before_after``: how far free memory fell over loading and the profile run, torch's reserved but unused
#: memory with it. ``device_peak``: torch's peak, and all that is in use on the device outside torch: memory of other
#: processes counts. ``instance_increase``: weights, torch's peak above them, and what the process took outside torch
#: since start. ``free_consumed``: how far free memory fell, and torch's peak above what it still holds.
#: ``given``: ``--kv-cache-memory-bytes``; nothing is subtracted.
Formula = Literal["free_before_after", "device_peak", "instance_increase", "free_consumed", "given"]

V0_FORMULA = (
    Fact("free_before_after", "0.5.4", "0.6.3.post1", "vLLM 0.6.3.post1 worker/worker.py:217-248"),
    Fact("device_peak", "0.6.4.post1", "0.6.4.post1", "vLLM 0.6.4.post1 worker/worker.py"),
    Fact("instance_increase", "0.6.6.post1", "0.10.2", "vLLM 0.6.6.post1 worker/worker.py:251-278"),
)
V1_FORMULA = (
    Fact("free_before_after", "0.6.4.post1", "0.6.4.post1", "vLLM 0.6.4.post1 v1/worker/gpu_worker.py:105-133"),
    Fact("device_peak", "0.6.6.post1", "0.9.0", "vLLM 0.8.5 v1/worker/gpu_worker.py:177-212"),
    Fact("instance_increase", "0.9.2", "0.25.1", "vLLM 0.17.1 v1/worker/gpu_worker.py:384-409"),
    Fact("free_consumed", "0.28.0", "", "vLLM 0.33.0 utils/mem_utils.py:309-321"),
)
#: Whether requested memory is rounded up to a whole byte.
ROUNDED_UP_SINCE = Fact("ceil", "0.14.1", "", "vLLM 0.22.1 v1/worker/utils.py request_memory")
GATE_DEVICE_SINCE = Fact("names the device", "0.14.1", "", "vLLM 0.17.1 v1/worker/utils.py")
#: Whether CUDA graphs are estimated before the KV cache is sized.
GRAPHS_ESTIMATED_SINCE = Fact("estimate", "0.18.0", "", "vLLM 0.18.0 v1/worker/gpu_worker.py:378-447")
#: NCCL's buffers are there before the first snapshot: they lower free memory but are not charged.
NCCL_BEFORE_SINCE = Fact("NCCL before the snapshot", "0.11.0", "", "vLLM 0.11.0 v1/worker/gpu_worker.py")
CUBLAS_BEFORE_SINCE = Fact("cuBLAS before the snapshot", "0.33.0", "", "vLLM 0.33.0 v1/worker/gpu_worker.py")
#: torch 2.10 and later, whose kernels take more when they are loaded.
NEWER_KERNELS_SINCE = Fact("torch 2.11", "0.20.0", "", "starts of vLLM 0.22.1 on an H200, docs/evidence/kv-starts.md")
#: Integrated GPUs: the system's available memory stands for the card's free memory.
UNIFIED_SINCE = Fact("psutil", "0.17.1", "", "vLLM 0.17.1 utils/mem_utils.py:105-122")


class Gate(msgspec.Struct, frozen=True):
    """The check before anything is loaded: free memory against what is asked for. Bytes.

    ``message`` is the release's own error, with the GiB that it would print; empty when it passes.
    """

    passes: bool
    free: Figure
    wanted: Figure
    message: str = ""


class Available(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The budget of one rank, every term in bytes; ``available`` is what the KV cache gets (may be negative).

    ``graphs_charged``: whether CUDA graphs are taken from the budget, or must fit beside it. ``outside``: total less
    requested, where graphs that are not charged, the CUDA context and other processes must fit. ``others``: memory
    of other processes on the card. ``source`` says which file and release the formula is from.
    """

    version: str
    engine: Engine
    formula: Formula
    source: str
    total: Figure
    utilization: Figure
    requested: Figure
    weights: Figure
    activation: Figure
    non_torch: Figure
    graphs: Figure | None = None
    graphs_charged: bool = False
    others: Figure | None = None
    available: Figure
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
    tp: int = 1,
    pp: int = 1,
) -> Available:
    """Work out what vLLM leaves for the KV cache on one rank, by the release's own formula.

    Args:
        version: vLLM's release.
        total: the card's memory as cudaMemGetInfo reports it, bytes.
        weights: the model's weights on this rank, bytes.
        activation: torch's peak in the profile run above the weights, bytes.
        non_torch: what the process takes outside torch as far as it is charged, bytes; None: an estimate.
        graphs: what CUDA graphs take, bytes; None: nothing is captured or it is not known.
        utilization: ``--gpu-memory-utilization``; None: the release's default.
        free: free memory at start, bytes; None: the start gate is not checked.
        others: memory that other processes hold on the card, bytes.
        kv_cache_memory: ``--kv-cache-memory-bytes``.
        engine: V0 or V1; None: the release's default.
        charge_graphs: VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS, where the release has it; None: its default.
        unified: the GPU shares the host's memory (Orin, Thor, DGX Spark).
        tp: tensor-parallel size, for the estimate of what is outside torch.
        pp: pipeline-parallel size, likewise.

    Raises:
        UsageError: the release or engine does not exist, or a number is nonsense.
    """
    chosen: Engine = engine or ("V1" if default_engine(version) == "V1" else "V0")
    if not has_engine(version, chosen):
        raise UsageError(f"vLLM {version} has no engine {chosen}")
    share = _share(version, utilization)
    if not (math.isfinite(total.value) and total.value > 0):
        raise UsageError(f"a card has more than {total.value:g} bytes of memory")
    rule = fact(version, V0_FORMULA if chosen == "V0" else V1_FORMULA)
    outside_torch = non_torch or non_torch_memory(version, tp=tp, pp=pp, engine=chosen)
    notes = [note for note in (between(version),) if note]
    formula: Formula = rule.value  # type: ignore[assignment]  # the table holds nothing else
    source = rule.source
    charged = _charged(version, chosen, graphs, charge_graphs, notes)
    requested = _requested(version, total, share)
    if kv_cache_memory is not None:
        formula, source = "given", GIVEN_SINCE.source
        available = _given(version, kv_cache_memory, notes)
    else:
        taken = [weights, activation, outside_torch]
        if charged and graphs is not None:
            taken.append(graphs)
        if formula == "device_peak" and others is not None:
            taken.append(others)
        available = sum_of([requested], taken, how=_told(formula, charged=charged, others=others is not None))
        _note_formula(formula, others, notes)
    if unified:
        notes.append(
            "the GPU shares the host's memory: free memory is what the system has available"
            if holds(version, UNIFIED_SINCE)
            else f"the GPU shares the host's memory, and vLLM {version} reads its free memory too low (cudaMemGetInfo "
            "leaves out what the system could give back)"
        )
    return Available(
        version=version,
        engine=chosen,
        formula=formula,
        source=source,
        total=total,
        utilization=share,
        requested=requested,
        weights=weights,
        activation=activation,
        non_torch=outside_torch,
        graphs=graphs,
        graphs_charged=charged,
        others=others,
        available=available,
        outside=sum_of([total], [requested], how="total - requested"),
        gate=start_gate(version, total, requested, share, free, chosen) if kv_cache_memory is None else None,
        notes=tuple(notes),
    )


def start_gate(
    version: str, total: Figure, requested: Figure, utilization: Figure, free: Figure | None, engine: Engine = "V1"
) -> Gate | None:
    """Check free memory at start as V1 does from 0.9.2 on; None for a release that does not, or free not known.

    The message is what the release prints (vLLM 0.22.1 v1/worker/utils.py request_memory); from 0.14.1 on GiB are
    rounded to two places and trailing zeros go.
    """
    if free is None or engine == "V0" or not holds(version, GATE_SINCE):
        return None
    if free.value >= requested.value:
        return Gate(True, free, requested)
    device = " cuda:0" if holds(version, GATE_DEVICE_SINCE) else ""

    def gib(size: float) -> str:
        return f"{round(size / GIB, 2)}" if device else f"{size / GIB:.2f}"

    return Gate(
        False,
        free,
        requested,
        f"Free memory on device{device} ({gib(free.value)}/{gib(total.value)} GiB) on startup is less than desired GPU "
        f"memory utilization ({utilization.value:g}, {gib(requested.value)} GiB). Decrease GPU memory utilization or "
        "reduce GPU memory used by other processes.",
    )


def _share(version: str, utilization: float | None) -> Figure:
    if utilization is None:
        return Figure(default_utilization(version), "share", "given", f"default of vLLM {version}")
    if not 0 < utilization <= 1:
        raise UsageError(f"--gpu-memory-utilization {utilization:g}: vLLM takes more than 0 and at most 1")
    return Figure(utilization, "share", "given", "--gpu-memory-utilization")


def _requested(version: str, total: Figure, share: Figure) -> Figure:
    """Total x utilization; rounded up from 0.14.1 on, and to whole bytes down before."""
    up = holds(version, ROUNDED_UP_SINCE)
    size = total.value * share.value
    return Figure(
        math.ceil(size) if up else math.floor(size),
        "bytes",
        "estimated" if total.provenance == "estimated" else "derived",
        f"{'ceil of ' if up else ''}total x {share.value:g}",
        low=None if total.low is None else total.low * share.value,
        high=None if total.high is None else total.high * share.value,
    )


def _charged(version: str, engine: Engine, graphs: Figure | None, wish: bool | None, notes: list[str]) -> bool:
    """Tell whether graphs are taken from the budget, and say so where it matters."""
    if engine == "V0" or not holds(version, GRAPHS_ESTIMATED_SINCE):
        if wish:
            notes.append(f"vLLM {version} does not know VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS")
        charged = False
    else:
        charged = holds(version, GRAPHS_CHARGED_SINCE) if wish is None else wish
    if graphs is not None and graphs.value and not charged:
        notes.append("CUDA graphs are captured after the KV cache is there, and are not in the budget")
    return charged


def _given(version: str, kv_cache_memory: int, notes: list[str]) -> Figure:
    if not holds(version, GIVEN_SINCE):
        raise UsageError(f"vLLM {version} has no --kv-cache-memory-bytes; it came with {GIVEN_SINCE.since}")
    if kv_cache_memory <= 0:
        raise UsageError(f"--kv-cache-memory-bytes {kv_cache_memory}: not a size")
    notes.append("--kv-cache-memory-bytes is taken as it is: utilization and the profile run do not change it")
    return Figure(kv_cache_memory, "bytes", "given", "--kv-cache-memory-bytes")


def _told(formula: Formula, *, charged: bool, others: bool) -> str:
    terms = ["requested", "weights", "activation peak", "outside torch"]
    if charged:
        terms.append("CUDA graphs (estimated by vLLM)")
    if formula == "device_peak" and others:
        terms.append("other processes")
    return " - ".join(terms)


def _note_formula(formula: Formula, others: Figure | None, notes: list[str]) -> None:
    if formula == "device_peak":
        notes.append("memory of other processes on the card counts against this release's budget")
    elif formula == "free_before_after":
        notes.append("torch's reserved but unused memory counts as well, and any change by other processes")
    elif others is not None and others.value:
        notes.append("memory of other processes is not charged, but must be free for the start gate")


def non_torch_memory(version: str, *, tp: int = 1, pp: int = 1, engine: Engine | None = None) -> Figure:
    """Estimate what the process takes on the card outside torch, as far as it is charged to the budget, bytes.

    Loaded kernels and cuBLAS, and NCCL's buffers with several ranks: until 0.10.2 they are inside the budget, from
    0.11.0 on NCCL is there before the first snapshot. With ``device_peak`` the CUDA context counts too. On one card
    public logs print 0.01 to 0.16 GiB up to 0.17, and 17 starts of 0.22.1 on an H200 0.22 GiB each.
    """
    chosen: Engine = engine or ("V1" if default_engine(version) == "V1" else "V0")
    formula = fact(version, V0_FORMULA if chosen == "V0" else V1_FORMULA).value
    several = tp * pp > 1
    value, least, most = (0.22, 0.02, 0.5) if holds(version, NEWER_KERNELS_SINCE) else (0.07, 0.0, 0.35)
    if formula == "device_peak":  # the context of the process is in it
        value, least, most = 0.7, 0.4, 1.8
    if several:
        charged = chosen == "V0" or not holds(version, NCCL_BEFORE_SINCE)
        value, most = value + 0.3, most + (1.6 if charged else 0.8)
    return estimate(value * GIB, "public logs print between these", least=least * GIB, most=most * GIB)
