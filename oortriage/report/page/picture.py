"""Whether a picture may stand in a page: drawn by this package, and nothing in it that acts or fetches."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

_SVG = "{http://www.w3.org/2000/svg}"
_TAGS = frozenset({"svg", "g", "title", "desc", "style", "rect", "line", "path", "text"})
_ATTRIBUTES = frozenset(
    {
        "aria-label",
        "class",
        "d",
        "dominant-baseline",
        "fill",
        "height",
        "id",
        "pointer-events",
        "role",
        "rx",
        "stroke",
        "stroke-dasharray",
        "stroke-width",
        "style",
        "text-anchor",
        "viewBox",
        "width",
        "x",
        "x1",
        "x2",
        "y",
        "y1",
        "y2",
    }
)
#: What a style could fetch with, or leave its element by.
_FETCHES = re.compile(r"url|@import|expression|[<\\]", re.IGNORECASE)


def harmless(svg: str) -> bool:
    """Tell whether a picture is sound XML made of shapes and text alone.

    The drawing code escapes what it is given; this looks again, because a document may come from elsewhere.
    """
    # No declarations: neither entities that grow nor sections that HTML reads in another way.
    if "<!" in svg or "<?" in svg:
        return False
    try:
        root = ET.fromstring(svg)  # noqa: S314 (without declarations there is nothing to expand)
    except (ET.ParseError, ValueError):
        return False
    return root.tag == f"{_SVG}svg" and all(_allowed(one) for one in root.iter())


def _allowed(one: ET.Element) -> bool:
    name = str(one.tag)
    if not name.startswith(_SVG) or name.removeprefix(_SVG) not in _TAGS or not _ATTRIBUTES.issuperset(one.attrib):
        return False
    if one.tag == f"{_SVG}style" and _FETCHES.search(one.text or ""):
        return False
    return not any(_FETCHES.search(one.attrib.get(key, "")) for key in ("style", "fill", "stroke"))
