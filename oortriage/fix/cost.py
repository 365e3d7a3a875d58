"""What each rule costs: its launches over the head-256 FP32 shapes, in one run on the card, and their machine code.

A rule is no launch but a policy: it changes some launches and leaves others to vLLM. What it launches where follows
from its conditions and from the tile that vLLM's own policy takes there; each distinct launch is measured once.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence

import msgspec

from oortriage.fix.cost_advice import advise, settles
from oortriage.fix.cost_plan import BATCHES, CARD, HEADS, RUNS, Place, Turn, candidates, places_of, turns_of
from oortriage.fix.cost_table import (
    CONTROL,
    Code,
    Cost,
    CostRow,
    Kind,
    drift,
    means,
    with_ratios,
)
from oortriage.fix.impact import RECIPE, card_of
from oortriage.fix.rules import Rule
from oortriage.gpu.resolve import resolve
from oortriage.kernels.live import Batch
from oortriage.kernels.registry import find_recipe
from oortriage.kernels.source import SourceSpec
from oortriage.replay.cells import Compilation, Progress, compile_cells
from oortriage.replay.compiler_env import CompilerEnv
from oortriage.replay.job import Cell, LiveResult, TimingPlan
from oortriage.replay.live import LiveRun, choose_mode, local_card, run_live
from oortriage.replay.selection import Selection

SCHEMA_VERSION = 1
_REDUCTION = (
    "a rule that changes the warps leaves the reduction behind a split decode step as it is; here its warps were "
    "forced there too"
)
_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][^\s\\/:'\"]+){2,}")


def measure(
    source: SourceSpec,
    env: CompilerEnv,
    mode: str = "auto",
    *,
    device: int = 0,
    progress: Progress | None = None,
    use_cache: bool = True,
) -> Cost:
    """Time every candidate on the local card, and hold the times against each other.

    Args:
        source: the vLLM as it was released; a patched one has no control.
        env: the Triton to compile with.
        mode: ``auto``, ``native`` or ``emulated``.
        device: which device.
        progress: called with (cells done, all), of those compiled and then of those run.
        use_cache: whether compilations of earlier runs count.

    Raises:
        NoCardError: there is none.
        UsageError: the card cannot do it, or this vLLM's policy is not one that the rules change.
        OortriageError: source or compiler are not to be had.
    """
    chosen = _selection(source, env)
    choose_mode(mode, local_card(device), chosen.card.target)  # before anything is compiled
    rules = candidates(source.version)
    places, files = places_of(rules, source, env, use_cache=use_cache)
    code = _code(places, HEADS, source, env, progress=progress, use_cache=use_cache)
    turns = list(turns_of(places))
    run = run_live(
        chosen,
        [turn.cell for turn in turns],
        mode,
        device=device,
        plan=TimingPlan(BATCHES, RUNS, ceilings=False),
        progress=progress,
    )
    return _cost(rules, places, turns, run, code, source, files)


def machine_code(source: SourceSpec, env: CompilerEnv, *, use_cache: bool = True) -> list[Code]:
    """Compile every candidate's launches in prefill for sm_75, which needs no card.

    Returns:
        Registers and spills by the ptxas that comes with Triton, for two query heads a KV head.

    Raises:
        UsageError: this vLLM's policy is not one that the rules change.
        OortriageError: source or compiler are not to be had.
    """
    places, _ = places_of(candidates(source.version), source, env, use_cache=use_cache)
    prefill = [place for place in places if place.phase == "prefill"]
    return _code(prefill, HEADS[:1], source, env, use_cache=use_cache)


def _selection(source: SourceSpec, env: CompilerEnv) -> Selection:
    card = card_of(CARD)
    return Selection(
        kernel=RECIPE,
        recipe=find_recipe(RECIPE),
        architecture=resolve(CARD),
        card=card,
        limit_from=CARD,
        shape={},
        overrides={},
        origin={},
        assumptions=(),
        notes=(),
        env=env,
        source=source,
        required_bytes=0,
    )


def _code(
    places: Sequence[Place],
    heads: Sequence[tuple[int, int]],
    source: SourceSpec,
    env: CompilerEnv,
    *,
    progress: Progress | None = None,
    use_cache: bool,
) -> list[Code]:
    """Assemble each launch for sm_75; how many KV heads there are is no constant of the kernel."""
    groups = {q_per_kv: (kv_heads, q_per_kv) for kv_heads, q_per_kv in reversed(heads)}
    asked = [
        (q_per_kv, place, launch, Cell(place.shape(*groups[q_per_kv]), dict(forced)))
        for q_per_kv in sorted(groups)
        for place in places
        for launch, forced in place.forced.items()
    ]
    what = Compilation(RECIPE, card_of(CARD), env, source, registers=True)
    outcomes, _ = compile_cells(what, [cell for *_, cell in asked], progress=progress, use_cache=use_cache)
    found = []
    for (q_per_kv, place, launch, _), outcome in zip(asked, outcomes, strict=True):
        kernel = outcome.largest
        names = tuple(name for name, one in place.launches.items() if one == launch)
        code = Code(names, place.layer, place.phase, q_per_kv, launch, kernel.required_bytes if kernel else None)
        if kernel and (one := kernel.registers):
            code = msgspec.structs.replace(
                code,
                assembler=one.assembler,
                registers=one.registers,
                spill_stores=one.spill_stores,
                spill_loads=one.spill_loads,
                local_bytes=one.stack,
            )
        found.append(code)
    return found


def _cost(
    rules: Sequence[Rule],
    places: Sequence[Place],
    turns: Sequence[Turn],
    run: LiveRun,
    code: Sequence[Code],
    source: SourceSpec,
    files: dict[str, str],
) -> Cost:
    """Put the results of the turns together."""
    pairs = list(zip(turns, run.results, strict=True))
    names = [rule.name for rule in rules]
    rows = with_ratios(
        [
            _row(rule, heads, place, batch, [one for turn, one in pairs if _is(turn, heads, place, rule)])
            for heads in HEADS
            for place in places
            for batch in BATCHES
            if batch.taken_by == place.phase
            for rule in (CONTROL, *names)
        ]
    )
    environment = next((one.environment for one in run.results if one.environment), {})
    own = f"sm_{environment.get('capability', '').replace('.', '')}"
    seen = [_driven(one, pairs, own) for one in code]
    taken = means(rows, names)
    advice = advise(
        names, rows, taken, seen, run.device, mode=run.mode, settled=settles(run.mode, environment)
    )  # fmt: skip
    checks = [check for one in run.results for check in one.checks]
    return Cost(
        SCHEMA_VERSION,
        vllm=source.version,
        source=source.kind,
        files=files,
        device=run.device,
        mode=run.mode,
        target=run.card.target.name,
        limit_bytes=run.card.limit_bytes,
        environment=environment,
        rules=names,
        rows=rows,
        means=taken,
        drift=drift(rows),
        checks=len(checks),
        largest_error=max((check.error for check in checks), default=0.0),
        code=seen,
        recommended=advice.recommended,
        recommendation=advice.recommendation,
        open=advice.open,
        problems=_problems(rows),
        notes=[*run.notes, *([_REDUCTION] if any(turn.cell.overrides.get("num_warps") for turn in turns) else [])],
    )


def _is(turn: Turn, heads: tuple[int, int], place: Place, rule: str) -> bool:
    return turn.heads == heads and turn.place is place and turn.launch == place.launches[rule]


def _row(rule: str, heads: tuple[int, int], place: Place, batch: Batch, results: Sequence[LiveResult]) -> CostRow:
    base = CostRow(
        rule, place.layer, *heads, batch=batch.name, kind=_kind(batch), launch=place.launches[rule], status="ran"
    )
    for one in results:
        if one.status not in ("ran", "loaded"):
            told = without_paths(one.message)
            return msgspec.structs.replace(base, status=one.status, message=told)
    if bad := [check for one in results for check in one.checks if not check.passed]:
        said = (
            f"{bad[0].batch}: error {bad[0].error:.1e} of at most {bad[0].tolerance:.0e}, {bad[0].missing} not written"
        )
        return msgspec.structs.replace(base, status="wrong", message=said)
    timings = [timing for one in results for timing in one.timings if timing.batch == batch.name]
    if not timings:
        return msgspec.structs.replace(base, status="failed", message="no time was taken")
    turns = tuple(timing.median_ms for timing in timings)
    return msgspec.structs.replace(
        base,
        median_ms=sum(turns) / len(turns),
        turns_ms=turns,
        low_ms=min(timing.low_ms for timing in timings),
        high_ms=max(timing.high_ms for timing in timings),
    )


def _kind(batch: Batch) -> Kind:
    kind: Kind = msgspec.convert(batch.name.partition(" ")[0], Kind)
    return kind


def _driven(code: Code, pairs: Sequence[tuple[Turn, LiveResult]], target: str) -> Code:
    """Add what the driver says of the code that was loaded for a launch; it counts local memory in words of 4 bytes."""
    for turn, result in pairs:
        place = turn.place
        same = (place.layer, place.phase, turn.heads[1], turn.launch)
        if same == (code.layer, code.phase, code.q_per_kv, code.launch) and result.kernels:
            kernel = max(result.kernels, key=lambda one: one.shared_bytes)
            return msgspec.structs.replace(
                code,
                driver_target=target,
                driver_registers=kernel.registers,
                driver_local_bytes=4 * kernel.spills,
            )
    return code


def _problems(rows: Sequence[CostRow]) -> list[str]:
    return [
        f"{row.rule}, {row.layer}, {row.kv_heads} x {row.q_per_kv} heads, {row.batch}: "
        f"{row.status.replace('_', ' ')}{f': {row.message}' if row.message else ''}"
        for row in rows
        if row.rule != CONTROL and row.status != "ran"
    ]


def without_paths(message: str) -> str:
    """Take out of a message what names this machine or a place on it: the result is sent to others."""
    return _PATH.sub("(path)", message.replace(platform.node() or "\0", "(host)"))


def summary(cost: Cost) -> str:
    """Say in short what was measured and what follows; of a run with problems, which."""
    many = len({(row.kv_heads, row.q_per_kv, row.layer, row.batch) for row in cost.rows})
    how = f"{many} batches on {cost.device}, {cost.mode}, {cost.checks} outputs held against float64"
    if cost.problems:
        return f"{how}: {len(cost.problems)} rows have no time: {cost.problems[0]}"
    code = in_words(cost.code)
    return f"{how}: {cost.recommendation}{f' {code}' if code else ''}"


def in_words(code: Sequence[Code]) -> str:
    """Say what ptxas makes of the rules' launches in prefill, a thread, with two query heads a KV head."""
    said = []
    for layer in ("full", "sliding"):
        parts = [
            f"{one.launch}: {one.registers} registers, {one.spill_stores:,} / {one.spill_loads:,} bytes spilled"
            for one in code
            if (one.layer, one.phase, one.q_per_kv) == (layer, "prefill", HEADS[0][1])
            and one.registers is not None
            and one.rules != (CONTROL,)
        ]
        said += [f"{layer} layers: {'; '.join(parts)}"] if parts else []
    return f"ptxas for sm_75, a thread: {'; '.join(said)}" if said else ""
