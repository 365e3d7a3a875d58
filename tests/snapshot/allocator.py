"""A small caching allocator that writes snapshots as PyTorch does; no card is needed.

It follows the published rules of PyTorch's allocator (sizes of ``c10/core/AllocatorConfig.h``, pools by stream and
kind, splitting, giving whole idle segments back before it fails) and writes the dictionary that the docstring of
``torch.cuda.memory._snapshot`` in torch 2.13 describes, with its field names. These snapshots are made up: real ones
are in ``h200``.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from itertools import count
from typing import Any

MIB, GIB = 1 << 20, 1 << 30
DEFAULT = (0, 0)


class OutOfMemoryError(Exception):
    """The request cannot be served."""


@dataclass
class Piece:
    """A block."""

    address: int
    size: int
    requested: int = 0
    state: str = "inactive"
    frames: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Held:
    """A segment."""

    address: int
    size: int
    stream: int
    kind: str
    pool: tuple[int, int]
    pieces: list[Piece]


def frame(file: str, line: int, name: str) -> dict[str, Any]:
    return {"filename": file, "line": line, "name": name}


def stack(file: str = "/srv/app/model.py", line: int = 10, name: str = "forward") -> list[dict[str, Any]]:
    """A stack as PyTorch records it: innermost first, its own files above the user's."""
    return [
        frame("/usr/lib/python3.12/site-packages/torch/nn/functional.py", 2100, "linear"),
        frame("/usr/lib/python3.12/site-packages/torch/nn/modules/module.py", 1773, "_call_impl"),
        frame(file, line, name),
        frame("/srv/app/main.py", 3, "<module>"),
    ]


