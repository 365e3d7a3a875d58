"""The map of a block's shared memory as SVG."""

from __future__ import annotations

from collections.abc import Sequence

from oortriage.ledger.allocation import Ledger
from oortriage.report.draw.layout import Placed, extent, place, scale_of, stretches
from oortriage.report.draw.memory_words import STRETCHED, placed_words, reused, size_words, verdict_words
from oortriage.report.draw.svg import (
    MARGIN,
    OTHER_FILL,
    OUTLINE,
    ROLE_FILLS,
    WIDTH,
    Markup,
    clean,
    document,
    element,
    label,
    legend,
    text_width,
)

_LEAST = (14, 8, 3, 1)
_LANE, _BETWEEN = 44, 8
_TOP = 100
_TITLE = "Shared memory of one block"


def memory_map_svg(ledger: Ledger, limit_bytes: int) -> str:
    """Draw a block's shared memory as a picture that needs nothing beside itself.

    Args:
        ledger: the buffers of one block.
        limit_bytes: what the hardware gives a block at most, in bytes.
    """
    placed = place(ledger)
    verdict = verdict_words(ledger, limit_bytes)
    parts = [
        label(MARGIN, 32, _TITLE, "oor-head"),
        label(MARGIN, 56, verdict, "oor-over" if ledger.total_bytes > limit_bytes else "oor-strong"),
    ]
    bottom = 72.0
    if extent(ledger, limit_bytes):
        picture = _Picture(ledger, limit_bytes, placed)
        parts += picture.parts()
        bottom = picture.bottom + 40
        if picture.stretched:
            parts.append(label(MARGIN, bottom + 6, STRETCHED, "oor-small"))
            bottom += 22
    swatches, bottom = _legend(ledger, bottom)
    said = [verdict, *map(placed_words, placed)]
    if ledger.residual:
        said.append(f"residual: {ledger.residual:,} B")
    return document(_TITLE, ". ".join(said) + ".", bottom + 4, [*parts, *swatches])


def _legend(ledger: Ledger, y: float) -> tuple[list[Markup], float]:
    entries = []
    for role, count in ledger.by_role.items():
        again = reused(ledger, role)
        words = f"{role} {count:,} B" + (f" + {again:,} B reused" if again else "")
        entries.append((ROLE_FILLS.get(role, OTHER_FILL), words))
    if ledger.residual:
        entries.append((OTHER_FILL, f"residual {ledger.residual:,} B"))
    return legend(entries, y) if entries else ([], y)


