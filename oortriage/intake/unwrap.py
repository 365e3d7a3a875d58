"""Messages that a terminal or a paste wrapped at a fixed width, put back together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from oortriage.intake.line import Line

#: Widths at which terminals wrap; a run of equally long lines outside of it is no terminal.
_NARROWEST, _WIDEST = 40, 260
#: So many lines of exactly the greatest width make a wrap and not a coincidence.
_ENOUGH = 3
_JOINED_AT_MOST = 40
_BEGINNING = 5
_TABLE_ENDS = frozenset("|+=-_│┃┐┘╮╯*#~")


def wrap_width(lines: Sequence[Line]) -> int:
    """Find the width at which the lines were hard-wrapped; 0 where they were not.

    At that width several different lines end, hardly any is longer, and fewer end just before it
    than at it. Tables and rulers, whose lines are equally long by design, do not count.
    """
    lengths = Counter(len(line.body) + line.prefix.length for line in lines)
    texts = {
        line.body
        for line, below in pairwise(lines)
        if line.body and line.body[-1] not in _TABLE_ENDS and not _alike(line, below)
    }
    prefixes = {line.body: line.prefix.length for line in lines}
    ending = Counter(len(body) + prefixes[body] for body in texts)
    best = 0
    for width, count in ending.items():
        if not _NARROWEST <= width <= _WIDEST or count < _ENOUGH:
            continue
        longer = sum(number for length, number in lengths.items() if length > width)
        # Ordinary text of that width would have lines just below it as often as at it.
        near = sum(lengths[length] for length in range(width - 4, width))
        if longer * 4 <= count and count > near and count > ending.get(best, 0):
            best = width
    return best


def unwrap(lines: Sequence[Line], width: int) -> list[Line]:
    """Join each line of exactly ``width`` characters with the line after it, without a space.

    A terminal puts the rest of a line right below it, so lines are taken in the order of the file.
    The rest has no prefix, or the prefix of the line it continues once more.
    """
    if not width:
        return list(lines)
    joined: list[Line] = []
    open_line: Line | None = None
    parts = 0
    for line in lines:
        full = len(line.body) + line.prefix.length == width
        if open_line is None or not _continues(open_line, line):
            joined.append(line)
            open_line, parts = (line, 1) if full else (None, 0)
            continue
        text = line.body
        open_line.pieces.extend(line.pieces)
        base = len(open_line.body)
        open_line.starts.extend((base + start, cleaned) for start, cleaned in line.starts)
        open_line.body += text
        parts += 1
        if not full or parts >= _JOINED_AT_MOST:
            open_line = None
    return joined


def _alike(line: Line, below: Line) -> bool:
    """Tell two lines that begin alike: rows of one format, not a line and the rest of it."""
    return line.body[:_BEGINNING] == below.body[:_BEGINNING] != ""


def _continues(first: Line, line: Line) -> bool:
    if line.body.startswith(("Traceback (", "  File ")) or _alike(first, line):
        return False
    if not line.prefix.length:
        return True
    same_speaker = line.prefix.stream == first.prefix.stream
    return same_speaker and (not line.prefix.level or line.prefix.place == first.prefix.place != "")
