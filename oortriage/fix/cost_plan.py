"""What is measured: where the rules launch what, and in which turns; no card is asked here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from oortriage.errors import OortriageError, UsageError
from oortriage.fix.cost_table import CONTROL, Launch, Layers, Phase
from oortriage.fix.impact import RECIPE, card_of, facts_of, overrides
from oortriage.fix.rules import RULES, Rule, decide
from oortriage.kernels.live import Batch
from oortriage.kernels.registry import find_recipe
from oortriage.kernels.source import SourceSpec
from oortriage.replay.cells import Compilation, compile_cells
from oortriage.replay.compiler_env import CompilerEnv
from oortriage.replay.job import Cell, Outcome

CARD = "T4"
#: (KV heads, query heads that share one) of Gemma 3 4B, 1B and 12B, whose heads have 256 elements.
HEADS = ((4, 2), (1, 4), (8, 2))
_WINDOWS: dict[Layers, int] = {"full": 0, "sliding": 1024}
_PHASES: tuple[Phase, ...] = ("prefill", "decode")
#: What is timed; the first word says what kind it is. vLLM splits a decode step along the context only while it has
#: at most 128 / KV heads sequences (0.17.1), and the recipe gives it room for 64: more go to prefill's kernel.
BATCHES = (
    Batch("prefill 4 x 512", ((512, 512),) * 4),
    Batch("prefill 1 x 2048", ((2048, 2048),)),
    Batch("mixed 1 x 512 and 15 x 1024", ((512, 512), *((1, 1024),) * 15)),
    Batch("decode 160 x 256", ((1, 256),) * 160, phase="prefill"),
    Batch("decode 8 x 512", ((1, 512),) * 8),
    Batch("decode 8 x 2048", ((1, 2048),) * 8),
)
#: Half of what one turn alone would take: every launch has two.
RUNS = 20


class Place(msgspec.Struct, frozen=True):
    """One kind of layer in one phase: what each rule launches there, and what forces a launch."""

    layer: Layers
    phase: Phase
    launches: dict[str, Launch]
    forced: dict[Launch, dict[str, int]]

    def shape(self, kv_heads: int, q_per_kv: int) -> dict[str, Any]:
        """Write it as a shape of the recipe, with so many heads."""
        return _shape(self.layer, self.phase, kv_heads, q_per_kv)


class Turn(msgspec.Struct, frozen=True):
    """One cell of the job, and what it is a turn of."""

    heads: tuple[int, int]
    place: Place
    launch: Launch
    cell: Cell


def candidates(version: str) -> list[Rule]:
    """List the rules with a fixed change that are for a release; all of them where it is not known."""
    fixed = [rule for rule in RULES if rule.change is not None]
    return [rule for rule in fixed if not version or _numbers(version) >= _numbers(rule.since)]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(one) for one in re.findall(r"\d+", version.partition("+")[0])[:3])


def _shape(layer: Layers, phase: str, kv_heads: int, q_per_kv: int) -> dict[str, Any]:
    given = {"dtype": "float32", "head_size": 256, "window": _WINDOWS[layer], "phase": phase}
    return find_recipe(RECIPE).shape({**given, "kv_heads": kv_heads, "q_per_kv": q_per_kv})[0]


def places_of(
    rules: Sequence[Rule], source: SourceSpec, env: CompilerEnv, *, use_cache: bool
) -> tuple[list[Place], dict[str, str]]:
    """Ask what vLLM launches at each place, and decide what each rule makes of it; the files with their SHA-256."""
    card = card_of(CARD)
    where = [(layer, phase) for layer in _WINDOWS for phase in _PHASES]
    shapes = [_shape(layer, phase, *HEADS[0]) for layer, phase in where]
    what = Compilation(RECIPE, card, env, source, registers=True)
    outcomes, _ = compile_cells(what, [Cell(shape) for shape in shapes], use_cache=use_cache)
    places = []
    for (layer, phase), shape, outcome in zip(where, shapes, outcomes, strict=True):
        own = _launched(outcome)
        launches, forced = {CONTROL: own}, {own: dict[str, int]()}
        for rule in rules:
            decision = decide(rule, facts_of(card, shape, own.tile))
            launch = Launch(decision.tile or own.tile, decision.num_warps or own.num_warps) if decision else own
            launches[rule.name] = launch
            forced.setdefault(launch, overrides(decision))
        places.append(Place(layer, phase, launches, forced))
    if all(set(place.launches.values()) == {place.launches[CONTROL]} for place in places):
        raise UsageError(
            f"vLLM {source.version or '(version unknown)'} launches FP32 with head size 256 on a {CARD} as the rules "
            "would have it: there is nothing to measure"
        )
    return places, dict(outcomes[0].files)


def _launched(outcome: Outcome) -> Launch:
    """Read off how a kernel is launched without our doing."""
    kernel = outcome.largest
    if kernel is None:
        raise OortriageError(
            f"the kernel does not compile: {outcome.failure.message if outcome.failure else 'no launch'}"
        )
    tile = kernel.settings.get("TILE_SIZE")
    if not tile:
        raise UsageError(
            "vLLM 0.11.0 or later is needed: up to 0.10.2 the tile is the KV cache's block (--block-size 16)"
        )
    return Launch(int(tile), int(kernel.settings["num_warps"]))


def turns_of(places: Sequence[Place]) -> Iterator[Turn]:
    """List the cells: at each place every launch once, then once more from the last to the first.

    A card that grows warmer and slower as it works favours nobody so, for the mean of both turns.
    """
    for heads in HEADS:
        for place in places:
            to = [
                Turn(heads, place, launch, Cell(place.shape(*heads), dict(forced)))
                for launch, forced in place.forced.items()
            ]
            yield from (*to, *reversed(to))
