"""A snapshot of PyTorch's caching allocator as data: segments, their blocks, and the recorded events.

The shape is that of ``torch.cuda.memory._snapshot()`` (its docstring in torch 2.13, ``torch/cuda/memory.py``). All
sizes and addresses are bytes.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

State = Literal["allocated", "awaiting_free", "inactive"]
Action = Literal[
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "snapshot",
    "oom",
]
#: A pool's id; (0, 0) is the default pool.
PoolId = tuple[int, int]
DEFAULT_POOL: PoolId = (0, 0)


class Frame(msgspec.Struct, frozen=True):
    """A line of a stack."""

    file: str
    line: int
    function: str


Frames = tuple[Frame, ...]


class Block(msgspec.Struct, frozen=True):
    """A piece of a segment. ``requested`` is what the program asked for; ``size`` is what it takes."""

    address: int
    size: int
    requested: int
    state: State
    frames: Frames = ()

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.size


class Segment(msgspec.Struct, frozen=True):
    """Memory that the allocator got from the driver in one piece, or one mapped range of an expandable segment."""

    device: int
    address: int
    size: int
    stream: int
    kind: Literal["small", "large"]
    pool: PoolId
    expandable: bool
    blocks: tuple[Block, ...]

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.size

    def bytes_in(self, state: State) -> int:
        """Add up the blocks of one state, in bytes."""
        return sum(block.size for block in self.blocks if block.state == state)


class Event(msgspec.Struct, frozen=True):
    """One thing the allocator did.

    ``size`` is in bytes, as asked for; ``device_free`` is what the driver had free at an ``oom``, in bytes; ``pool`` is
    None where the release does not record it; ``time_us`` is in microseconds.
    """

    action: Action
    address: int
    size: int
    stream: int
    pool: PoolId | None
    time_us: int | None
    device_free: int | None
    frames: Frames


class Snapshot(msgspec.Struct, frozen=True):
    """One file. ``traces`` holds each device's events, oldest first; ``settings`` are the allocator's own."""

    segments: tuple[Segment, ...]
    traces: dict[int, tuple[Event, ...]]
    settings: dict[str, Any]
    form: str
    notes: tuple[str, ...] = ()

    def devices(self) -> list[int]:
        """List the devices that have segments or events."""
        return sorted({one.device for one in self.segments} | {device for device, one in self.traces.items() if one})

    def of_device(self, device: int) -> list[Segment]:
        """List one device's segments by address."""
        return sorted((one for one in self.segments if one.device == device), key=lambda one: one.address)
