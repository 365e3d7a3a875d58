"""``oortriage reproduce``: the failing kernel compiled again, to the byte, on any machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oortriage.cli import selectors
from oortriage.cli.output import Color, ReplayFormat, Sink, style_for
from oortriage.cli.progress import progress
from oortriage.replay.options import Options
from oortriage.triage.diagnosis import Diagnosis


@selectors.selecting
def reproduce(
    log: Diagnosis | None,
    options: Options,
    registers: selectors.WithRegisters = False,
    format: Annotated[ReplayFormat, typer.Option("--format", "-f", help="Output format.")] = ReplayFormat.text,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    svg: Annotated[Path | None, typer.Option("--svg", help="Draw the block's memory map into this file.")] = None,
    color: Annotated[Color, typer.Option("--color", help="Colours in text output.")] = Color.auto,
    live: selectors.Live = "",
    device: selectors.Device = 0,
    timeout: selectors.Seconds = 120.0,
    no_cache: selectors.NoCache = False,
) -> None:
    """Compile the failing kernel for the failing GPU, which need not be here, and itemise its shared memory.

    Ends with 0 when the printed figure came out to the byte (or there was none), 1 when it did not, 3 when
    the kernel could not be compiled, 2 on a usage error.

    Examples: `oortriage reproduce crash.log`, `oortriage reproduce --kernel reference.attention --gpu T4
    --dtype float32 --head-size 256 --tile 32`.
    """
    from oortriage.cli.live import add_live
    from oortriage.replay import reproduce as replay
    from oortriage.replay.live_grid import shrinking_tiles
    from oortriage.replay.selection import select
    from oortriage.report.draw.memory_map import memory_map_svg
    from oortriage.report.replay import reproduction_report

    chosen = select(options, log)
    with progress("compiling") as report:
        result = replay.reproduce(
            chosen, registers=registers, progress=report, cell_seconds=timeout, use_cache=not no_cache
        )
    result, code = add_live(
        result,
        chosen,
        shrinking_tiles(chosen, result.constants),
        live,
        device=device,
        seconds=timeout,
        use_cache=not no_cache,
    )
    if svg:
        Sink(svg).put(memory_map_svg(result.ledger, result.limit_bytes))
    Sink(output).put(reproduction_report(result, format.value, style_for(color, output)))
    raise typer.Exit(code)
