"""The impact table: bytes before and after, over cards, types, head sizes, windows and phases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from oortriage.fix.rules import Decision, Facts, Rule, decide
from oortriage.gpu.resolve import resolve, triton_target
from oortriage.gpu.virtual.adapter import Target
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.registry import find_recipe
from oortriage.kernels.source import SourceSpec
from oortriage.replay.cells import Compilation, Progress, compile_cells
from oortriage.replay.compiler_env import CompilerEnv
from oortriage.replay.job import Cell, Outcome

RECIPE = "vllm.unified_attention"
#: The failing card, and one of each kind that is served on otherwise.
CARDS = ("T4", "A100", "A10", "H100")
#: Bytes an element of the types in the table.
WIDTHS = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}
_SLIDING = 1024


class Impact(msgspec.Struct, frozen=True):
    """One row. ``changes``: the rule changes this launch. Bytes; None where it does not compile."""

    gpu: str
    target: str
    dtype: str
    head_size: int
    window: int
    phase: str
    limit_bytes: int
    before_bytes: int | None
    after_bytes: int | None
    tile: int | None
    changes: bool
    change: str = ""

    @property
    def as_expected(self) -> bool:
        """Whether a launch that the rule leaves alone is the same to the byte, and one that it changes fits."""
        if self.before_bytes is None or self.after_bytes is None:
            return False
        if not self.changes:
            return self.before_bytes == self.after_bytes
        return self.after_bytes < self.before_bytes and self.after_bytes <= self.limit_bytes


def card_of(name: str) -> Card:
    """Make the virtual card of a name.

    Raises:
        UsageError: no such card, or more than one.
    """
    architecture = resolve(name)
    return Card(Target(*triton_target(architecture)), architecture.shared_per_block, name)


def shapes(card: Card, *, wide: bool = False) -> list[dict[str, Any]]:
    """List the shapes for a card: the target's, and its neighbours in every direction.

    Args:
        card: the card; off compute capability 7.5 there are fewer, for nothing is to change there.
        wide: more head sizes.
    """
    near = card.capability == (7, 5)
    types = ("float32", "float16") if near or wide else ("float32",)
    heads = (64, 128, 256, 512) if wide else (128, 256) if near else (256,)
    return [
        {"dtype": dtype, "head_size": head, "window": window, "phase": phase}
        for dtype in types
        for head in heads
        for window in (0, _SLIDING)
        for phase in ("prefill", "decode")
    ]


def facts_of(card: Card, shape: dict[str, Any], tile: int) -> Facts:
    """State a shape as a policy sees it."""
    width = WIDTHS.get(str(shape["dtype"]), 2)
    kv = str(shape.get("kv_dtype", "auto"))
    return Facts(
        capability=card.capability,
        head_size=int(shape["head_size"]),
        q_bytes=width,
        kv_bytes=width if kv == "auto" else WIDTHS.get(kv, 2),
        window=int(shape["window"]),
        is_prefill=shape["phase"] == "prefill",
        tile=tile,
        limit_bytes=card.limit_bytes,
    )


def planned_impact(
    rule: Rule,
    cards: Sequence[str],
    source: SourceSpec | None,
    env: CompilerEnv,
    *,
    wide: bool = False,
    progress: Progress | None = None,
    use_cache: bool = True,
) -> list[Impact]:
    """Compile what is launched now, and again what the rule changes about it."""
    return _table(rule, cards, source, None, env, wide=wide, progress=progress, use_cache=use_cache)


def measured_impact(
    rule: Rule,
    cards: Sequence[str],
    control: SourceSpec,
    fixed: SourceSpec,
    env: CompilerEnv,
    *,
    wide: bool = False,
    progress: Progress | None = None,
    use_cache: bool = True,
) -> list[Impact]:
    """Compile the original file and the patched one, every row of both."""
    return _table(rule, cards, control, fixed, env, wide=wide, progress=progress, use_cache=use_cache)


def _table(
    rule: Rule,
    cards: Sequence[str],
    control: SourceSpec | None,
    fixed: SourceSpec | None,
    env: CompilerEnv,
    *,
    wide: bool,
    progress: Progress | None,
    use_cache: bool,
) -> list[Impact]:
    recipe = find_recipe(RECIPE)
    rows: list[Impact] = []
    for step, name in enumerate(cards):
        card = card_of(name)
        asked = [recipe.shape(shape)[0] for shape in shapes(card, wide=wide)]

        def run(source: SourceSpec | None, cells: list[Cell], card: Card = card) -> list[Outcome]:
            return compile_cells(Compilation(RECIPE, card, env, source), cells, use_cache=use_cache)[0]

        before = run(control, [Cell(shape) for shape in asked])
        decisions = [
            _decision(rule, card, shape, outcome, lambda cell: run(control, [cell])[0])
            for shape, outcome in zip(asked, before, strict=True)
        ]
        if fixed is not None:
            after = run(fixed, [Cell(shape) for shape in asked])
        else:
            after = list(before)
            changed = [index for index, one in enumerate(decisions) if one]
            cells = [Cell(asked[index], overrides(decisions[index])) for index in changed]
            for index, outcome in zip(changed, run(control, cells) if cells else [], strict=True):
                after[index] = outcome
        rows += [
            _row(card, shape, old, new, decision)
            for shape, old, new, decision in zip(asked, before, after, decisions, strict=True)
        ]
        if progress:
            progress(step + 1, len(cards))
    return rows


def _decision(
    rule: Rule, card: Card, shape: dict[str, Any], outcome: Outcome, run: Callable[[Cell], Outcome]
) -> Decision | None:
    kernel = outcome.largest
    if kernel is None:
        return None
    tile = int(kernel.settings.get("TILE_SIZE") or 0)

    def required(asked: int) -> int | None:
        if asked == tile:
            return kernel.required_bytes
        largest = run(Cell(shape, {"TILE_SIZE": asked})).largest
        return largest.required_bytes if largest else None

    return decide(rule, facts_of(card, shape, tile), required)


def overrides(decision: Decision | None) -> dict[str, int]:
    """Write a decision as constants and launch options."""
    if decision is None:
        return {}
    return {"TILE_SIZE": decision.tile} if decision.tile else {"num_warps": decision.num_warps or 0}


def _row(card: Card, shape: dict[str, Any], old: Outcome, new: Outcome, decision: Decision | None) -> Impact:
    before, after = old.largest, new.largest
    return impact_row(
        card,
        shape,
        before.required_bytes if before else None,
        after.required_bytes if after else None,
        before.settings.get("TILE_SIZE") if before else None,
        decision,
    )


def impact_row(
    card: Card,
    shape: dict[str, Any],
    before_bytes: int | None,
    after_bytes: int | None,
    tile: int | None,
    decision: Decision | None,
) -> Impact:
    """Write a launch as a row of the table; bytes of a block without and with the rule, None where there are none."""
    return Impact(
        gpu=card.name,
        target=card.target.name,
        dtype=shape["dtype"],
        head_size=shape["head_size"],
        window=shape["window"],
        phase=shape["phase"],
        limit_bytes=card.limit_bytes,
        before_bytes=before_bytes,
        after_bytes=after_bytes,
        tile=tile,
        changes=decision is not None,
        change=", ".join(f"{key}={value}" for key, value in overrides(decision).items()),
    )
