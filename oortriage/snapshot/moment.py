"""The allocator at an earlier moment: the recorded events after it, taken back one by one.

A snapshot is often written after the failure was caught, when the stack has gone and its tensors with it. The events
since then say exactly what was freed, so the state at the failure can be had back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from oortriage.snapshot.model import DEFAULT_POOL, Block, Event, Frames, PoolId, Segment
from oortriage.snapshot.request import MIN_BLOCK, SMALL_LIMIT, SMALL_SEGMENT


class Moment(msgspec.Struct, frozen=True):
    """The segments at a moment; ``undone`` is how many events were taken back, ``odd`` how many did not fit."""

    segments: tuple[Segment, ...]
    undone: int = 0
    odd: int = 0


class _Range(msgspec.Struct):
    """Memory from the driver: a segment without its blocks."""

    start: int
    end: int
    stream: int
    kind: str
    pool: PoolId
    expandable: bool


class _Rewind:
    """One device's blocks and ranges, while events are taken back."""

    def __init__(self, device: int, segments: Sequence[Segment]) -> None:
        self.device = device
        self.live = {one.address: one for seg in segments for one in seg.blocks if one.state != "inactive"}
        self.guessed: set[int] = set()
        self.ranges = [_Range(seg.address, seg.end, seg.stream, seg.kind, seg.pool, seg.expandable) for seg in segments]
        self.odd = 0

    def undo(self, event: Event) -> None:
        """Take one event back."""
        if event.action == "alloc":
            self.odd += self.live.pop(event.address, None) is None
            self.guessed.discard(event.address)
        elif event.action == "free_completed":
            size = max(MIN_BLOCK, -(-event.size // MIN_BLOCK) * MIN_BLOCK)
            self.live[event.address] = Block(event.address, size, event.size, "awaiting_free")
            self.guessed.add(event.address)
        elif event.action == "free_requested":
            block = self.live.get(event.address)
            self.odd += block is None
            if block is not None:
                self.live[event.address] = msgspec.structs.replace(block, state="allocated")
        elif event.action in ("segment_alloc", "segment_map"):
            self._remove(event.address, event.address + event.size)
        elif event.action in ("segment_free", "segment_unmap"):
            kind = "small" if event.size <= SMALL_SEGMENT else "large"
            expandable = event.action == "segment_unmap"
            pool = event.pool or DEFAULT_POOL
            self.ranges.append(_Range(event.address, event.address + event.size, event.stream, kind, pool, expandable))

    def _remove(self, start: int, end: int) -> None:
        """Give a range back to the driver: a whole one, or a part of an expandable one."""
        kept, found = [], False
        for one in self.ranges:
            if one.end <= start or end <= one.start:
                kept.append(one)
                continue
            found = True
            if one.start < start:
                kept.append(msgspec.structs.replace(one, end=start))
            if end < one.end:
                kept.append(msgspec.structs.replace(one, start=end))
        self.ranges = kept
        self.odd += not found

    def segments(self) -> list[Segment]:
        """Put the blocks into the ranges, and what is between them is idle."""
        addresses = sorted(self.live)
        built = []
        for one in _joined(self.ranges):
            held = addresses[bisect_left(addresses, one.start) : bisect_right(addresses, one.end - 1)]
            blocks = tuple(self._blocks(one, held))
            kind: Literal["small", "large"] = "small" if one.kind == "small" else "large"
            size = one.end - one.start
            built.append(
                Segment(self.device, one.start, size, one.stream, kind, one.pool, one.expandable, blocks),
            )
        return built

    def _blocks(self, one: _Range, held: Sequence[int]) -> Iterable[Block]:
        at = one.start
        # The allocator leaves a remainder undivided below these sizes (c10/cuda/CUDACachingAllocator, should_split).
        undivided = MIN_BLOCK if one.kind == "small" or one.expandable else SMALL_LIMIT
        for number, address in enumerate(held):
            if address > at:
                yield Block(at, address - at, 0, "inactive")
            block = self.live[address]
            following = held[number + 1] if number + 1 < len(held) else one.end
            rest = following - block.end
            if rest < 0 or (address in self.guessed and rest <= undivided):
                block = msgspec.structs.replace(block, size=following - address)
            yield block
            at = block.end
        if at < one.end:
            yield Block(at, one.end - at, 0, "inactive")


def _joined(ranges: Iterable[_Range]) -> list[_Range]:
    """Join the neighbouring parts of one expandable segment."""
    joined: list[_Range] = []
    for one in sorted(ranges, key=lambda each: each.start):
        last = joined[-1] if joined else None
        same = last and (last.stream, last.pool, last.expandable) == (one.stream, one.pool, True)
        if last and same and last.end == one.start:
            joined[-1] = msgspec.structs.replace(last, end=one.end, kind=_larger(last.kind, one.kind))
        else:
            joined.append(one)
    return joined


def _larger(one: str, other: str) -> str:
    return "large" if "large" in (one, other) else "small"


def rewind(device: int, segments: Sequence[Segment], events: Sequence[Event], index: int) -> Moment:
    """Give the state right after ``events[index]``, by taking back all that came later.

    Args:
        device: the device's number.
        segments: the device's segments as written.
        events: the device's events, oldest first.
        index: the event; -1 is before the first.
    """
    later = events[index + 1 :]
    if not any(event.action not in ("snapshot", "oom") for event in later):
        return Moment(tuple(segments))
    state = _Rewind(device, segments)
    for event in reversed(later):
        state.undo(event)
    stacks = _stacks(events[: index + 1])
    for address, block in state.live.items():
        if not block.frames and address in stacks:
            state.live[address] = msgspec.structs.replace(block, frames=stacks[address])
    return Moment(tuple(state.segments()), len(later), state.odd)


def _stacks(events: Iterable[Event]) -> dict[int, Frames]:
    """Find the stack of the last allocation at each address."""
    return {event.address: event.frames for event in events if event.action == "alloc"}
