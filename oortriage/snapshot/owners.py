"""Who holds memory: the first line of a stack that is not PyTorch's own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from oortriage.snapshot.model import Block, Frame, Frames, Segment

#: Owners that a list names; the rest is told as a sum.
SHOWN = 10
#: Lines that called an owner's function.
CALLERS = 3
_TORCH = re.compile(r"(?:^|[/\\])(?:(?:site|dist)-packages|pytorch)[/\\]torch[/\\]|^<frozen ")
_COMPILED = re.compile(r"\.(?:c|cc|cpp|cu|h|hpp|cuh|so)(?:\.\d+)*(?::\d+)?$", re.IGNORECASE)

NO_STACK = "(no stack recorded)"


class Owner(msgspec.Struct, frozen=True):
    """A line of code and the memory that was allocated there.

    ``where`` is file and line; ``bytes`` is what its blocks take, ``share`` of all that the list is about;
    ``called_from`` are the lines that called its function for most of them, the most bytes first.
    """

    where: str
    function: str
    bytes: int
    blocks: int
    share: float
    called_from: list[str] = []


class Key(NamedTuple):
    """Whose memory a stack is: a line with its function, and the line that called it."""

    where: str
    function: str
    caller: str


def owner_of(frames: Frames) -> Frame | None:
    """Choose the frame that a person would look at; None where no stack was recorded.

    Frames stand with the innermost first. Compiled code and PyTorch's own files are passed over; where nothing else
    is there, the innermost Python line of PyTorch stands.
    """
    python = [one for one in frames if one.file and one.file != "??" and not _COMPILED.search(one.file)]
    return next((frame for frame in python if not _TORCH.search(frame.file)), python[0] if python else None)


def key_of(frames: Frames, seen: dict[int, Key]) -> Key:
    """Name a stack's owner; ``seen`` remembers stacks that many blocks share."""
    known = seen.get(id(frames))
    if known is None:
        frame = owner_of(frames)
        known = Key(NO_STACK, "", "")
        if frame:
            above = frames[frames.index(frame) + 1 :]
            caller = owner_of(above)
            said = f"{caller.file}:{caller.line} ({caller.function})" if caller else ""
            known = Key(f"{frame.file}:{frame.line}", frame.function, said)
        seen[id(frames)] = known
    return known


def add_up(parts: Iterable[tuple[Key, int]], shown: int = SHOWN) -> list[Owner]:
    """Sum bytes by owner, the largest first."""
    sums: dict[tuple[str, str], list[int]] = {}
    callers: dict[tuple[str, str], dict[str, int]] = {}
    for key, size in parts:
        held = sums.setdefault(key[:2], [0, 0])
        held[0] += size
        held[1] += 1
        if key.caller:
            above = callers.setdefault(key[:2], {})
            above[key.caller] = above.get(key.caller, 0) + size
    total = sum(held[0] for held in sums.values())
    ranked = sorted(sums.items(), key=lambda one: (-one[1][0], one[0]))
    return [
        Owner(key[0], key[1], size, count, round(size / total, 4) if total else 0.0, _most(callers.get(key, {})))
        for key, (size, count) in ranked[:shown]
    ]


def _most(sums: dict[str, int]) -> list[str]:
    return sorted(sums, key=lambda one: (-sums[one], one))[:CALLERS]


def owners(segments: Iterable[Segment], shown: int = SHOWN) -> list[Owner]:
    """Say who holds the live blocks of some segments (allocated, or freed and still in use)."""
    seen: dict[int, Key] = {}
    live: list[Block] = [block for seg in segments for block in seg.blocks if block.state != "inactive"]
    return add_up(((key_of(block.frames, seen), block.size) for block in live), shown)
