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
            for start, end in _windows(data, gate):
                yield from _segments(data[start:end], number, column + start)
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


def _windows(data: bytes, gate: Gate) -> list[tuple[int, int]]:
    """Choose the parts of a giant line worth reading: its start, and round its anchors."""
    wanted = [(0, _START)]
    for _, start, _ in gate.hits(data):
        low, high = max(0, start - _BEFORE), start + _AFTER
        if low <= wanted[-1][1]:
            # Stretching one window without end would bring the giant line back.
            wanted[-1] = (wanted[-1][0], min(high, wanted[-1][0] + GIANT))
            if high <= wanted[-1][1]:
                continue
            low = wanted[-1][1]
        wanted.append((low, high))
    if len(wanted) > 2 * _WINDOWS:
        wanted = wanted[:_WINDOWS] + wanted[-_WINDOWS:]
    return wanted
