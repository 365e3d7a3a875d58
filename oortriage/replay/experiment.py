"""The controlled experiment: one kernel over a grid of settings, and which lever moves its bytes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from math import log2, prod
from typing import Any

import msgspec

from oortriage.errors import UsageError
from oortriage.replay.cells import Compilation, Progress, compile_cells
from oortriage.replay.child import CELL_SECONDS
from oortriage.replay.job import Cell, Outcome, Registers
from oortriage.replay.live_grid import LiveGrid
from oortriage.replay.refusal import refuse_mistakes, refuse_unused
from oortriage.replay.selection import Selection, constants

SCHEMA_VERSION = 1
#: A grid is the product of its factors; more cells than this is a mistake.
MOST_CELLS = 2000
#: Settings that fit have their registers looked at, the nearest first, so many at a time: until one spills nothing.
_CANDIDATES = 4
_MOST_CANDIDATES = 12


class GridCell(msgspec.Struct, frozen=True):
    """One cell: its settings, bytes, and whether it fits. ``note`` says why there is no figure."""

    settings: dict[str, Any]
    required_bytes: int | None
    fits: bool | None
    kernel: str = ""
    registers: Registers | None = None
    note: str = ""


class Recommendation(msgspec.Struct, frozen=True):
    """The smallest change that fits. ``freed_bytes`` is against the baseline; ``spills`` None: not looked at."""

    settings: dict[str, Any]
    change: str
    required_bytes: int
    freed_bytes: int
    margin_bytes: int
    spills: int | None
    sentence: str
    alternatives: tuple[str, ...] = ()


class Experiment(msgspec.Struct, frozen=True):
    """A grid of compilations. All sizes in bytes.

    ``baseline`` is the level of each factor as the kernel is launched without our doing.
    ``effects``: how far the bytes move when that factor alone runs over its levels and the baseline's, the
    others at the baseline; None where fewer than two of them compile. ``interactions``: how much more or
    less two factors move together than each alone.
    """

    schema_version: int
    kernel: str
    target: str
    gpu: str
    triton: str
    source: str
    limit_bytes: int
    factors: dict[str, list[Any]]
    baseline: dict[str, Any]
    baseline_bytes: int | None
    cells: list[GridCell]
    effects: dict[str, int | None]
    interactions: dict[str, int]
    recommendation: Recommendation | None
    sentence: str
    settings: dict[str, Any] = {}
    origin: dict[str, str] = {}
    assumptions: list[str] = []
    notes: list[str] = []
    live: LiveGrid | None = None

    @property
    def exit_code(self) -> int:
        """0 when a figure came out, 1 when the card contradicts one, 3 when no cell compiled."""
        if self.live and not self.live.agrees:
            return 1
        return 0 if any(cell.required_bytes is not None for cell in self.cells) else 3


def read_vary(texts: list[str]) -> dict[str, list[Any]]:
    """Read ``--vary NAME=a,b,c``, in the order given.

    Raises:
        UsageError: no name, no values, or one name twice.
    """
    factors: dict[str, list[Any]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        levels = [_level(one.strip()) for one in values.split(",") if one.strip()]
        if not name.strip() or not levels:
            raise UsageError(f"--vary {text}: write NAME=16,32,64")
        if name.strip() in factors:
            raise UsageError(f"--vary {name.strip()} is given twice")
        factors[name.strip()] = list(dict.fromkeys(levels))
    return factors


def _level(text: str) -> Any:
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def experiment(
    chosen: Selection,
    factors: dict[str, list[Any]],
    *,
    registers: bool = False,
    spills: bool = True,
    progress: Progress | None = None,
    cell_seconds: float = CELL_SECONDS,
    use_cache: bool = True,
) -> Experiment:
    """Compile the grid and say what moves the bytes.

    A factor is a parameter of the recipe (``head_size``), else a constant of the kernel or a launch
    option (``TILE_SIZE``, ``num_warps``). Without ``spills`` the registers of what is recommended are not looked
    at, which costs seconds a setting.

    Raises:
        UsageError: no factors, one that the kernel does not have, a level it cannot have, or too many cells.
        OortriageError: nothing can be compiled at all.
    """
    levels = _levels(chosen, factors)
    count = prod(len(one) for one in levels.values())
    if count > MOST_CELLS:
        raise UsageError(f"that is a grid of {count:,} cells; {MOST_CELLS:,} are the most")
    names = list(levels)
    what = Compilation(chosen.kernel, chosen.card, chosen.env, chosen.source, registers)
    run = _Run(chosen, what, progress, cell_seconds, use_cache)
    points = [dict(zip(names, values, strict=True)) for values in product(*levels.values())]
    base_outcome, *outcomes = run([{}, *points])
    # A kernel of the user's own may have no value of its own for what is varied: then the first level is its baseline.
    unset = {name: levels[name][0] for name in names if name not in chosen.shape and name not in chosen.overrides}
    if not base_outcome.kernels and unset:
        base_outcome = run([unset])[0]
    baseline = _baseline(chosen, levels, base_outcome)
    refuse_mistakes([base_outcome, *outcomes])
    refuse_unused(names, outcomes, "--vary")
    refuse_unused(chosen.overrides, outcomes, "--set")
    cells = [_grid_cell(point, outcome, chosen) for point, outcome in zip(points, outcomes, strict=True)]
    around = run([{**baseline, name: level} for name in names for level in levels[name]])
    value = _Values(run, baseline, around, names, levels)
    base_kernel = base_outcome.largest
    base_bytes = base_kernel.required_bytes if base_kernel else None
    effects = {name: value.effect(name) for name in names}
    best, cells = _recommend(chosen, baseline, base_bytes, cells, what, run if spills else None)
    untold = [
        f"the effect of {name} cannot be told: fewer than two of its levels compile"
        for name in names
        if effects[name] is None
    ]
    return Experiment(
        schema_version=SCHEMA_VERSION,
        kernel=chosen.kernel,
        target=chosen.card.target.name,
        gpu=chosen.card.name,
        triton=base_outcome.triton or chosen.env.version,
        source=chosen.source_name,
        limit_bytes=chosen.card.limit_bytes,
        factors=levels,
        baseline=baseline,
        baseline_bytes=base_bytes,
        cells=cells,
        effects=effects,
        interactions={f"{one} x {other}": value.interaction(one, other) for one, other in combinations(names, 2)},
        recommendation=best,
        sentence=_sentence(chosen, effects, base_bytes, best),
        settings={**chosen.shape, **chosen.overrides},
        origin=chosen.origin,
        assumptions=list(chosen.assumptions),
        notes=[*chosen.notes, *run.notes, *untold],
    )


def _levels(chosen: Selection, factors: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Take what is asked for, else the kernel's own grid; a parameter's levels are read as the recipe reads them."""
    recipe = chosen.recipe
    given = constants(recipe, factors or {name: list(levels) for name, levels in recipe.vary.items()}, "--vary")
    if not given:
        raise UsageError("what is to be varied? Say --vary NAME=16,32,64")
    parameters = {one.name for one in recipe.parameters}
    read = {
        name: [recipe.shape({name: level})[0][name] if name in parameters else level for level in levels]
        for name, levels in given.items()
    }
    # True is 1 to a dictionary, and not to a kernel.
    return {
        name: [one for _, one in {(type(one), one): one for one in levels}.items()] for name, levels in read.items()
    }


