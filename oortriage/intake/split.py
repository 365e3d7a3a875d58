"""Stretches of bytes to pieces of lines: carriage returns, giant lines, damaged UTF-8."""

from __future__ import annotations

from collections.abc import Iterator

from oortriage.intake.line import Piece
from oortriage.intake.window import Gate, Stretch

#: A line longer than this is not read whole: its start, and a window round each anchor, are.
GIANT = 16 << 10
_START = 2 << 10
_BEFORE = 1 << 10
_AFTER = 4 << 10
#: Anchors further apart belong to two messages.
_APART = 200
#: Windows kept of one giant line, from its front and from its end.
_WINDOWS = 32


def split(stretch: Stretch, gate: Gate) -> Iterator[Piece]:
    """Yield the lines of a stretch, numbered as in the raw log.

    A progress bar's carriage returns end a piece as a line break does, and keep the line's number.
    """
    number, column = stretch.line, stretch.column
    # A line break at the end ends the last line; it does not begin another.
    for data in stretch.data.removesuffix(b"\n").split(b"\n"):
        if len(data) <= GIANT:
            yield from _segments(data, number, column)
        else:
            at = 0
            for start, end in _windows(data, gate):
                column += _characters(data[at:start])
                yield from _segments(data[start:end], number, column)
                column, at = column + _characters(data[start:end]), end
        number, column = number + 1, 0


def _segments(data: bytes, number: int, column: int) -> Iterator[Piece]:
    text = data.decode("utf-8", "replace")
    text = text.removesuffix("\r")
    if "\r" not in text:
        yield Piece(number, column, text)
        return
    at = 0
    for segment in text.split("\r"):
        if segment.strip():
            yield Piece(number, column + at, segment)
        at += len(segment) + 1


def _characters(data: bytes) -> int:
    """Count as a decoder does: columns are characters."""
    return len(data.decode("utf-8", "replace"))


def _windows(data: bytes, gate: Gate) -> list[tuple[int, int]]:
    """Choose the parts of a giant line worth reading: its start, and round its anchors.

    The parts do not overlap, and none begins inside a character or an anchor.
    """
    wanted = [(0, _START)]
    reach = 0  # where the anchors seen so far end
    first = 0  # where a message begins: an anchor with none close before it
    for start, anchor in sorted((start, anchor) for anchor, start, _ in gate.hits(data)):
        low, high = max(0, start - _BEFORE), start + len(anchor) + _AFTER
        begun, end = wanted[-1]
        if start > reach + _APART:
            first = start
        if low > end:
            wanted.append((low, high))
        elif high <= begun + GIANT or start < reach <= begun + 2 * GIANT:
            wanted[-1] = (begun, max(high, end))
        else:
            # Stretching one window without end would bring the giant line back.
            cut = first if first > begun + GIANT // 2 else start
            wanted[-1] = (begun, cut)
            wanted.append((cut, high))
        reach = max(reach, start + len(anchor))
    if len(wanted) > 2 * _WINDOWS:
        wanted = wanted[:_WINDOWS] + wanted[-_WINDOWS:]
    return [(_boundary(data, start), _boundary(data, end)) for start, end in wanted]


def _boundary(data: bytes, index: int) -> int:
    """Step back from the middle of a character of several bytes to its first one."""
    for step in range(4):
        if index - step <= 0 or index >= len(data) or data[index - step] & 0xC0 != 0x80:
            return max(0, index - step)
    return index