class _Picture:
    """Lanes, ruler and limit; ``bottom`` is the height below the lanes, in user units."""

    def __init__(self, ledger: Ledger, limit_bytes: int, placed: Sequence[Placed]) -> None:
        self._ledger = ledger
        self._limit_bytes = limit_bytes
        self._placed = placed
        self._scale = scale_of(ledger, limit_bytes, WIDTH - 2 * MARGIN, _LEAST)
        self.stretched = self._scale.stretched
        self._limit = self._x(limit_bytes)
        lanes = 1 + max((one.lane for one in placed), default=0)
        self.bottom = _TOP + max(1, lanes) * (_LANE + _BETWEEN)

    def _x(self, offset: int) -> int:
        return MARGIN + self._scale.at(offset)

    def parts(self) -> list[Markup]:
        """Return the picture's elements, those in front last."""
        parts = self._beyond() + self._ruler()
        residual = self._ledger.residual
        if residual > 0:
            start, end = self._x(self._ledger.total_bytes - residual), self._x(self._ledger.total_bytes)
            said = f"residual: {residual:,} B of the total that no buffer reaches"
            parts.append(_bar(start, end, _TOP, OTHER_FILL, said, dashed=True))
            parts += self._label((start, end, end), _TOP, "residual", f"{residual:,} B")
        for one in self._placed:
            if one.lane >= 0:
                parts += self._buffer(one)
        return parts + self._limit_line()

    def _beyond(self) -> list[Markup]:
        """Shade what lies behind the limit, as far as the block reaches."""
        end = self._x(self._ledger.total_bytes)
        if end <= self._limit:
            return []
        tall = self.bottom - _TOP + 10
        return [element("rect", x=self._limit, y=_TOP - 10, width=end - self._limit, height=tall, class_="oor-beyond")]

    def _ruler(self) -> list[Markup]:
        """Write offsets over the lanes: the ends first, then the largest buffers' as there is room."""
        parts: list[Markup] = []
        taken: list[tuple[float, float]] = []

        def write(offset: int, anchor: str) -> None:
            text, x = f"{offset:,}", self._x(offset)
            wide = text_width(text, 13)
            low = x - (wide if anchor == "end" else 0)
            if low < 0 or low + wide > WIDTH or any(low < b + 8 and a < low + wide + 8 for a, b in taken):
                return
            taken.append((low, low + wide))
            parts.append(label(x, _TOP - 16, text, "oor-small", anchor))
            parts.append(element("line", x1=x, y1=_TOP - 12, x2=x, y2=_TOP - 4, class_="oor-line"))

        write(0, "")
        write(extent(self._ledger, self._limit_bytes), "end")
        write(max(0, self._limit_bytes), "")
        for one in sorted(self._placed, key=lambda placed: -placed.buffer.bytes):
            if one.lane >= 0:
                write(max(0, one.buffer.offset), "")
        return parts

    def _buffer(self, one: Placed) -> list[Markup]:
        start, end = self._x(one.buffer.offset), self._x(one.buffer.end)
        y = _TOP + one.lane * (_LANE + _BETWEEN)
        later = [self._x(other.buffer.offset) for other in self._placed if other.lane == one.lane]
        if one.lane == 0 and self._ledger.residual > 0:
            later.append(self._x(self._ledger.total_bytes - self._ledger.residual))
        room = min((x for x in later if x >= end), default=WIDTH - MARGIN)
        parts = [_bar(start, end, y, ROLE_FILLS.get(one.buffer.role, OTHER_FILL), placed_words(one))]
        if end - max(start, self._limit) >= 2 * _LEAST[0]:
            # The part over the limit has a broken frame: told by its form, not by its colour alone.
            low = max(start, self._limit)
            parts.append(
                element(
                    "rect",
                    x=low + 2,
                    y=y + 1.5,
                    width=max(0, end - low - 3),
                    height=_LANE - 3,
                    rx=3,
                    fill="none",
                    stroke="#a32c00",
                    stroke_width=3,
                    stroke_dasharray="7 4",
                    pointer_events="",
                )
            )
        return parts + self._label((start, end, room), y, clean(one.name, 28), size_words(one.buffer))

    def _label(self, box: tuple[int, int, int], y: float, name: str, size: str) -> list[Markup]:
        """Write name and size into the bar in two lines, else right of it in one, else what fits."""
        start, end, room = box
        inside = stretches(start, end, self._limit, 0)[:1]
        for low, high in inside:
            if max(text_width(name), text_width(size, 13)) + 12 <= high - low:
                return [
                    label(low + 8, y + 19, name, "oor-on-light oor-strong"),
                    label(low + 8, y + 36, size, "oor-on-light oor-small"),
                ]
        outside = [part for part in stretches(end, room, self._limit, 0) if part[0] == end]
        for low, high in outside:
            if text_width(f"{name} {size}") + 12 <= high - low:
                return [label(low + 6, y + 27, f"{name} {size}")]
        for low, high in inside:
            if text_width(name) <= high - low - 4:
                return [label((low + high) / 2, y + 27, name, "oor-on-light oor-strong", "middle")]
        return []

    def _limit_line(self) -> list[Markup]:
        x, foot = self._limit, self.bottom + 20
        over = self._ledger.total_bytes - self._limit_bytes
        text = f"limit {self._limit_bytes:,} B"
        figure = f"{over:,} B over" if over > 0 else f"{-over:,} B free"
        line = element("line", x1=x, y1=_TOP - 10, x2=x, y2=foot + 4, class_="oor-limit", stroke_width=3)
        left, right = x - MARGIN, WIDTH - MARGIN - x
        if over > 0 and text_width(figure) + 8 <= right and text_width(text) + 8 <= left:
            return [line, label(x - 8, foot, text, "oor-strong", "end"), label(x + 8, foot, figure, "oor-over")]
        both = f"{text}, {figure}"
        return [line, label(x - 8, foot, both, "oor-strong", "end") if left >= right else label(x + 8, foot, both)]


def _bar(start: int, end: int, y: float, fill: str, said: str, *, dashed: bool = False) -> Markup:
    """Draw a bar with what is said of it; a thin gap parts it from its neighbour."""
    return element(
        "rect",
        element("title", said),
        x=start + 0.5,
        y=y,
        width=max(1, end - start - 1),
        height=_LANE,
        rx=4,
        fill=fill,
        stroke=OUTLINE,
        stroke_width=1,
        stroke_dasharray="4 3" if dashed else "",
    )
