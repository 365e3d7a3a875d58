"""What to change about a snapshot's verdict, under which conditions, and what will not help.

The conditions are facts of releases: PyTorch's from its own builds, vLLM's from its wheels (``config/vllm.py`` refuses
a KV connector since 0.21.0; ``device_allocator/cumem.py`` has an assertion in 0.8.0 to 0.20.0 and switches the option
off round its own pool from 0.21.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from oortriage.evidence.values import MIB, format_bytes
from oortriage.snapshot.model import DEFAULT_POOL
from oortriage.snapshot.owners import NO_STACK, Owner
from oortriage.snapshot.verdict import Verdict

_NAME = "the variable is PYTORCH_ALLOC_CONF in newer releases, which still read the name PYTORCH_CUDA_ALLOC_CONF"


class Remedy(msgspec.Struct, frozen=True):
    """One thing to change: the exact change, its computed effect, and the conditions under which it works."""

    change: str
    effect: str
    conditions: list[str] = []


class NoRemedy(msgspec.Struct, frozen=True):
    """Advice that people give and that does nothing here."""

    advice: str
    why: str


def remedies(
    verdict: Verdict, settings: dict[str, Any], owners: Sequence[Owner]
) -> tuple[list[Remedy], list[NoRemedy]]:
    """List what to change for a verdict, the best first, and what will not help.

    Args:
        verdict: the verdict.
        settings: the allocator's settings as the snapshot has them.
        owners: who holds memory at that moment, the largest first.
    """
    expandable = settings.get("expandable_segments") is True
    cause = verdict.cause
    if cause == "fragmentation":
        return _fragmentation(verdict, expandable=expandable), []
    advice = [NoRemedy(_SEGMENTS, _why_not(verdict))] if cause in _WHY else []
    if cause == "stranded_pool":
        return _pools(verdict), advice
    if cause == "stranded_stream":
        return [
            Remedy(
                "allocate and free on the same stream (torch.cuda.stream), or end the side stream's use before",
                f"{format_bytes(verdict.offer.other_streams)} are cached for other streams than {verdict.stream}",
                [
                    (
                        "torch.cuda.empty_cache() gives back only segments without a live block; the allocator does "
                        "that itself before it fails"
                    )
                ],
            )
        ], advice
    if cause == "awaiting_free":
        return [
            Remedy(
                "let the other stream finish before the request (stream.wait_stream, an event), or drop record_stream",
                f"{format_bytes(verdict.offer.awaiting)} become free as soon as its work is done",
                ["TORCH_NCCL_AVOID_RECORD_STREAMS=1 where the tensors are a collective's"],
            )
        ], advice
    if cause == "limit":
        return [
            Remedy(
                "raise or remove torch.cuda.set_per_process_memory_fraction (a vGPU's quota acts the same)",
                f"the card had {format_bytes(verdict.device_free_bytes or 0)} free",
            )
        ], advice
    if cause == "absurd_request":
        return [Remedy("find the line below and compute its output's shape", "no setting makes room for it")], advice
    if cause == "capacity":
        return _capacity(verdict, owners), advice
    return [], []


_SEGMENTS = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True or max_split_size_mb"
_WHY = frozenset({"stranded_pool", "stranded_stream", "awaiting_free", "limit", "absurd_request", "capacity"})


def _why_not(verdict: Verdict) -> str:
    if verdict.cause == "capacity" and verdict.short_bytes:
        return f"with every idle byte joined it would still be {format_bytes(verdict.short_bytes)} short"
    if verdict.cause == "capacity":
        return "at most this one request: nearly all of what is reserved is in use"
    if verdict.cause == "stranded_pool":
        return "a private pool's memory stays its own, in segments of any kind"
    if verdict.cause == "limit":
        return "enough was free in one piece: a limit refused it"
    if verdict.cause == "absurd_request":
        return "no setting makes room for a request larger than any card"
    return "the idle memory belongs to another stream; how it is cut does not matter"


def _fragmentation(verdict: Verdict, *, expandable: bool) -> list[Remedy]:
    idle = format_bytes(verdict.offer.usable)
    found = []
    if not expandable:
        found.append(
            Remedy(
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                f"the pages under the {idle} that lie idle can then go to requests of any size",
                [
                    f"PyTorch 2.1 or later; {_NAME}",
                    "not with vLLM's sleep mode before 0.21.0, which refuses it; from then on it is off for that pool",
                    "not with a KV connector of vLLM from 0.21.0, unless its sleep mode's allocator is on",
                    "not with torch.cuda.MemPool in PyTorch 2.7 to 2.9",
                    "not together with max_split_size_mb (https://github.com/pytorch/pytorch/issues/123548)",
                ],
            )
        )
    limit = max(21, min(verdict.rounded_bytes // MIB // 2, 512))
    found.append(
        Remedy(
            f"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:{limit}",
            f"blocks larger than {limit} MiB are no longer cut, so that they go back to the driver whole",
            [
                "instead of expandable segments; must be more than 20",
                "from the start of the process: what is cut stays cut",
                "some speed, and more memory held for requests that fit no block",
            ],
        )
    )
    found.append(
        Remedy(
            f"make the request of {format_bytes(verdict.rounded_bytes)} first, or keep its tensor and use it again",
            "a large block that is taken early is not cut",
        )
    )
    return found


def _pools(verdict: Verdict) -> list[Remedy]:
    idle = format_bytes(verdict.offer.other_pools)
    if verdict.pool != DEFAULT_POOL:
        return [
            Remedy(
                "torch.cuda.empty_cache() before the capture (or before the MemPool is used)",
                f"of the {idle} that lie idle in other pools, whole segments go back to the driver",
                ["a capture cannot give cached memory back itself"],
            )
        ]
    return [
        Remedy(
            "let CUDA graphs share one pool: torch.cuda.graph(g, pool=first.pool()), and capture the largest first",
            f"the {idle} that lie idle in private pools are then needed once, not once a graph",
            ["graphs that share a pool replay in the order of their capture and never at the same time"],
        ),
        Remedy(
            "delete the graphs (or the MemPool) before the request, then torch.cuda.empty_cache()",
            f"frees up to {idle}",
            ["the graphs cannot be replayed afterwards"],
        ),
        Remedy(
            "torch.cuda.MemPool(use_on_oom=True)",
            "lets other requests use the pool as a last resort",
            ["a MemPool of your own, not a graph's", "PyTorch with this argument (2.13 has it)"],
        ),
        Remedy(
            "in vLLM: a shorter list of capture sizes (cudagraph_capture_sizes), or --enforce-eager",
            "fewer graphs, smaller pools",
            ["costs speed in decode"],
        ),
    ]


def _capacity(verdict: Verdict, owners: Sequence[Owner]) -> list[Remedy]:
    short = verdict.short_bytes or verdict.rounded_bytes - (verdict.device_free_bytes or 0)
    found = [
        Remedy(
            f"free or shrink what {one.where} allocates",
            f"it holds {format_bytes(one.bytes)} in {one.blocks:,} block{'s' if one.blocks != 1 else ''}; "
            f"{format_bytes(short)} are missing",
        )
        for one in owners[:3]
        if one.where != NO_STACK
    ]
    return found or [
        Remedy(
            "record stacks to see who holds the memory: torch.cuda.memory._record_memory_history()",
            f"{format_bytes(short)} are missing",
        )
    ]
