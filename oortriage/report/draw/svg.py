"""SVG as text: elements whose strings are always escaped, colours that stay apart, and the frame of a picture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len

#: Width of a picture in user units. It is small on purpose: at 400 px the text is still 9 px high.
WIDTH = 640
MARGIN = 16
FONT = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
#: Width of a character over its height, a little more than the widest of those fonts has.
ADVANCE = 0.62

#: Fills by role, from the palette of Okabe and Ito; black text stands on each with a contrast over 6.
ROLE_FILLS = {"operand": "#56b4e9", "pipeline": "#e69f00", "scratch": "#26b08a", "barrier": "#d68fb4"}
OTHER_FILL = "#bdbdbd"
#: A grey that stands out from a white ground, from a black one and from the fills.
OUTLINE = "#6b7280"

# A page in dark colours is told by the viewer's setting alone, and the page round an image may be light all
# the same: so the picture brings its own ground in both. Text lets the pointer through to the shape under it,
# which has the tooltip. Names start with ``oor-``, because the style of an
# SVG that stands in a page holds for the whole page.
_CSS = f"""
.oor-draw{{font-family:{FONT};font-size:14px;color:#1b1f24}}
.oor-draw text{{fill:currentColor;pointer-events:none}}
.oor-draw .oor-ground{{fill:#ffffff}}
.oor-draw .oor-head{{font-size:17px;font-weight:bold}}
.oor-draw .oor-small{{font-size:13px}}
.oor-draw .oor-strong{{font-weight:bold}}
.oor-draw .oor-line{{stroke:currentColor;fill:none}}
.oor-draw .oor-limit{{stroke:#b83200;fill:none}}
.oor-draw .oor-beyond{{fill:#fdeee6}}
.oor-draw text.oor-over{{fill:#a32c00;font-weight:bold}}
.oor-draw text.oor-on-light{{fill:#000000}}
.oor-draw text.oor-on-dark{{fill:#ffffff}}
@media screen and (prefers-color-scheme:dark){{
.oor-draw{{color:#e6edf3}}
.oor-draw .oor-ground{{fill:#0f1419}}
.oor-draw .oor-limit{{stroke:#ff8f5a}}
.oor-draw .oor-beyond{{fill:#33201a}}
.oor-draw text.oor-over{{fill:#ff9d6e}}
}}
"""


class Markup(str):
    """Text that is SVG already; any other string is escaped where it becomes a child of an element."""

    __slots__ = ()


def clean(text: str, limit: int = 200) -> str:
    """Drop what is not to be seen or has no place in XML, and cut to ``limit`` characters."""
    # Not printable are controls, directions, joiners, halves of pairs and all that XML cannot hold.
    shown = "".join(char for char in re.sub(r"\s", " ", text) if char.isprintable())
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def escape(text: str) -> Markup:
    """Write a text so that XML and HTML read it as text, between tags and within quotes."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Markup(plain.replace('"', "&quot;").replace("'", "&#39;"))


def element(tag: str, *children: str, **attributes: str | float) -> Markup:
    """Write one element.

    ``_`` in an attribute's name stands for ``-``, and ``class_`` for ``class``. Numbers are in user
    units and keep one digit behind the point; an attribute with an empty string is left out.
    """
    named = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items() if value != "")
    head = tag + "".join(f' {name}="{_value(value)}"' for name, value in named)
    inner = "".join(child if isinstance(child, Markup) else escape(clean(child)) for child in children)
    return Markup(f"<{head}>{inner}</{tag}>" if children else f"<{head}/>")


def _value(value: str | float) -> str:
    if isinstance(value, str):
        return escape(clean(value, 2000))
    return f"{value:.1f}".removesuffix(".0")


def label(x: float, y: float, text: str, class_: str = "", anchor: str = "") -> Markup:
    """Write a line of text; ``anchor`` is ``middle``, ``end`` or empty: ``x`` is where the text starts."""
    return element("text", text, x=x, y=y, class_=class_, text_anchor=anchor)


def text_width(text: str, size: float = 14) -> float:
    """Tell at most how wide a text is, in user units, at a font size in user units."""
    return cell_len(text) * size * ADVANCE


def document(title: str, description: str, height: float, body: Iterable[Markup]) -> str:
    """Put a picture together: it scales with the place it is given and says what it shows without being seen."""
    return (
        element(
            "svg",
            element("title", title),
            # Not cut: for those who hear the picture, this is the picture.
            element("desc", escape(clean(description, 20_000))),
            element("style", Markup(_CSS)),
            element("rect", x=0, y=0, width=WIDTH, height=height, rx=6, class_="oor-ground"),
            Markup("\n" + "\n".join(body) + "\n"),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {WIDTH} {height:.0f}",
            width="100%",
            style=f"max-width:{WIDTH * 3 // 2}px",
            role="img",
            aria_label=title,
            class_="oor-draw",
        )
        + "\n"
    )


def legend(entries: Sequence[tuple[str, str]], y: float) -> tuple[list[Markup], float]:
    """Draw swatches (fill, words) in rows from height ``y``; returns them and the height below."""
    parts: list[Markup] = []
    x = float(MARGIN)
    for fill, words in entries:
        wide = 24 + text_width(words) + 16
        if x > MARGIN and x + wide > WIDTH - MARGIN:
            x, y = float(MARGIN), y + 24
        parts += [
            element("rect", x=x, y=y, width=16, height=16, rx=3, fill=fill, stroke=OUTLINE),
            label(x + 22, y + 13, words),
        ]
        x += wide
    return parts, y + 24


def mix(one: str, other: str, share: float) -> str:
    """Mix two colours ``#rrggbb``; ``share`` (0 to 1) is the part of the other."""
    pairs = zip(_channels(one), _channels(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * min(1.0, max(0.0, share))):02x}" for a, b in pairs)


def contrast(one: str, other: str) -> float:
    """Tell the contrast of two colours ``#rrggbb`` as WCAG defines it, 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def ink_class(fill: str) -> str:
    """Choose black or white text, whichever reads better; one of them always has 4.5 or more."""
    return "oor-on-light" if contrast(fill, "#000000") >= contrast(fill, "#ffffff") else "oor-on-dark"


def _channels(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _luminance(color: str) -> float:
    parts = [channel / 255 for channel in _channels(color)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
