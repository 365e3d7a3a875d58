"""Cells on a card beside their prediction: do both agree, and which of those that fit is fastest."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import Any

import msgspec

from oortriage.replay.cells import Compilation, Progress, compile_cells
from oortriage.replay.job import Cell, LiveResult, Mode, Outcome
from oortriage.replay.live import run_live
from oortriage.replay.selection import Selection

#: The smallest tile that Triton's matrix product takes, and the one that the fix for the T4 chooses.
SMALLEST_TILE = 16


class LiveCell(msgspec.Struct, frozen=True):
    """One cell. ``agrees``: the card loaded or refused just what was predicted, and every check passed."""

    settings: dict[str, Any]
    predicted_bytes: int | None
    predicted_fits: bool | None
    result: LiveResult
    agrees: bool


class Fastest(msgspec.Struct, frozen=True):
    """The fastest cell that ran and is right; ``margin`` is how many times as fast as the tile-16 cell."""

    settings: dict[str, Any]
    margin: float | None
    sentence: str


class LiveGrid(msgspec.Struct, frozen=True):
    """Cells on a card, how the card was used, and what they say together."""

    mode: Mode
    device: str
    target: str
    limit_bytes: int
    cells: list[LiveCell]
    fastest: Fastest | None
    notes: list[str] = []

    @property
    def agrees(self) -> bool:
        """Whether prediction and card agree in every cell that was not refused for want of room."""
        return all(cell.agrees for cell in self.cells if cell.result.status != "refused")


def live_grid(
    chosen: Selection,
    points: Sequence[dict[str, Any]],
    wanted: str,
    *,
    device: int = 0,
    progress: Progress | None = None,
    cell_seconds: float,
    use_cache: bool = True,
) -> LiveGrid:
    """Run settings on the local card, and predict each for the target that the card was used as.

    Args:
        chosen: kernel, failing card, source.
        points: settings, each as in an experiment: parameters of the recipe, constants, launch options.
        wanted: ``auto``, ``native`` or ``emulated``.
        device: which device.
        progress: called with (done, all).
        cell_seconds: time limit of one cell on the card.
        use_cache: whether compiled cells of earlier runs count.

    Raises:
        OortriageError: no card, or one that cannot do it.
    """
    parameters = {one.name for one in chosen.recipe.parameters}
    cells = [
        Cell(
            {**chosen.shape, **{name: value for name, value in point.items() if name in parameters}},
            {**chosen.overrides, **{name: value for name, value in point.items() if name not in parameters}},
        )
        for point in points
    ]
    run = run_live(chosen, cells, wanted, device=device, progress=progress, cell_seconds=cell_seconds)
    what = Compilation(chosen.kernel, run.card, chosen.env, chosen.source)
    predicted, notes = compile_cells(what, cells, use_cache=use_cache)
    rows = [
        _cell(dict(point), outcome, result, run.card.limit_bytes)
        for point, outcome, result in zip(points, predicted, run.results, strict=True)
    ]
    return LiveGrid(
        mode=run.mode,
        device=run.device,
        target=run.card.target.name,
        limit_bytes=run.card.limit_bytes,
        cells=rows,
        fastest=fastest(rows),
        notes=[*run.notes, *notes, *(_finding(row) for row in rows if not row.agrees)],
    )


def _cell(settings: dict[str, Any], outcome: Outcome, result: LiveResult, limit: int) -> LiveCell:
    kernel = outcome.largest
    expected = kernel.required_bytes if kernel else None
    fits = expected <= limit if expected is not None else None
    reported = [one.driver_bytes for one in result.kernels if one.shared_bytes == result.required_bytes]
    agrees = (
        result.required_bytes == expected
        and (result.status in ("ran", "loaded")) == bool(fits)
        and all(one in (None, expected) for one in reported)
        and all(check.passed for check in result.checks)
    )
    return LiveCell(settings, expected, fits, result, agrees)


def _finding(cell: LiveCell) -> str:
    """Say in one sentence what does not agree."""
    where = ", ".join(f"{name}={value}" for name, value in cell.settings.items()) or "as launched"
    result = cell.result
    if failed := [check for check in result.checks if not check.passed]:
        one = failed[0]
        said = f"error {one.error:.1e} of at most {one.tolerance:.1e}, {one.missing} not written"
        return f"{where}: {one.batch} is wrong: {said}"
    if result.status in ("failed", "refused"):
        return f"{where}: {result.status}: {result.message}"
    return f"{where}: predicted {cell.predicted_bytes}, on the card {result.required_bytes} ({result.status})"


def fastest(cells: Sequence[LiveCell]) -> Fastest | None:
    """Choose the cell whose times are lowest, by the geometric mean over its batches; None without times."""
    timed = [cell for cell in cells if cell.result.status == "ran" and cell.agrees and cell.result.timings]
    if not timed:
        return None
    best = min(timed, key=_mean)
    small = [cell for cell in timed if SMALLEST_TILE in _tiles(cell.settings)]
    # Of the tile-16 cells the one with fewest further changes: the first of the grid is as good as any.
    margin = _mean(min(small, key=_mean)) / _mean(best) if small else None
    words = ", ".join(f"{name}={value}" for name, value in best.settings.items()) or "the kernel as it is launched"
    said = f"{words} is the fastest that fits"
    if margin is not None and best not in small:
        said += f": {margin:.2f} times as fast as the best cell with tile {SMALLEST_TILE}"
    return Fastest(best.settings, margin, said)


def _tiles(settings: dict[str, Any]) -> list[Any]:
    return [value for name, value in settings.items() if name in ("TILE_SIZE", "tile", "BLOCK_N")]


def _mean(cell: LiveCell) -> float:
    times = [timing.median_ms for timing in cell.result.timings]
    return exp(sum(log(time) for time in times) / len(times))


def shrinking_tiles(chosen: Selection, launched: dict[str, Any]) -> list[dict[str, Any]]:
    """List the failing setting and the smaller tiles after it: the control and the candidates for a cure.

    Args:
        chosen: the selection.
        launched: the constants with which the kernel is launched without our doing.
    """
    points: list[dict[str, Any]] = [{}]
    for name in chosen.recipe.levers.values():
        size = chosen.overrides.get(name, launched.get(name))
        while isinstance(size, int) and size // 2 >= SMALLEST_TILE:
            size //= 2
            points.append({name: size})
    return points
