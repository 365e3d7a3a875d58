"""``oortriage experiment``: which lever moves the bytes, measured by the compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oortriage.cli import selectors
from oortriage.cli.output import Color, GridFormat, Sink, style_for
from oortriage.cli.progress import progress
from oortriage.replay.options import Options
from oortriage.triage.diagnosis import Diagnosis


@selectors.selecting
def experiment(
    log: Diagnosis | None,
    options: Options,
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", help="NAME=16,32,64; may be repeated. The kernel's own grid when left out."),
    ] = None,
    registers: selectors.WithRegisters = False,
    format: Annotated[GridFormat, typer.Option("--format", "-f", help="Output format.")] = GridFormat.text,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    svg: Annotated[Path | None, typer.Option("--svg", help="Draw the grid into this file.")] = None,
    color: Annotated[Color, typer.Option("--color", help="Colours in text output.")] = Color.auto,
    live: selectors.Live = "",
    device: selectors.Device = 0,
    timeout: selectors.Seconds = 120.0,
    no_cache: selectors.NoCache = False,
) -> None:
    """Compile a kernel over a grid of settings: exact bytes a cell, what moves them, the smallest change that fits.

    What was compiled before is taken from the cache, so an interrupted run goes on where it was. Ends with 0
    when figures came out, 3 when nothing could be compiled, 2 on a usage error.

    Example: `oortriage experiment crash.log --vary num_stages=1,2,3 --vary TILE_SIZE=16,32 --vary num_warps=2,4`.
    """
    from oortriage.cli.live import add_live
    from oortriage.replay import experiment as replay
    from oortriage.replay.selection import select
    from oortriage.report.draw.heat_map import heat_map_svg
    from oortriage.report.replay import experiment_report, grid_cells

    factors = replay.read_vary(vary or [])
    chosen = select(options, log)
    with progress("compiling") as report:
        result = replay.experiment(
            chosen, factors, registers=registers, progress=report, cell_seconds=timeout, use_cache=not no_cache
        )
    result, code = add_live(
        result,
        chosen,
        [cell.settings for cell in result.cells],
        live,
        device=device,
        seconds=timeout,
        use_cache=not no_cache,
    )
    if svg:
        Sink(svg).put(heat_map_svg(grid_cells(result), result.limit_bytes))
    Sink(output).put(experiment_report(result, format.value, style_for(color, output)))
    raise typer.Exit(code)
