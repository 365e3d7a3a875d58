"""Which free block a request may take: the rules of PyTorch's caching allocator, and what they leave out of reach.

The sizes are those of ``c10/core/AllocatorConfig.h`` of torch 2.13; they have been the same since PyTorch 1.1
(https://github.com/pytorch/pytorch/pull/17120).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from oortriage.evidence.values import MIB
from oortriage.snapshot.model import Block, PoolId, Segment

#: Sizes are rounded up to a multiple of this.
MIN_BLOCK = 512
#: The largest request that the small pool serves.
SMALL_LIMIT = MIB
#: A small segment, and the step of large ones.
SMALL_SEGMENT = 2 * MIB
#: A segment for requests between 1 and 10 MiB.
LARGE_SEGMENT = 20 * MIB
#: From here on a request gets a segment of its own size.
OWN_SEGMENT = 10 * MIB


class Need(msgspec.Struct, frozen=True):
    """A request: its bytes, rounded as the allocator does, who makes it, and the segment that it would ask for."""

    bytes: int
    rounded: int
    kind: Literal["small", "large"]
    segment_bytes: int
    stream: int = 0
    pool: PoolId = (0, 0)


class Offer(msgspec.Struct, frozen=True):
    """Idle memory as a request sees it, in bytes.

    ``largest``: its largest block of the right pool, stream and kind; ``usable``: all of those together.
    The others are out of its reach: ``other_pools`` (a private pool's), ``other_streams`` (its pool, another stream),
    ``other_kind`` (small segments for a large request, or the reverse), ``awaiting`` (freed, and still in use by
    another stream).
    """

    largest: int
    usable: int
    usable_blocks: int
    other_pools: int
    other_streams: int
    other_kind: int
    awaiting: int


def need(size: int, stream: int = 0, pool: PoolId = (0, 0)) -> Need:
    """Round a request as the allocator does (without ``roundup_power2_divisions``)."""
    rounded = max(MIN_BLOCK, -(-size // MIN_BLOCK) * MIN_BLOCK)
    if rounded <= SMALL_LIMIT:
        return Need(size, rounded, "small", SMALL_SEGMENT, stream, pool)
    if rounded < OWN_SEGMENT:
        return Need(size, rounded, "large", LARGE_SEGMENT, stream, pool)
    return Need(size, rounded, "large", -(-rounded // SMALL_SEGMENT) * SMALL_SEGMENT, stream, pool)


def offer(segments: Iterable[Segment], wanted: Need, max_split: int | None = None) -> Offer:
    """Sort a device's idle memory by whether the request may take it.

    Args:
        segments: the device's segments.
        wanted: the request.
        max_split: the allocator's ``max_split_size`` in bytes, where one is set: larger blocks serve only requests of
            their own size.
    """
    mine: list[Block] = []
    others = {"other_pools": 0, "other_streams": 0, "other_kind": 0}
    awaiting = 0
    for segment in segments:
        awaiting += segment.bytes_in("awaiting_free")
        idle = [block for block in segment.blocks if block.state == "inactive"]
        if segment.pool != wanted.pool:
            others["other_pools"] += sum(block.size for block in idle)
        elif segment.stream != wanted.stream:
            others["other_streams"] += sum(block.size for block in idle)
        elif segment.kind != wanted.kind:
            others["other_kind"] += sum(block.size for block in idle)
        else:
            mine += idle
    fitting = [block for block in mine if _may_take(block.size, wanted.rounded, max_split)]
    return Offer(
        largest=max((block.size for block in fitting), default=0),
        usable=sum(block.size for block in mine),
        usable_blocks=len(mine),
        awaiting=awaiting,
        **others,
    )


def _may_take(block: int, wanted: int, max_split: int | None) -> bool:
    """Say whether a block's size does not keep it from the request (``get_free_block`` of the allocator)."""
    if max_split is None or block < max_split:
        return True
    return wanted >= max_split and block < wanted + LARGE_SEGMENT


def largest_idle(segments: Sequence[Segment]) -> int:
    """Find the largest idle block of some segments, in bytes."""
    return max((one.size for seg in segments for one in seg.blocks if one.state == "inactive"), default=0)
