"""The cells of an experiment put in order: which factor goes down, which across, which from panel to panel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

#: A setting's value; None where a cell does not have the setting.
Level = int | str | None


class Cell(msgspec.Struct, frozen=True):
    """One run of an experiment: its settings by name and what came of it.

    ``required_bytes``: shared memory of one block, or None where there is no figure. ``fits``: whether
    the hardware takes it, or None where that is not known. ``note`` says what is odd about the run
    (``does not compile``, ``spills 1,932 B``).
    """

    settings: dict[str, int | str]
    required_bytes: int | None
    fits: bool | None
    note: str = ""


class Factor(msgspec.Struct, frozen=True):
    """A setting and its values in order: numbers by size, then words as they came."""

    name: str
    levels: tuple[Level, ...]


class Panel(msgspec.Struct, frozen=True):
    """Cells by row and column, under the further factors' values that they have in common."""

    shared: tuple[tuple[str, Level], ...]
    cells: dict[tuple[Level, Level], Cell]


class Grid(msgspec.Struct, frozen=True):
    """A whole experiment: rows, columns (None with one factor), panels, and what never varies."""

    rows: Factor
    columns: Factor | None
    panels: tuple[Panel, ...]
    fixed: tuple[tuple[str, Level], ...]
    notes: tuple[str, ...]

    def note_key(self, cell: Cell) -> str:
        """Name a cell's note by letters, as under a table: ``a`` to ``z``, then ``aa``; empty without a note."""
        return key_of(self.notes.index(cell.note)) if cell.note else ""


def arrange(cells: Sequence[Cell]) -> Grid:
    """Lay cells out: the factor with the most levels goes down, the next one across, others to panels.

    Cells with the same settings are told apart by a further factor ``repeat``.
    """
    told = _apart(cells)
    factors = [_factor(name, told) for name in dict.fromkeys(name for settings, _ in told for name in settings)]
    varied = sorted((one for one in factors if len(one.levels) > 1), key=lambda one: -len(one.levels))
    fixed = [one for one in factors if len(one.levels) == 1]
    if not varied:
        # With one cell alone, its first setting heads the row, if it has any.
        varied, fixed = (fixed or [Factor("", (None,))])[:1], fixed[1:]
    rows, columns, further = varied[0], varied[1] if len(varied) > 1 else None, varied[2:]
    panels: dict[tuple[int, ...], Panel] = {}
    for settings, cell in told:
        at = tuple(one.levels.index(settings.get(one.name)) for one in further)
        shared = tuple((one.name, settings.get(one.name)) for one in further)
        panel = panels.setdefault(at, Panel(shared, {}))
        panel.cells[settings.get(rows.name), settings.get(columns.name) if columns else None] = cell
    return Grid(
        rows=rows,
        columns=columns,
        panels=tuple(panels[at] for at in sorted(panels)),
        fixed=tuple((one.name, one.levels[0]) for one in fixed),
        notes=tuple(dict.fromkeys(cell.note for cell in cells if cell.note)),
    )


def _apart(cells: Iterable[Cell]) -> list[tuple[dict[str, Level], Cell]]:
    told: list[tuple[dict[str, Level], Cell]] = []
    seen: dict[frozenset[tuple[str, int | str]], int] = {}
    for cell in cells:
        settings = frozenset(cell.settings.items())
        seen[settings] = seen.get(settings, 0) + 1
        told.append(({**cell.settings, "repeat": seen[settings]}, cell))
    if all(count == 1 for count in seen.values()):
        return [(dict(cell.settings), cell) for cell in cells]
    return told


def _factor(name: str, told: Iterable[tuple[dict[str, Level], Cell]]) -> Factor:
    levels = dict.fromkeys(settings.get(name) for settings, _ in told)
    numbers = sorted(level for level in levels if isinstance(level, int))
    return Factor(name, (*numbers, *(level for level in levels if not isinstance(level, int))))


def key_of(index: int) -> str:
    """Write a count from 0 as letters: ``a``, ``b``, ..., ``z``, ``aa``."""
    key = ""
    while index >= 0:
        key = chr(ord("a") + index % 26) + key
        index = index // 26 - 1
    return key


def mark(cell: Cell) -> str:
    """Mark what came of a cell by a sign: it fits, it does not, or there is no saying."""
    return "-" if cell.fits is None else "✓" if cell.fits else "✗"


MARKS = {"✓": "fits", "✗": "over the limit", "-": "no result"}


def headline(grid: Grid, limit_bytes: int, count: int, fitting: int) -> tuple[str, str]:
    """Tell what the grid shows, and how much of it fits."""
    factors = [grid.rows.name, *([grid.columns.name] if grid.columns else [])]
    if grid.panels:
        factors += [name for name, _ in grid.panels[0].shared]
    names = [name for name in factors if name]
    by = " by " + " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) if names else ""
    return f"Shared memory of one block{by}", f"{fitting} of {count} fit the limit of {limit_bytes:,} B"


def level_words(level: Level) -> str:
    """Write a setting's value."""
    return "not set" if level is None else str(level)
