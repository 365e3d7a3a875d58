"""The grid of settings: which lever moves the bytes, as a picture and a table."""

from __future__ import annotations

from oortriage.replay.experiment import Experiment
from oortriage.report.document import Block, Figure, Items, Paragraph, Table
from oortriage.report.draw.heat_map import heat_map_svg, heat_map_text
from oortriage.report.material import Material
from oortriage.report.replay import experiment_lines, grid_cells
from oortriage.report.sections.ledger import PLAIN

_FITS = {True: "yes", False: "no", None: "?"}


def experiment_blocks(material: Material) -> list[Block]:
    """Show the experiment: its sentence, the picture, every cell, and what was assumed."""
    result = material.experiment
    if result is None:
        return []
    cells = grid_cells(result)
    first, *rest = experiment_lines(result)
    fitting = sum(cell.fits is True for cell in result.cells)
    alt = f"Bytes of one block over {', '.join(result.factors)}: {fitting} of {len(result.cells)} settings fit."
    return [
        Paragraph(first),
        Figure(heat_map_svg(cells, result.limit_bytes), alt, heat_map_text(cells, result.limit_bytes, PLAIN)),
        Items(rest),
        _table(result),
    ]


def _table(result: Experiment) -> Table:
    rows = [
        [
            *(str(cell.settings.get(name, "")) for name in result.factors),
            "-" if cell.required_bytes is None else f"{cell.required_bytes:,}",
            _FITS[cell.fits],
            note,
        ]
        for cell, note in zip(result.cells, (one.note for one in grid_cells(result)), strict=True)
    ]
    count = len(result.factors)
    return Table([*result.factors, "bytes", "fits", "note"], rows, numeric=[*range(count + 1)])