class Allocator:
    """One device. ``capacity`` is what the driver can give, in bytes."""

    def __init__(self, capacity: int, *, device: int = 0, record_pool: bool = True) -> None:
        self.capacity = capacity
        self.device = device
        self.record_pool = record_pool
        self.segments: list[Held] = []
        self.trace: list[dict[str, Any]] = []
        self._addresses = count(0x7F0000000000, 1 << 36)
        self._time = count(1_700_000_000_000_000, 50)

    @property
    def free_bytes(self) -> int:
        return self.capacity - sum(one.size for one in self.segments)

    def malloc(self, size: int, *, stream: int = 0, pool: tuple[int, int] = DEFAULT, frames: Any = None) -> int:
        """Allocate; returns the address."""
        frames = stack() if frames is None else frames
        rounded = max(512, -(-size // 512) * 512)
        kind = "small" if rounded <= MIB else "large"
        found = self._fitting(rounded, stream, pool, kind)
        if found is None:
            wanted = (
                2 * MIB if kind == "small" else 20 * MIB if rounded < 10 * MIB else -(-rounded // (2 * MIB)) * 2 * MIB
            )
            if wanted > self.free_bytes:
                self._give_back(pool)
            if wanted > self.free_bytes:
                self._note("oom", size=rounded, stream=stream, pool=pool, frames=frames, device_free=self.free_bytes)
                raise OutOfMemoryError(size)
            piece = Piece(next(self._addresses), wanted)
            held = Held(piece.address, wanted, stream, kind, pool, [piece])
            self.segments.append(held)
            self._note("segment_alloc", piece.address, wanted, stream, pool, frames)
            found = held, piece
        held, piece = found
        rest = piece.size - rounded
        if rest >= 512 if kind == "small" else rest > MIB:
            piece.size = rounded
            held.pieces.insert(held.pieces.index(piece) + 1, Piece(piece.address + rounded, rest))
        piece.requested, piece.state, piece.frames = size, "active_allocated", frames
        self._note("alloc", piece.address, size, stream, pool, frames)
        return piece.address

    def free(self, address: int, *, pending: bool = False) -> None:
        """Free; ``pending``: another stream still uses it."""
        held, piece = next((held, piece) for held in self.segments for piece in held.pieces if piece.address == address)
        self._note("free_requested", address, piece.requested, held.stream, held.pool, stack(line=99))
        if pending:
            piece.state = "active_awaiting_free"
            return
        self._note("free_completed", address, piece.requested, held.stream, held.pool, stack(line=99))
        piece.state, piece.requested, piece.frames = "inactive", 0, []
        merged: list[Piece] = []
        for one in held.pieces:
            if merged and merged[-1].state == one.state == "inactive":
                merged[-1].size += one.size
            else:
                merged.append(one)
        held.pieces = merged

    def empty_cache(self) -> None:
        self._give_back(DEFAULT)

    def _fitting(self, rounded: int, stream: int, pool: tuple[int, int], kind: str) -> tuple[Held, Piece] | None:
        fitting = [
            (piece.size, piece.address, held, piece)
            for held in self.segments
            if (held.stream, held.pool, held.kind) == (stream, pool, kind)
            for piece in held.pieces
            if piece.state == "inactive" and piece.size >= rounded
        ]
        return min(fitting, key=lambda one: one[:2])[2:] if fitting else None

    def _give_back(self, pool: tuple[int, int]) -> None:
        """Return whole idle segments of the asking pool to the driver; a private pool's stay with it."""
        for held in [one for one in self.segments if one.pool == pool]:
            if all(piece.state == "inactive" for piece in held.pieces):
                self.segments.remove(held)
                self._note("segment_free", held.address, held.size, held.stream, held.pool, [])

    def _note(self, action, address=None, size=0, stream=0, pool=DEFAULT, frames=(), device_free=None) -> None:
        entry = {"action": action}
        entry.update({"device_free": device_free} if action == "oom" else {"addr": address})
        entry.update(size=size, stream=stream, time_us=next(self._time), compile_context="N/A", user_metadata="")
        if self.record_pool:
            entry["pool_id"] = pool
        entry["frames"] = list(frames)
        self.trace.append(entry)

    def snapshot(self, *, traces: bool = True) -> dict[str, Any]:
        """The dictionary of ``torch.cuda.memory._snapshot()``."""
        segments = [
            {
                "device": self.device,
                "address": held.address,
                "total_size": held.size,
                "allocated_size": sum(one.size for one in held.pieces if one.state == "active_allocated"),
                "active_size": sum(one.size for one in held.pieces if one.state != "inactive"),
                "requested_size": sum(one.requested for one in held.pieces),
                "stream": held.stream,
                "segment_type": held.kind,
                "segment_pool_id": held.pool,
                "is_expandable": False,
                "frames": [],
                "blocks": [
                    {
                        "address": one.address,
                        "size": one.size,
                        "requested_size": one.requested,
                        "state": one.state,
                        "frames": one.frames,
                    }
                    for one in held.pieces
                ],
            }
            for held in sorted(self.segments, key=lambda each: each.address)
        ]
        return {
            "segments": segments,
            "device_traces": [[] for _ in range(self.device)] + [list(self.trace) if traces else []],
            "allocator_settings": {
                "PYTORCH_CUDA_ALLOC_CONF": "",
                "max_split_size": -1,
                "garbage_collection_threshold": 0.0,
                "expandable_segments": False,
                "pinned_num_register_threads": 1,
                "release_lock_on_cudamalloc": False,
                "pinned_use_cuda_host_register": False,
                "roundup_power2_divisions": {"1": 0, "2": 0},
            },
            "external_annotations": [],
        }

    def pickle(self, protocol: int = 4) -> bytes:
        return pickle.dumps(self.snapshot(), protocol)


# ------------------------------------------------------------------------------- programs that fail


def capacity() -> Allocator:
    """70 of 80 GiB are live; 12 more are wanted."""
    one = Allocator(80 * GIB)
    for _ in range(7):
        one.malloc(10 * GIB, frames=stack("/srv/app/weights.py", 41, "load"))
    fails(one, 12 * GIB)
    return one


def fragmentation() -> Allocator:
    """Every second GiB of 32 is free; 4 GiB in one piece are wanted, and 2 are free on the card."""
    one = Allocator(34 * GIB)
    for address in [one.malloc(16 * GIB) for _ in range(2)]:
        one.free(address)
    pieces = [one.malloc(1 * GIB, frames=stack(line=20 + number % 2)) for number in range(32)]
    for address in pieces[1::2]:
        one.free(address)
    fails(one, 4 * GIB)
    return one


def stranded_pool() -> Allocator:
    """A graph's pool of 30 GiB lies idle, save 1 MiB; 40 GiB of 60 are wanted."""
    one = Allocator(60 * GIB)
    one.malloc(1 * MIB, pool=(0, 1), stream=7)
    one.free(one.malloc(30 * GIB, pool=(0, 1), stream=7))
    fails(one, 40 * GIB)
    return one


def stranded_stream() -> Allocator:
    """20 GiB lie idle between live blocks of another stream."""
    one = Allocator(30 * GIB)
    one.free(one.malloc(24 * GIB, stream=5))
    pieces = [one.malloc(12 * GIB, stream=5), one.malloc(12 * GIB - 2 * MIB, stream=5), one.malloc(2 * MIB, stream=5)]
    one.free(pieces[0])
    fails(one, 12 * GIB)
    return one


def awaiting_free() -> Allocator:
    """20 of 30 GiB were freed and are still used by another stream."""
    one = Allocator(30 * GIB)
    one.free(one.malloc(20 * GIB), pending=True)
    fails(one, 15 * GIB)
    return one


def fails(one: Allocator, size: int, **how: Any) -> None:
    try:
        one.malloc(size, **{"frames": stack("/srv/app/model.py", 77, "attention"), **how})
    except OutOfMemoryError:
        return
    raise AssertionError("it was served")
