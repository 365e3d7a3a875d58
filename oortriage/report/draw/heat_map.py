"""The grid of an experiment: the bytes each setting needs, and which settings fit."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from oortriage.report._interface import Style
from oortriage.report.draw.grid import MARKS, Cell, Grid, Level, Panel, arrange, headline, key_of, level_words, mark
from oortriage.report.draw.heat_svg import heat_map_svg
from oortriage.report.draw.terminal import columns_of, cut, pad, paint, plain

__all__ = ["Cell", "heat_map_svg", "heat_map_text"]

_STYLES = {"✓": "green", "✗": "red", "-": "yellow"}
_GAP = "   "
#: Columns that a factor's name or value may take.
_LABEL = 24


def heat_map_text(cells: Sequence[Cell], limit_bytes: int, style: Style) -> str:
    """Write an experiment's cells as a table for a terminal; each says its bytes and whether it fits.

    Args:
        cells: the runs of the experiment, in any order.
        limit_bytes: what the hardware gives a block at most, in bytes.
        style: width (40 to 120 columns are used) and whether there are colours.
    """
    if not cells:
        return "no cells\n"
    width = columns_of(style)
    grid = arrange(cells)
    title, verdict = headline(grid, limit_bytes, len(cells), sum(cell.fits is True for cell in cells))
    lines = [Text(line, style="bold") for line in _wrap(plain(title), width)]
    lines += [Text(line) for line in _wrap(verdict, width)]
    if grid.fixed:
        lines += [Text(line, style="dim") for line in _wrap("everywhere " + _settings(grid.fixed), width)]
    for panel in grid.panels:
        lines += [Text(""), *_panel(grid, panel, width)]
    return paint([*lines, Text(""), *_foot(grid, cells, width)], style)


def _settings(pairs: Sequence[tuple[str, Level]]) -> str:
    return ", ".join(f"{plain(name, _LABEL)} = {plain(level_words(level), _LABEL)}" for name, level in pairs)


def _panel(grid: Grid, panel: Panel, width: int) -> list[Text]:
    """Write a panel, its columns in as many blocks as the width asks for."""
    lines = [Text(line, style="bold") for line in _wrap(_settings(panel.shared), width)] if panel.shared else []
    columns: tuple[Level, ...] = grid.columns.levels if grid.columns else (None,)
    down = plain(grid.rows.name, _LABEL)
    stub = max(cell_len(text) for text in (down, *(plain(level_words(level), _LABEL) for level in grid.rows.levels)))
    heads = [plain(level_words(level), _LABEL) if grid.columns else "" for level in columns]
    digits = max(len(_figure(cell)) for cell in panel.cells.values())
    texts = {at: _cell_words(grid, cell, digits) for at, cell in panel.cells.items()}
    wide = max(cell_len(text) for text in (*heads, *texts.values()))
    fitting = max(1, (width - stub) // (len(_GAP) + wide))
    for start in range(0, len(columns), fitting):
        block = range(start, min(start + fitting, len(columns)))
        if start:
            lines.append(Text(""))
        if grid.columns:
            lines.append(Text(cut(" " * stub + _GAP + plain(grid.columns.name, _LABEL), width), style="bold"))
        lines.append(Text(_GAP.join([pad(down, stub), *(pad(heads[at], wide) for at in block)]), style="bold"))
        for row in grid.rows.levels:
            line = Text(pad(plain(level_words(row), _LABEL), stub, right=isinstance(row, int)))
            for at in block:
                cell = panel.cells.get((row, columns[at]))
                line.append(_GAP)
                line.append(pad(texts.get((row, columns[at]), ""), wide), _STYLES[mark(cell)] if cell else None)
            lines.append(line)
    return lines


def _figure(cell: Cell) -> str:
    return "" if cell.required_bytes is None else f"{cell.required_bytes:,}"


def _cell_words(grid: Grid, cell: Cell, digits: int) -> str:
    """Write mark, bytes and the letter of the note, each under those of other cells."""
    return f"{mark(cell)} {_figure(cell):>{digits}} {grid.note_key(cell)}".rstrip()


def _foot(grid: Grid, cells: Sequence[Cell], width: int) -> list[Text]:
    """Explain the marks that stand in the grid, and the letters of its notes."""
    shown = {mark(cell) for cell in cells}
    line = Text()
    for sign, words in MARKS.items():
        if sign in shown:
            line.append(sign, _STYLES[sign])
            line.append(f" {words}   ")
    line.append("figures in bytes", "dim")
    lines = [line]
    for index, note in enumerate(grid.notes):
        key = key_of(index)
        lines.append(Text(cut(f"{key}  {plain(note)}", width)))
    return lines


def _wrap(text: str, width: int) -> list[str]:
    """Break a text at spaces; what is longer than a line is cut."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if cell_len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(cut(word, width))
    return [line for line in lines if line]
