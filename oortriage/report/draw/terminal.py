"""Lines for a terminal: text from outside made plain, cells counted, colours only where they are wanted."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterable
from itertools import groupby

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from oortriage.report._interface import Style
from oortriage.report.escape import visible

#: Narrower than the first a picture says nothing; wider than the second the eye loses the row.
NARROWEST, WIDEST = 40, 120


def columns_of(style: Style) -> int:
    """Tell how many columns a picture takes."""
    return max(NARROWEST, min(style.width, WIDEST))


def plain(text: str, cells: int = 400) -> str:
    """Make a text from outside one harmless line of at most ``cells`` columns.

    Characters that cannot be printed go, and so do those without a width of their own: they could change
    the width of those beside them, and columns would no longer stand under each other.
    """
    whole = text.encode("utf-8", "replace").decode()
    escaped = visible(unicodedata.normalize("NFC", whole).replace("\n", "\\n"))
    return cut("".join(char for char in escaped if char.isprintable() and cell_len(char)), cells)


def cut(text: str, cells: int) -> str:
    """Cut a text at its end to a number of columns."""
    return text if cell_len(text) <= cells else set_cell_size(text, cells - 1).rstrip() + "…"


def cut_front(text: str, cells: int) -> str:
    """Cut a text at its start: of a path, the end says more."""
    if cell_len(text) <= cells:
        return text
    while cell_len(text) > cells - 1:
        text = text[1:]
    return "…" + text


def pad(text: str, cells: int, *, right: bool = False) -> str:
    """Fill a text with spaces to a number of columns; ``right`` puts it at the right end."""
    space = " " * (cells - cell_len(text))
    return space + text if right else text + space


class Row:
    """One line, written piece by piece at its column."""

    def __init__(self, width: int) -> None:
        """Start with ``width`` empty columns."""
        self._cells = [(" ", "")] * width

    def put(self, column: int, text: str, style: str = "") -> None:
        """Write a text from a column on; what does not fit is left out."""
        for char in text:
            wide = cell_len(char)
            if column < 0 or column + wide > len(self._cells):
                return
            # A wide character stands in its first column and leaves the second one without a character.
            self._cells[column : column + wide] = [(char, style), *[("", style)] * (wide - 1)]
            column += wide

    def text(self) -> Text:
        """Return the line with its styles."""
        line = Text()
        for style, cells in groupby(self._cells, key=lambda cell: cell[1]):
            line.append("".join(char for char, _ in cells), style or None)
        return line


def paint(lines: Iterable[Text], style: Style) -> str:
    """Write lines as the terminal takes them, with no spaces at their ends."""
    sink = io.StringIO()
    console = Console(
        file=sink,
        width=columns_of(style),
        force_terminal=style.color,
        color_system="standard" if style.color else None,
        no_color=not style.color,  # or rich would ask NO_COLOR, which --color always overrules
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    whole = list(lines)
    for line in whole:
        line.rstrip()  # before it has colours: behind a colour's end a space would stay
    console.print(Text("\n").join(whole))
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()) + "\n"
