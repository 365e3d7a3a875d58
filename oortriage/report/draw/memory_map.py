"""The shared memory of one block as a map: which buffer stands where, and what is over the limit."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from oortriage.ledger.allocation import Ledger
from oortriage.report._interface import Style
from oortriage.report.draw.layout import Placed, Scale, extent, place, scale_of, stretches
from oortriage.report.draw.memory_svg import memory_map_svg
from oortriage.report.draw.memory_table import bill, table
from oortriage.report.draw.memory_words import ROLE_STYLES, STRETCHED, size_words, verdict_words
from oortriage.report.draw.terminal import Row, columns_of, cut, paint, plain

__all__ = ["memory_map_svg", "memory_map_text"]

#: Columns a stretch of memory should have: a frame and a number of two digits, else just to be seen.
_LEAST = (4, 3, 1)
#: With more lanes than this a lane is one line high, so that the map stays on the screen.
_TALL_LANES = 5
_OVER = "bold red"


def memory_map_text(ledger: Ledger, limit_bytes: int, style: Style) -> str:
    """Draw a block's shared memory for a terminal: map, table of buffers, sum by role.

    Args:
        ledger: the buffers of one block.
        limit_bytes: what the hardware gives a block at most, in bytes.
        style: width (40 to 120 columns are used) and whether there are colours.
    """
    placed = place(ledger)
    width = columns_of(style)
    over = ledger.total_bytes > limit_bytes
    lines = [
        Text("Shared memory of one block", style="bold"),
        Text(verdict_words(ledger, limit_bytes), style=_OVER if over else "bold green"),
        Text(""),
    ]
    if extent(ledger, limit_bytes):
        lines += [*_Map(ledger, limit_bytes, placed, width).lines(), Text("")]
    lines += table(placed, width)
    lines += bill(ledger, limit_bytes, width)
    return paint(lines, style)


class _Map:
    """The picture over the table. A column of its own is kept for the line of the limit."""

    def __init__(self, ledger: Ledger, limit_bytes: int, placed: Sequence[Placed], width: int) -> None:
        self._ledger = ledger
        self._limit_bytes = limit_bytes
        self._placed = placed
        self._width = width
        self._scale: Scale = scale_of(ledger, limit_bytes, width - 1, _LEAST)
        self._limit = self._scale.at(limit_bytes)

    def lines(self) -> list[Text]:
        """Return ruler, lanes, the limit's label, and notes."""
        rows = [self._ruler()]
        count = 1 + max((one.lane for one in self._placed), default=0)
        for lane in range(count):
            rows += self._lane([one for one in self._placed if one.lane == lane], lane, count <= _TALL_LANES)
        rows.append(self._foot())
        return [row.text() for row in rows] + self._notes()

    def _columns(self, start: int, end: int) -> tuple[int, int]:
        """Tell the first column of a stretch of bytes and the one behind its last."""
        low, high = self._scale.at(start), self._scale.at(end)
        return low + (low >= self._limit), high + (high > self._limit)

    def _ruler(self) -> Row:
        """Write offsets over the places they stand at: the ends first, then the largest buffers' as there is room."""
        row = Row(self._width)
        last = extent(self._ledger, self._limit_bytes)
        taken: list[tuple[int, int]] = []

        def write(column: int, text: str, text_style: str) -> None:
            if all(column + len(text) < low or high < column for low, high in taken) and column >= 0:
                row.put(column, text, text_style)
                taken.append((column, column + len(text)))

        write(0, "0", "dim")
        write(self._width - len(f"{last:,}"), f"{last:,}", "dim")
        if self._limit_bytes > 0:
            write(self._limit, f"{self._limit_bytes:,}", "red")
        for one in sorted(self._placed, key=lambda placed: -placed.buffer.bytes):
            if one.lane >= 0:
                write(self._columns(one.buffer.offset, one.buffer.end)[0], f"{one.buffer.offset:,}", "dim")
        return row

    def _lane(self, held: Sequence[Placed], lane: int, tall: bool) -> list[Row]:
        rows = [Row(self._width) for _ in range(3 if tall else 1)]
        boxes = [(*self._columns(one.buffer.offset, one.buffer.end), one) for one in held]
        boxes = [box for box in boxes if box[0] < box[1]]
        ends = [start for start, _, _ in boxes[1:]] + [self._width] * (len(boxes) > 0)
        residual = self._ledger.residual
        if lane == 0 and residual > 0:
            start, end = self._columns(self._ledger.total_bytes - residual, self._ledger.total_bytes)
            ends = [min(room, start) for room in ends]
            self._frame(rows, start, end, "dim", "╌╌╌╌┊")
            self._write(rows, (start, end, end), [f"? residual {residual:,} B", "residual", "?"], "dim")
        for (start, end, one), room in zip(boxes, ends, strict=True):
            color = ROLE_STYLES.get(one.buffer.role, "")
            self._frame(rows, start, end, color, "┌┐└┘│")
            name = plain(one.name, 24)
            self._write(rows, (start, end, room), [f"{name} {size_words(one.buffer)}", name, str(one.number)], color)
        for row in rows:
            row.put(self._limit, "║", "red")
        return rows

    def _frame(self, rows: Sequence[Row], start: int, end: int, color: str, corners: str) -> None:
        """Draw a box over columns; its inside behind the limit is hatched."""
        across = "─" if corners[0] == "┌" else corners[0]
        side = corners[4]
        if len(rows) == 3:
            inner = across * (end - start - 2)
            narrow = end - start == 1
            rows[0].put(start, side if narrow else corners[0] + inner + corners[1], color)
            rows[2].put(start, side if narrow else corners[2] + inner + corners[3], color)
        middle = rows[len(rows) // 2]
        for column in range(start, end):
            edge = column in {start, end - 1}
            beyond = column > self._limit
            middle.put(column, side if edge else "░" if beyond else " ", _OVER if beyond and not edge else color)

    def _write(self, rows: Sequence[Row], box: tuple[int, int, int], texts: Sequence[str], color: str) -> None:
        """Write the first text in the box or right of it, or else a shorter one in the box."""
        start, end, room = box
        middle = rows[len(rows) // 2]
        inside = stretches(start + 1, end - 1, self._limit, 1)
        outside = [(low + 1, high) for low, high in stretches(end, room, self._limit, 1)[:1] if low == end]
        for number, text in enumerate(texts):
            for low, high in [*inside, *(outside if number == 0 else [])]:
                wide = cell_len(text)
                if wide <= high - low:
                    # A space parts the text from the hatching, where there is room for one.
                    middle.put(low, text + " " * (wide < high - low and low < end), f"bold {color}".strip())
                    return

    def _foot(self) -> Row:
        """Label the limit's line, on the side with more room, and span what is over it."""
        row = Row(self._width)
        over = self._ledger.total_bytes - self._limit_bytes
        name, figure = f"limit {self._limit_bytes:,} B", f" {abs(over):,} B {'over' if over > 0 else 'free'} "
        row.put(self._limit, "║", "red")
        before, after = self._limit, self._width - self._limit - 1
        if over > 0:
            _, end = self._columns(0, self._ledger.total_bytes)
            span = end - self._limit - 1
            if len(figure) <= span and len(name) < before:
                arrow = "├" + figure.center(span - 2, "─") + "┤" if len(figure) + 2 <= span else figure
                row.put(self._limit + 1, arrow, _OVER)
                row.put(before - len(name) - 1, name, "red")
                return row
        text = f"{name},{figure.rstrip()}"
        if before >= after:
            text = cut(text, before - 1)
            row.put(before - len(text) - 1, text, "red")
        else:
            row.put(self._limit + 2, cut(text, after - 1), "red")
        return row

    def _notes(self) -> list[Text]:
        """Tell where the picture is not true to the bytes."""
        small = []
        for one in self._placed:
            start, end = self._columns(one.buffer.offset, one.buffer.end)
            if one.lane < 0 or start >= end:
                small.append(plain(one.name, 24))
        notes = [STRETCHED] if self._scale.stretched else []
        notes += ["too small to draw: " + ", ".join(small)] if small else []
        return [Text(cut(note, self._width), style="dim") for note in notes]
