"""The grid of an experiment as SVG."""

from __future__ import annotations

from collections.abc import Sequence

from oortriage.report.draw.grid import MARKS, Cell, Grid, Level, Panel, arrange, headline, key_of, level_words, mark
from oortriage.report.draw.svg import (
    MARGIN,
    OTHER_FILL,
    OUTLINE,
    WIDTH,
    Markup,
    clean,
    document,
    element,
    ink_class,
    label,
    legend,
    mix,
    text_width,
)

#: From few bytes to as many as the limit, and from there to twice the limit. Blue and orange stay apart for
#: every kind of colour blindness, and the two ends that meet at the limit differ in lightness as well.
FITS, OVER = ("#e3effa", "#7db8e8"), ("#f5a65b", "#b34700")
_ROW = 34
_LABEL = 20
_TEXT_CLASS = {"oor-on-light": "oor-on-light", "oor-on-dark": "oor-on-dark oor-strong"}


def fill_of(cell: Cell, limit_bytes: int) -> str:
    """Choose a cell's colour by what came of it and by its bytes against the limit."""
    if cell.fits is None:
        return OTHER_FILL
    share = (cell.required_bytes or 0) / max(1, limit_bytes)
    return mix(*FITS, share) if cell.fits else mix(*OVER, share - 1)


def heat_map_svg(cells: Sequence[Cell], limit_bytes: int) -> str:
    """Draw an experiment's cells as a picture that needs nothing beside itself.

    Args:
        cells: the runs of the experiment, in any order.
        limit_bytes: what the hardware gives a block at most, in bytes.
    """
    if not cells:
        return document("Shared memory of one block", "no cells", 56, [label(MARGIN, 32, "no cells")])
    grid = arrange(cells)
    title, verdict = headline(grid, limit_bytes, len(cells), sum(cell.fits is True for cell in cells))
    parts: list[Markup] = []
    y = 32.0
    for line in _wrap(clean(title), 17):
        parts.append(label(MARGIN, y, line, "oor-head"))
        y += 24
    fixed = "everywhere " + _settings(grid.fixed) if grid.fixed else ""
    for class_, text in (("oor-strong", verdict), ("oor-small", fixed)):
        for line in _wrap(text, 14):
            parts.append(label(MARGIN, y, line, class_))
            y += 20
    for panel in grid.panels:
        drawn, y = _panel(grid, panel, limit_bytes, y + 10)
        parts += drawn
    shown = {mark(cell) for cell in cells}
    swatches = {"✓": FITS[1], "✗": OVER[0], "-": OTHER_FILL}
    drawn, y = legend([(swatches[sign], f"{sign} {MARKS[sign]}") for sign in MARKS if sign in shown], y + 14)
    parts += drawn
    y += 14
    for line in ["figures in bytes; a deeper colour means more", *_notes(grid)]:
        parts.append(label(MARGIN, y, line, "oor-small"))
        y += 20
    said = "; ".join(_cell_said(cell) for cell in cells)
    return document(clean(title), f"{verdict}. {said}.", y, parts)


def _settings(pairs: Sequence[tuple[str, Level]]) -> str:
    return ", ".join(f"{clean(name, _LABEL)} = {clean(level_words(level), _LABEL)}" for name, level in pairs)


def _notes(grid: Grid) -> list[str]:
    return [line for index, note in enumerate(grid.notes) for line in _wrap(f"{key_of(index)}: {clean(note)}", 13)]


def _cell_said(cell: Cell) -> str:
    figure = "" if cell.required_bytes is None else f"{cell.required_bytes:,} B, "
    note = f", {clean(cell.note)}" if cell.note else ""
    return f"{_settings(tuple(cell.settings.items()))}: {figure}{MARKS[mark(cell)]}{note}".removeprefix(": ")


def _panel(grid: Grid, panel: Panel, limit_bytes: int, y: float) -> tuple[list[Markup], float]:
    """Draw a panel from height ``y``, its columns in as many blocks as the width asks for."""
    parts: list[Markup] = []
    for line in _wrap(_settings(panel.shared), 14):
        parts.append(label(MARGIN, y + 16, line, "oor-strong"))
        y += 24
    columns: tuple[Level, ...] = grid.columns.levels if grid.columns else (None,)
    heads = [clean(level_words(level), _LABEL) if grid.columns else "" for level in columns]
    downs = [clean(level_words(level), _LABEL) for level in grid.rows.levels]
    stub = max(text_width(text) for text in (clean(grid.rows.name, _LABEL), *downs)) + 12
    texts = {at: _cell_words(grid, cell) for at, cell in panel.cells.items()}
    wide = max(text_width(text) for text in (*heads, *texts.values())) + 16
    room = WIDTH - 2 * MARGIN - stub
    fitting = max(1, int(room // wide))
    wide = min(max(wide, room / min(fitting, len(columns))), 150)
    for start in range(0, len(columns), fitting):
        block = range(start, min(start + fitting, len(columns)))
        left = MARGIN + stub
        if grid.columns:
            parts.append(label(left, y + 16, clean(grid.columns.name, _LABEL), "oor-strong"))
            y += 22
        parts.append(label(MARGIN, y + 16, clean(grid.rows.name, _LABEL), "oor-strong"))
        for place, at in enumerate(block):
            parts.append(label(left + (place + 0.5) * wide, y + 16, heads[at], anchor="middle"))
        y += 24
        for row, down in zip(grid.rows.levels, downs, strict=True):
            parts.append(label(left - 12, y + 22, down, anchor="end"))
            for place, at in enumerate(block):
                cell = panel.cells.get((row, columns[at]))
                if cell:
                    parts += _cell(cell, texts[row, columns[at]], left + place * wide, y, wide, limit_bytes)
            y += _ROW
        y += 8
    return parts, y


def _cell(cell: Cell, text: str, x: float, y: float, wide: float, limit_bytes: int) -> list[Markup]:
    fill = fill_of(cell, limit_bytes)
    return [
        element(
            "rect",
            element("title", _cell_said(cell)),
            x=x + 1,
            y=y + 1,
            width=wide - 2,
            height=_ROW - 2,
            rx=3,
            fill=fill,
            stroke=OUTLINE,
            stroke_width=1,
            stroke_dasharray="4 3" if cell.fits is None else "",
        ),
        label(x + wide / 2, y + 22, text, _TEXT_CLASS[ink_class(fill)], "middle"),
    ]


def _cell_words(grid: Grid, cell: Cell) -> str:
    figure = "" if cell.required_bytes is None else f"{cell.required_bytes:,}"
    return " ".join(part for part in (mark(cell), figure, grid.note_key(cell)) if part)


def _wrap(text: str, size: float) -> list[str]:
    """Break a text at spaces to the width of the picture."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if text_width(longer, size) <= WIDTH - 2 * MARGIN or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return [line for line in lines if line]