class _Run:
    """Compiles points of the grid; what was compiled once is not compiled again."""

    def __init__(
        self, chosen: Selection, what: Compilation, progress: Progress | None, seconds: float, use_cache: bool
    ) -> None:
        self._chosen, self._what = chosen, what
        self._progress, self._seconds, self._use_cache = progress, seconds, use_cache
        self._done: dict[str, Outcome] = {}
        self.notes: list[str] = []

    def __call__(self, points: list[dict[str, Any]], what: Compilation | None = None) -> list[Outcome]:
        cells = [self._cell(point) for point in points]
        mark = "r" if what else ""
        new = {mark + repr(cell): cell for cell in cells if mark + repr(cell) not in self._done}
        if new:
            outcomes, notes = compile_cells(
                what or self._what,
                list(new.values()),
                progress=self._progress if len(new) > 1 else None,
                cell_seconds=self._seconds,
                use_cache=self._use_cache,
            )
            self._done.update(zip(new, outcomes, strict=True))
            self.notes += [note for note in notes if note not in self.notes]
        return [self._done[mark + repr(cell)] for cell in cells]

    def _cell(self, point: dict[str, Any]) -> Cell:
        shape = {name: value for name, value in point.items() if name in self._chosen.shape}
        rest = {name: value for name, value in point.items() if name not in shape}
        return Cell({**self._chosen.shape, **shape}, {**self._chosen.overrides, **rest})


