"""The failing kernel, compiled again: its figure, its ledger, and whether it is the figure the log prints."""

from __future__ import annotations

from itertools import product
from typing import Any, Literal

import msgspec

from oortriage.gpu.occupancy import Occupancy, occupancy
from oortriage.kernels._interface import Parameter
from oortriage.ledger.allocation import Buffer, Ledger
from oortriage.replay.cells import Compilation, Progress, compile_cells
from oortriage.replay.child import CELL_SECONDS
from oortriage.replay.job import Cell, Failure, Kernel, Outcome, Registers
from oortriage.replay.live_grid import LiveGrid
from oortriage.replay.refusal import refuse_mistakes, refuse_unused
from oortriage.replay.selection import Selection

SCHEMA_VERSION = 1
#: Most settings that are tried for one printed figure.
MOST_TRIED = 64

Verdict = Literal["reproduced", "reproduced_with_other_settings", "not_reproduced", "computed", "failed"]


class Match(msgspec.Struct, frozen=True):
    """Settings that were tried, and the figure they give (bytes)."""

    settings: dict[str, Any]
    required_bytes: int
    kernel: str = ""


class Reproduction(msgspec.Struct, frozen=True):
    """What compiling the kernel gave. All sizes in bytes.

    ``verdict``: ``reproduced`` is the printed figure to the byte, with what the log, the flags and the
    recipe's defaults say; ``computed`` means that there was no printed figure to hold it against.
    ``printed_from`` says who names that figure: the log, or ``--required``.
    ``changed`` are the settings that differ from what was said or assumed, where only others give the figure.
    ``exact_settings`` are all settings tried that give the printed figure, ``nearest`` those that come
    closest. ``residual_bytes`` is what no buffer accounts for.
    """

    schema_version: int
    verdict: Verdict
    kernel: str
    function: str
    target: str
    gpu: str
    triton: str
    source: str
    settings: dict[str, Any]
    constants: dict[str, Any]
    required_bytes: int | None
    limit_bytes: int
    limit_from: str
    fits: bool | None
    over_bytes: int | None
    printed_bytes: int | None
    printed_from: str = ""
    changed: dict[str, Any] = {}
    buffers: list[Buffer] = []
    by_role: dict[str, int] = {}
    gap_bytes: int = 0
    residual_bytes: int = 0
    threads: int = 0
    tensor_memory_columns: int = 0
    registers: Registers | None = None
    occupancy: Occupancy | None = None
    others: list[Match] = []
    exact_settings: list[Match] = []
    nearest: list[Match] = []
    origin: dict[str, str] = {}
    assumptions: list[str] = []
    notes: list[str] = []
    failure: Failure | None = None
    live: LiveGrid | None = None

    @property
    def exit_code(self) -> int:
        """0 reproduced or computed, 1 not reproduced or contradicted by the card, 3 could not be compiled."""
        if self.live and not self.live.agrees:
            return 1
        return {"not_reproduced": 1, "failed": 3}.get(self.verdict, 0)

    @property
    def ledger(self) -> Ledger:
        """The buffers with their total."""
        return Ledger(tuple(self.buffers), self.required_bytes or 0)


def reproduce(
    chosen: Selection,
    *,
    registers: bool = False,
    progress: Progress | None = None,
    cell_seconds: float = CELL_SECONDS,
    use_cache: bool = True,
) -> Reproduction:
    """Compile the selection and, where the log prints a figure, look for the settings that give it.

    Raises:
        UsageError: the kernel's file, its arguments or a constant that is set are not what they should be.
        OortriageError: nothing can be compiled at all.
    """
    cells = _cells(chosen)
    what = Compilation(chosen.kernel, chosen.card, chosen.env, chosen.source, registers)
    outcomes, notes = compile_cells(what, cells, progress=progress, cell_seconds=cell_seconds, use_cache=use_cache)
    refuse_mistakes(outcomes)
    refuse_unused(chosen.overrides, outcomes[:1], "--set")
    first = outcomes[0]
    wanted = chosen.required_bytes
    exact = [index for index, outcome in enumerate(outcomes) if wanted and _kernel(outcome, wanted)]
    if wanted and not exact and (relaxed := _relaxed(chosen)):
        # Last, what the log itself says is doubted, one thing at a time.
        more, more_notes = compile_cells(what, relaxed, cell_seconds=cell_seconds, use_cache=use_cache)
        cells, outcomes, notes = [*cells, *relaxed], [*outcomes, *more], [*notes, *more_notes]
        exact = [index for index, outcome in enumerate(outcomes) if _kernel(outcome, wanted)]
    best = exact[0] if exact else 0
    verdict: Verdict
    if not wanted:
        verdict = "computed" if first.kernels else "failed"
    elif exact:
        verdict = "reproduced" if best == 0 else "reproduced_with_other_settings"
    else:
        verdict = "not_reproduced" if any(outcome.kernels for outcome in outcomes) else "failed"
    matches = [_match(cell, outcome, wanted) for cell, outcome in zip(cells, outcomes, strict=True)]
    figures = [match for match in matches if match]
    return _result(chosen, cells[best], outcomes[best], verdict, notes, figures, [matches[i] for i in exact])


