"""Who holds memory: the first line of a stack that is not PyTorch's own."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from oortriage.snapshot.model import Block, Frame, Frames, Segment

#: Owners that a list names; the rest is told as a sum.
SHOWN = 10
_TORCH = re.compile(r"(?:^|[/\\])(?:(?:site|dist)-packages|pytorch)[/\\]torch[/\\]|^<frozen ")
_COMPILED = re.compile(r"\.(?:c|cc|cpp|cu|h|hpp|cuh|so)(?:\.\d+)*(?::\d+)?$", re.IGNORECASE)

NO_STACK = "(no stack recorded)"


class Owner(msgspec.Struct, frozen=True):
    """A line of code and the memory that was allocated there.

    ``where`` is file and line; ``bytes`` is what its blocks take, ``share`` of all that the list is about.
    """

    where: str
    function: str
    bytes: int
    blocks: int
    share: float


def owner_of(frames: Frames) -> Frame | None:
    """Choose the frame that a person would look at; None where no stack was recorded.

    Frames stand with the innermost first. Compiled code and PyTorch's own files are passed over; where nothing else
    is there, the innermost Python line of PyTorch stands.
    """
    python = [one for one in frames if one.file and one.file != "??" and not _COMPILED.search(one.file)]
    for frame in python:
        if not _TORCH.search(frame.file):
            return frame
    return python[0] if python else None


def key_of(frames: Frames, seen: dict[int, tuple[str, str]]) -> tuple[str, str]:
    """Name a stack's owner as ``(where, function)``; ``seen`` remembers stacks that many blocks share."""
    known = seen.get(id(frames))
    if known is None:
        frame = owner_of(frames)
        known = (f"{frame.file}:{frame.line}", frame.function) if frame else (NO_STACK, "")
        seen[id(frames)] = known
    return known


def add_up(parts: Iterable[tuple[tuple[str, str], int]], shown: int = SHOWN) -> list[Owner]:
    """Sum bytes by owner, the largest first."""
    sums: dict[tuple[str, str], list[int]] = {}
    for key, size in parts:
        held = sums.setdefault(key, [0, 0])
        held[0] += size
        held[1] += 1
    total = sum(held[0] for held in sums.values())
    ranked = sorted(sums.items(), key=lambda one: (-one[1][0], one[0]))
    return [
        Owner(where, function, size, count, round(size / total, 4) if total else 0.0)
        for (where, function), (size, count) in ranked[:shown]
    ]


def owners(segments: Iterable[Segment], shown: int = SHOWN) -> list[Owner]:
    """Say who holds the live blocks of some segments (allocated, or freed and still in use)."""
    seen: dict[int, tuple[str, str]] = {}
    live: list[Block] = [block for seg in segments for block in seg.blocks if block.state != "inactive"]
    return add_up(((key_of(block.frames, seen), block.size) for block in live), shown)