class _Values:
    """Figures round the baseline."""

    def __init__(
        self, run: _Run, baseline: dict[str, Any], around: list[Outcome], names: list[str], levels: dict[str, list[Any]]
    ) -> None:
        self._run, self._baseline, self._levels = run, baseline, levels
        steps = iter(around)
        self._alone = {name: [_bytes(next(steps)) for _ in levels[name]] for name in names}

    def effect(self, name: str) -> int | None:
        own = () if self._baseline[name] in self._levels[name] else (_bytes(self._run([self._baseline])[0]),)
        known = [one for one in (*self._alone[name], *own) if one is not None]
        return max(known) - min(known) if len(known) > 1 else None

    def interaction(self, one: str, other: str) -> int:
        base = _bytes(self._run([self._baseline])[0])
        pairs = list(product(self._levels[one], self._levels[other]))
        together = self._run([{**self._baseline, one: a, other: b} for a, b in pairs])
        most = 0
        alone = product(self._alone[one], self._alone[other])
        for (first, second), outcome in zip(alone, together, strict=True):
            both = _bytes(outcome)
            if base is not None and first is not None and second is not None and both is not None:
                most = max(most, abs(both - first - second + base))
        return most


def _bytes(outcome: Outcome) -> int | None:
    kernel = outcome.largest
    return kernel.required_bytes if kernel else None


def _baseline(chosen: Selection, factors: dict[str, list[Any]], outcome: Outcome) -> dict[str, Any]:
    """Take the level of each factor as the kernel is launched without our doing; else its first level."""
    kernel = outcome.largest
    settings = {**chosen.shape, **(kernel.settings if kernel else {}), **chosen.overrides}
    return {name: settings.get(name, levels[0]) for name, levels in factors.items()}


def _grid_cell(point: dict[str, Any], outcome: Outcome, chosen: Selection) -> GridCell:
    kernel = outcome.largest
    if kernel is None:
        note = outcome.failure.message if outcome.failure else "no kernel was launched"
        return GridCell(point, None, None, note=note)
    return GridCell(
        point,
        kernel.required_bytes,
        kernel.required_bytes <= chosen.card.limit_bytes,
        kernel=kernel.name,
        registers=kernel.registers,
    )