def _cells(chosen: Selection) -> list[Cell]:
    """Return the selection itself, then what else is possible where nobody says and a figure is to be met."""
    cells = [Cell(chosen.shape, chosen.overrides)]
    if not chosen.required_bytes:
        return cells
    open_ones = {one.name: _tries(one) for one in chosen.recipe.parameters if one.name not in chosen.origin}
    names = [name for name, tries in open_ones.items() if tries]
    points = [dict(zip(names, values, strict=True)) for values in product(*(open_ones[name] for name in names))]
    # The nearest first: what differs from the assumptions in one thing, then in two.
    points.sort(key=lambda point: sum(value != chosen.shape[name] for name, value in point.items()))
    for point in points:
        cell = Cell({**chosen.shape, **point}, chosen.overrides)
        if cell not in cells and len(cells) < MOST_TRIED:
            cells.append(cell)
    return cells


def _tries(parameter: Parameter) -> tuple[Any, ...]:
    if parameter.tries or parameter.name != "dtype":
        return parameter.tries
    return tuple(one for one in ("float16", "bfloat16", "float32") if not parameter.choices or one in parameter.choices)


def _relaxed(chosen: Selection) -> list[Cell]:
    cells = []
    for one in chosen.recipe.parameters:
        if one.name in chosen.relaxable:
            cells += [
                Cell({**chosen.shape, one.name: value}, chosen.overrides)
                for value in _tries(one)
                if value != chosen.shape[one.name]
            ]
    return cells


def _kernel(outcome: Outcome, wanted: int) -> Kernel | None:
    """Return the kernel of this figure; one that an autotuner only tried may be what was printed."""
    return next((kernel for kernel in (*outcome.launched, *outcome.kernels) if kernel.required_bytes == wanted), None)


def _match(cell: Cell, outcome: Outcome, wanted: int) -> Match | None:
    kernel = _kernel(outcome, wanted) or outcome.largest
    return Match({**cell.shape, **cell.overrides}, kernel.required_bytes, kernel.name) if kernel else None


def _result(
    chosen: Selection,
    cell: Cell,
    outcome: Outcome,
    verdict: Verdict,
    notes: list[str],
    figures: list[Match],
    exact: list[Match | None],
) -> Reproduction:
    wanted = chosen.required_bytes
    kernel = (_kernel(outcome, wanted) if wanted else None) or outcome.largest
    required = kernel.required_bytes if kernel else None
    ledger = kernel.ledger if kernel else Ledger((), 0)
    changed = {name: value for name, value in cell.shape.items() if value != chosen.shape.get(name)}
    assumed = [one for one in chosen.assumptions if not any(one.startswith(f"assumed: {name} = ") for name in changed)]
    tried = [
        f"{name} = {value} was tried; {chosen.origin.get(name, 'the default')} is {chosen.shape.get(name)}"
        for name, value in changed.items()
    ]
    stand_ins = [f"stand-in used for {name}" for name in outcome.stand_ins]
    return Reproduction(
        schema_version=SCHEMA_VERSION,
        verdict=verdict,
        kernel=chosen.kernel,
        function=kernel.name if kernel else "",
        target=chosen.card.target.name,
        gpu=chosen.card.name,
        triton=outcome.triton or chosen.env.version,
        source=chosen.source_name,
        settings={**cell.shape, **cell.overrides},
        constants=kernel.settings if kernel else {},
        required_bytes=required,
        limit_bytes=chosen.card.limit_bytes,
        limit_from=chosen.limit_from,
        fits=required <= chosen.card.limit_bytes if required is not None else None,
        over_bytes=max(0, required - chosen.card.limit_bytes) if required is not None else None,
        printed_bytes=wanted or None,
        printed_from=chosen.required_from,
        changed=changed,
        buffers=list(ledger.buffers),
        by_role={str(role): size for role, size in ledger.by_role.items()},
        gap_bytes=ledger.gaps,
        residual_bytes=ledger.residual,
        threads=kernel.threads if kernel else 0,
        tensor_memory_columns=kernel.tensor_memory_columns if kernel else 0,
        registers=kernel.registers if kernel else None,
        occupancy=_occupancy(chosen, kernel),
        others=[Match(one.settings, one.required_bytes, one.name) for one in outcome.launched if one is not kernel],
        exact_settings=[match for match in exact if match],
        nearest=sorted(figures, key=lambda one: abs(one.required_bytes - wanted))[:3] if wanted and not exact else [],
        origin={name: where for name, where in chosen.origin.items() if name not in changed},
        assumptions=[*assumed, *stand_ins],
        notes=[*tried, *chosen.notes, *notes],
        failure=outcome.failure,
    )


def _occupancy(chosen: Selection, kernel: Kernel | None) -> Occupancy | None:
    """Say how many blocks a multiprocessor holds; only with the registers known is it the whole truth."""
    if kernel is None or kernel.registers is None or kernel.required_bytes > chosen.architecture.shared_per_block:
        return None
    shared = kernel.required_bytes + kernel.registers.static_shared
    if shared > chosen.architecture.shared_per_block or not kernel.registers.registers:
        return None
    return occupancy(
        chosen.architecture, shared_bytes=shared, threads=kernel.threads, registers=kernel.registers.registers
    )
