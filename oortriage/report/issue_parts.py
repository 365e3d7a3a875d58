"""Blocks as GitHub-flavoured Markdown, in parts that can be cut between rows and never within one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from oortriage.report.document import Block, Code, Figure, Items, Paragraph, Table
from oortriage.report.escape import markdown, paragraph, shorten, visible

_LANGUAGES = {"text": "text", "shell": "sh", "diff": "diff"}


class Part(msgspec.Struct, frozen=True):
    """Rows between a head and a foot. ``what`` names one row; ``left`` counts rows that were never rendered.

    ``flows`` are parts whose single row may be shortened when not even that fits.
    """

    rows: list[str]
    what: str
    head: str = ""
    foot: str = ""
    left: int = 0
    flows: bool = False

    def text(self, count: int) -> str:
        """Return the part with its first ``count`` rows."""
        lines = [*([self.head] if self.head else []), *self.rows[:count], *([self.foot] if self.foot else [])]
        return "\n".join(lines)


def length(text: str) -> int:
    """Count characters as the strictest counter would: a line break as two, one beyond the first plane as two."""
    return len(text) + text.count("\n") + sum(character > "\uffff" for character in text)


def parts_of(block: Block, most: int, longest: int) -> list[Part]:
    """Render a block.

    Args:
        block: any block.
        most: characters after which rows are not rendered any more, only counted.
        longest: characters of one field, before it is escaped; a longer one is cut and ends in an ellipsis.
    """
    if isinstance(block, Paragraph):
        text = paragraph(shorten(block.text, longest))
        return [Part([text], "paragraph", flows=True)] if text else []
    if isinstance(block, Items):
        return _items(block, most, longest)
    if isinstance(block, Table):
        return _table(block, most, longest)
    if isinstance(block, Code):
        return _code(block, most, longest)
    return _figure(block, most, longest)


def longest_field(block: Block) -> int:
    """Measure the longest field of a block, in characters."""
    if isinstance(block, Table):
        texts: Sequence[str] = [block.caption, *block.head, *(cell for row in block.rows for cell in row)]
    elif isinstance(block, Items):
        texts = block.items
    elif isinstance(block, Paragraph):
        texts = [block.text]
    else:
        texts = block.text.splitlines()
    return max(map(len, texts), default=0)


def _rendered(count: int, render: Callable[[int], str], most: int) -> list[str]:
    """Render rows by their number, from 0, until there are more characters than there is room for."""
    rows: list[str] = []
    while len(rows) < count and most >= 0:
        rows.append(render(len(rows)))
        most -= length(rows[-1])
    return rows


def _items(block: Items, most: int, longest: int) -> list[Part]:
    def one(at: int) -> str:
        return f"{f'{at + 1}.' if block.numbered else '-'} {paragraph(shorten(block.items[at], longest))}"

    rows = _rendered(len(block.items), one, most)
    return [Part(rows, "item", left=len(block.items) - len(rows))] if rows else []


def _table(block: Table, most: int, longest: int) -> list[Part]:
    wide = len(block.head)
    if not wide or not block.rows:
        return []
    rules = ["---:" if at in block.numeric else "---" for at in range(wide)]
    head = [*_caption(block.caption, longest), _row(block.head, wide, longest), f"| {' | '.join(rules)} |"]
    rows = _rendered(len(block.rows), lambda at: _row(block.rows[at], wide, longest), most)
    return [Part(rows, "row", "\n".join(head), left=len(block.rows) - len(rows))]


def _row(cells: Sequence[str], wide: int, longest: int) -> str:
    filled = [*cells, *[""] * wide][:wide]
    return f"| {' | '.join(markdown(shorten(cell, longest)).strip() for cell in filled)} |"


def _code(block: Code, most: int, longest: int) -> list[Part]:
    lines = block.text.splitlines()
    shown = _rendered(len(lines), lambda at: visible(shorten(lines[at], longest)), most)
    if not any(line.strip() for line in shown):
        return []
    # Every row is within the fence, also when rows are cut later: so all of them decide how long it is.
    ticks = "`" * max(3, 1 + max(len(run) for line in shown for run in re.findall(r"`+", line) or [""]))
    head = [*_caption(block.caption, longest), f"{ticks}{_LANGUAGES[block.language]}"]
    return [Part(shown, "line", "\n".join(head), ticks, len(lines) - len(shown), flows=True)]


def _figure(block: Figure, most: int, longest: int) -> list[Part]:
    """Write what a picture shows, and draw it in characters: GitHub takes no picture out of a text."""
    drawn = parts_of(Code(block.text), most, longest)
    return [*parts_of(Paragraph(block.alt), most, longest), *drawn]


def _caption(text: str, longest: int) -> list[str]:
    caption = paragraph(shorten(text, longest))
    return [caption, ""] if caption else []