def _recommend(
    chosen: Selection,
    baseline: dict[str, Any],
    base_bytes: int | None,
    cells: list[GridCell],
    what: Compilation,
    run: Callable[..., list[Outcome]] | None,
) -> tuple[Recommendation | None, list[GridCell]]:
    """Choose among the settings that fit: fewest spilled bytes, then the smallest change.

    Registers of the nearest candidates are looked at unless there is no ``run`` for it: a setting that fits and
    spills is no cure.
    """
    if base_bytes is None or base_bytes <= chosen.card.limit_bytes:
        return None, cells
    fitting = sorted((cell for cell in cells if cell.fits), key=lambda cell: _distance(baseline, cell.settings))
    if not fitting:
        return None, cells
    nearest: list[GridCell] = []
    while len(nearest) < min(len(fitting), _MOST_CANDIDATES) and not any(_spills(cell) == 0 for cell in nearest):
        some = fitting[len(nearest) : len(nearest) + _CANDIDATES]
        if run and any(cell.registers is None for cell in some):
            looked = run([cell.settings for cell in some], msgspec.structs.replace(what, registers=True))
            some = [
                msgspec.structs.replace(cell, registers=outcome.largest.registers) if outcome.largest else cell
                for cell, outcome in zip(some, looked, strict=True)
            ]
        nearest += some
        if all(cell.registers is None for cell in some):
            break  # there is no assembler for this target
    known = {repr(cell.settings): cell for cell in nearest}
    cells = [known.get(repr(cell.settings), cell) for cell in cells]
    # Spills that could not be looked at (no assembler for the target) are no reason for or against.
    ranked = sorted(nearest, key=lambda cell: (_spills(cell) or 0, _distance(baseline, cell.settings)))
    best, others = ranked[0], ranked[1:_CANDIDATES]
    required = best.required_bytes or 0
    change, freed = _change(baseline, best.settings), base_bytes - required
    spills = _spills(best)
    said = f"{change} frees {freed:,} bytes: {required:,} of {chosen.card.limit_bytes:,}"
    if spills:
        said += f", but it spills {spills:,} bytes a thread"
    return (
        Recommendation(
            settings=best.settings,
            change=change,
            required_bytes=required,
            freed_bytes=freed,
            margin_bytes=chosen.card.limit_bytes - required,
            spills=spills,
            sentence=said,
            alternatives=tuple(
                f"{_change(baseline, one.settings)}: {one.required_bytes:,} bytes"
                + (f", spills {_spills(one):,} bytes a thread" if _spills(one) else "")
                for one in others
            ),
        ),
        cells,
    )


def _spills(cell: GridCell) -> int | None:
    return cell.registers.spill_stores + cell.registers.spill_loads if cell.registers else None


def _distance(baseline: dict[str, Any], settings: dict[str, Any]) -> tuple[int, float, float]:
    """Measure a change: how many settings, then how far in powers of two; larger tiles first among equals."""
    changed = [name for name in settings if settings[name] != baseline[name]]
    steps = 0.0
    for name in changed:
        one, other = baseline[name], settings[name]
        numbers = all(isinstance(value, int) and not isinstance(value, bool) and value > 0 for value in (one, other))
        steps += abs(log2(one / other)) if numbers else 1
    return len(changed), steps, sum(-value for value in settings.values() if isinstance(value, int))


def _change(baseline: dict[str, Any], settings: dict[str, Any]) -> str:
    parts = [f"{name} {baseline[name]} -> {value}" for name, value in settings.items() if value != baseline[name]]
    return ", ".join(parts) or "nothing changed"


def _sentence(
    chosen: Selection, effects: dict[str, int | None], base_bytes: int | None, best: Recommendation | None
) -> str:
    """Say in one sentence what moves the bytes and what does not."""
    target = chosen.card.target.name
    still = [name for name, size in effects.items() if size == 0]
    moving = sorted(((size, name) for name, size in effects.items() if size), reverse=True)
    parts = []
    if still:
        parts.append(f"{' and '.join(still)} move{'s' if len(still) == 1 else ''} 0 bytes on {target}")
    if moving:
        parts.append(", ".join(f"{name} moves up to {size:,}" for size, name in moving))
    if best:
        parts.append(best.sentence)
    elif base_bytes is not None and base_bytes <= chosen.card.limit_bytes:
        parts.append(f"the kernel fits as it is: {base_bytes:,} of {chosen.card.limit_bytes:,} bytes")
    elif base_bytes is not None:
        parts.append(f"nothing in this grid fits in {chosen.card.limit_bytes:,} bytes")
    return "; ".join(parts) + "." if parts else "nothing could be compiled."
