"""The memory of a card as an engine divides it: one bar a piece, each where the one before it ends."""

from __future__ import annotations

from collections.abc import Sequence

from oortriage.budget.figure import Figure
from oortriage.budget.log_budget import Part
from oortriage.evidence.values import format_bytes
from oortriage.report._interface import Style
from oortriage.report.draw.svg import MARGIN, OTHER_FILL, OUTLINE, ROLE_FILLS, WIDTH, Markup, document, element, label
from oortriage.report.draw.terminal import columns_of, pad, plain

TITLE = "Memory of the card, as the engine divides it"
_FILLS = {
    "weights": "#56b4e9",
    "non_torch": ROLE_FILLS["barrier"],
    "activations": ROLE_FILLS["pipeline"],
    "graphs": "#f0e442",
    "kv": ROLE_FILLS["scratch"],
}
_SIGNS = {"missing": "░", "outside": "·", "free": "·", "others": "▒", "kv": "▓"}
_LANE, _LEFT, _RIGHT = 26, 196, 108


def size_words(figure: Figure) -> str:
    """Write a size; ``about`` before one that rests on a guess."""
    words = format_bytes(round(figure.value))
    return f"~{words}" if figure.provenance == "estimated" else words


def sentence(parts: Sequence[Part], share: Figure | None) -> str:
    """Tell the pieces in one sentence: the picture for those who do not see it."""
    told = ", ".join(f"{one.name} {size_words(one.size)}" for one in parts)
    return told + (f"; the engine's share ends at {size_words(share)}" if share else "")


def _whole(parts: Sequence[Part], share: Figure | None) -> float:
    ends = [max(0.0, one.start) + max(0.0, one.size.value) for one in parts]
    return max(1.0, *ends, share.value if share else 0.0)


def budget_bar_text(parts: Sequence[Part], share: Figure | None, style: Style) -> str:
    """Draw the pieces for a terminal, a row each; ``share`` is where the engine's share ends, in bytes.

    Hatched is what reaches over the end of the share, dotted what is outside of it.
    """
    names = [*(plain(one.name, 30) for one in parts), *(["the engine's share"] if share else [])]
    sizes = [*(size_words(one.size) for one in parts), *([size_words(share)] if share else [])]
    wide, figures = max(map(len, names)), max(map(len, sizes))
    room = max(10, columns_of(style) - wide - figures - 4)
    scale = room / _whole(parts, share)
    rows = []
    for one, name, size in zip(parts, names, sizes, strict=False):
        start = max(0.0, one.start)
        first = min(room - 1, round(start * scale))
        cells = max(1, round((start + one.size.value) * scale) - first)
        rows.append((name, size, " " * first + _SIGNS.get(one.kind, "█") * min(cells, room - first)))
    if share:
        end = max(1, min(room, round(share.value * scale)))
        rows.append((names[-1], sizes[-1], "─" * (end - 1) + "┤"))
    return "\n".join(f"{pad(name, wide)}  {pad(size, figures, right=True)}  {bar}".rstrip() for name, size, bar in rows)


def budget_bar_svg(parts: Sequence[Part], share: Figure | None) -> str:
    """Draw the pieces as bars on one scale, with a line where the engine's share ends."""
    room = WIDTH - _LEFT - _RIGHT - MARGIN
    scale = room / _whole(parts, share)
    body: list[Markup] = []
    y = 20.0
    for one in parts:
        body += _bar(one, y, scale)
        y += _LANE + 8
    if share:
        at = _LEFT + share.value * scale
        body.append(element("line", x1=at, y1=12, x2=at, y2=y, class_="oor-limit", stroke_width=3))
        words = f"the engine's share: {size_words(share)}"
        left = at > WIDTH / 2
        body.append(label(at - 6 if left else at + 6, y + 14, words, "oor-small oor-strong", "end" if left else ""))
        y += 22
    return document(TITLE, sentence(parts, share) + ".", y + 8, body)


def _bar(one: Part, y: float, scale: float) -> list[Markup]:
    box = {"x": _LEFT + max(0.0, one.start) * scale, "y": y, "width": max(1.5, one.size.value * scale), "height": _LANE}
    over = one.kind == "missing"
    parts = [label(MARGIN, y + 18, one.name), label(WIDTH - MARGIN, y + 18, size_words(one.size), anchor="end")]
    if over:
        parts.append(element("rect", **box, class_="oor-beyond"))
        parts.append(element("rect", **box, class_="oor-limit", stroke_width=2, stroke_dasharray="7 4"))
    elif one.kind in ("outside", "free"):
        parts.append(element("rect", **box, fill="none", stroke=OUTLINE, stroke_dasharray="3 3"))
    else:
        parts.append(element("rect", **box, rx=3, fill=_FILLS.get(one.kind, OTHER_FILL), stroke=OUTLINE))
    return parts
