"""What was wanted against what there was: two bars on one scale, and the part over the limit marked."""

from __future__ import annotations

import msgspec

from oortriage.report._interface import Style
from oortriage.report.draw.svg import MARGIN, OTHER_FILL, OUTLINE, WIDTH, Markup, clean, document, element, label
from oortriage.report.draw.terminal import columns_of, pad

_FILL = "#56b4e9"
_LANE, _LEFT = 34, 132
_TITLE = "Needed against the limit"


class Against(msgspec.Struct, frozen=True):
    """Two figures of one unit: what was wanted and what there was, each with its name."""

    wanted: float
    limit: float
    wanted_name: str = "required"
    limit_name: str = "limit"
    unit: str = "B"

    def words(self, value: float) -> str:
        """Write a figure with its unit."""
        return f"{int(value):,} {self.unit}".strip()

    def sentence(self) -> str:
        """Tell both figures, and by how much one is over the other."""
        over = self.wanted - self.limit
        end = f"{self.words(over)} over" if over > 0 else f"{self.words(-over)} to spare"
        return f"{self.wanted_name} {self.words(self.wanted)}, {self.limit_name} {self.words(self.limit)}: {end}"


def limit_bar_svg(against: Against) -> str:
    """Draw two figures as bars; figures below 0 are drawn as 0."""
    wanted, limit = max(0.0, against.wanted), max(0.0, against.limit)
    whole = max(wanted, limit) or 1
    room = WIDTH - _LEFT - MARGIN
    edge = _LEFT + room * limit / whole
    over = wanted > limit
    parts = [
        *_bar(against.wanted_name, against.words(against.wanted), room * min(wanted, limit) / whole, 48, _FILL),
        *_bar(against.limit_name, against.words(against.limit), room * limit / whole, 48 + _LANE + 8, OTHER_FILL),
    ]
    if over:
        # Told by its broken frame and by words, not by its colour alone.
        box = {"x": edge, "y": 48, "width": room * (wanted - limit) / whole, "height": _LANE}
        parts.append(element("rect", **box, class_="oor-beyond"))
        parts.append(element("rect", **box, class_="oor-limit", stroke_width=2, stroke_dasharray="7 4"))
    foot = 48 + 2 * _LANE + 8
    parts.append(element("line", x1=edge, y1=40, x2=edge, y2=foot, class_="oor-limit", stroke_width=3))
    head = label(MARGIN, 28, clean(against.sentence(), 90), "oor-over" if over else "oor-strong")
    return document(_TITLE, against.sentence() + ".", foot + 12, [head, *parts])


def _bar(name: str, figure: str, wide: float, y: float, fill: str) -> list[Markup]:
    return [
        label(MARGIN, y + 22, clean(name, 12)),
        element("rect", x=_LEFT, y=y, width=wide, height=_LANE, rx=3, fill=fill, stroke=OUTLINE),
        *([label(_LEFT + 8, y + 22, figure, "oor-on-light oor-strong")] if wide > 9 * len(figure) + 16 else []),
    ]


def limit_bar_text(against: Against, style: Style) -> str:
    """Draw two figures as rows of blocks, the part over the limit hatched."""
    wanted, limit = max(0.0, against.wanted), max(0.0, against.limit)
    rows = [
        (against.wanted_name, against.words(against.wanted), min(wanted, limit), max(0.0, wanted - limit)),
        (against.limit_name, against.words(against.limit), limit, 0.0),
    ]
    names, figures = max(len(row[0]) for row in rows), max(len(row[1]) for row in rows)
    room = max(10, columns_of(style) - names - figures - 3)
    share = room / (max(wanted, limit) or 1)
    lines = []
    for name, figure, full, beyond in rows:
        bar = "█" * round(full * share) + "░" * (round((full + beyond) * share) - round(full * share))
        lines.append(f"{pad(name, names)}  {pad(figure, figures, right=True)} {bar}".rstrip())
    return "\n".join(lines)
