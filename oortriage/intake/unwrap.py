"""Messages that a terminal or a paste wrapped at a fixed width, put back together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from oortriage.intake.line import Line

#: Widths at which terminals wrap; a run of equally long lines outside of it is no terminal.
_NARROWEST, _WIDEST = 40, 260
#: So many lines of exactly the greatest width make a wrap and not a coincidence.
_ENOUGH = 3
_JOINED_AT_MOST = 40


def wrap_width(lines: Sequence[Line]) -> int:
    """Find the width at which the lines were hard-wrapped; 0 where they were not.

    Lines are hard-wrapped when none is longer than some width and several are exactly as long.
    """
    lengths = Counter(len(line.body) + line.prefix.length for line in lines)
    if not lengths:
        return 0
    widest = max(lengths)
    if not _NARROWEST <= widest <= _WIDEST or lengths[widest] < _ENOUGH:
        return 0
    # Ordinary text of that width would have lines just below it as often as at it.
    near = sum(lengths[width] for width in range(widest - 4, widest))
    return widest if lengths[widest] > near else 0


def unwrap(lines: Sequence[Line], width: int) -> list[Line]:
    """Join each line of exactly ``width`` characters with the line after it, without a space.

    A continuation's own prefix is already peeled off; its indentation is taken off as well where
    every continuation of the block has it.
    """
    if not width:
        return list(lines)
    joined: list[Line] = []
    open_line: Line | None = None
    parts = 0
    for line in lines:
        full = len(line.body) + line.prefix.length == width
        if open_line is None:
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
