"""Where buffers stand in a picture: lanes, a scale on which small ones stay visible, and room for labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from oortriage.ledger.allocation import Buffer, Ledger, overlaps


class Placed(msgspec.Struct, frozen=True):
    """A buffer with its number (1-based, by offset), the name to show, its lane and whom it shares bytes with.

    ``lane`` counts from the top; it is -1 for a buffer of no bytes, which stands nowhere.
    """

    number: int
    name: str
    buffer: Buffer
    lane: int
    shares: tuple[str, ...]


def place(ledger: Ledger) -> tuple[Placed, ...]:
    """Order buffers by offset and give each a lane where it meets no other.

    The largest take the upper lanes, so what shares their bytes stands under them.
    """
    buffers = sorted(ledger.buffers, key=lambda one: (one.offset, -one.bytes))
    names = _names(buffers)
    lanes: list[list[Buffer]] = []
    lane_of: dict[int, int] = {}
    for index in sorted(range(len(buffers)), key=lambda at: -buffers[at].bytes):
        one = buffers[index]
        if one.bytes <= 0:
            lane_of[index] = -1
            continue
        free = (lane for lane, held in enumerate(lanes) if not any(overlaps(one, other) for other in held))
        lane_of[index] = next(free, len(lanes))
        if lane_of[index] == len(lanes):
            lanes.append([])
        lanes[lane_of[index]].append(one)
    return tuple(
        Placed(index + 1, names[index], one, lane_of[index], _shares(index, buffers, names))
        for index, one in enumerate(buffers)
    )


def _names(buffers: Sequence[Buffer]) -> list[str]:
    """Name each buffer, with its number where the name alone would not tell it from another."""
    names = [one.name or one.op or one.role for one in buffers]
    return [name if names.count(name) == 1 else f"{name} #{number}" for number, name in enumerate(names, 1)]


def _shares(index: int, buffers: Sequence[Buffer], names: Sequence[str]) -> tuple[str, ...]:
    """Name those in the same bytes by arithmetic, and those the ledger names beside them."""
    one = buffers[index]
    found = [
        at
        for at, other in enumerate(buffers)
        if at != index and one.bytes > 0 and other.bytes > 0 and overlaps(one, other)
    ]
    known = {buffers[at].name for at in found}
    return (*(names[at] for at in found), *(name for name in one.shares_with if name not in known))


class Scale:
    """Offsets in bytes to positions from 0 to ``size``, true to scale as far as small stretches stay visible."""

    def __init__(self, offsets: Iterable[int], size: int, least: Sequence[int]) -> None:
        """Fit all stretches between neighbouring offsets.

        ``least`` holds the positions a stretch should have at least, the most wanted first: taken is the
        first with which all of them need no more than 60 % of the size. With none of them, small
        stretches may have no width.
        """
        marks = sorted({max(0, offset) for offset in offsets} | {0})
        lengths = [after - before for before, after in pairwise(marks)]
        floor = next((one for one in least if one * len(lengths) <= size * 0.6), 0)
        whole = max(1, marks[-1])
        widths = [max(floor, round(length * size / whole)) for length in lengths]
        #: Whether a stretch takes more than twice the room that is its own.
        self.stretched = any(wide * whole > 2 * length * size for wide, length in zip(widths, lengths, strict=True))
        while widths and sum(widths) != size:
            widest = widths.index(max(widths))
            step = 1 if sum(widths) < size else -1
            widths[widest] += step
        self._at = dict(zip(marks, _running(widths), strict=True))

    def at(self, offset: int) -> int:
        """Return the position of an offset that the scale was made with."""
        return self._at[max(0, offset)]


def _running(widths: Iterable[int]) -> list[int]:
    reached = [0]
    for width in widths:
        reached.append(reached[-1] + width)
    return reached


def scale_of(ledger: Ledger, limit_bytes: int, size: int, least: Sequence[int]) -> Scale:
    """Make the scale on which a ledger, its total and its limit can be drawn."""
    offsets = [limit_bytes, ledger.total_bytes]
    for buffer in ledger.buffers:
        offsets += [buffer.offset, buffer.end]
    return Scale(offsets, size, least)


def extent(ledger: Ledger, limit_bytes: int) -> int:
    """Tell the byte at which a picture ends."""
    return max(0, ledger.total_bytes, limit_bytes, *(buffer.end for buffer in ledger.buffers))


def stretches(start: int, end: int, line: int, wide: int) -> list[tuple[int, int]]:
    """Split a stretch of positions at the limit's line, which takes ``wide`` positions from ``line`` on.

    The wider part comes first.
    """
    parts = [(start, min(end, line)), (max(start, line + wide), end)] if start < line + wide <= end else [(start, end)]
    return sorted(((low, high) for low, high in parts if low < high), key=lambda part: part[0] - part[1])
