"""Launches without and with a rule's hooks, and what they must be: compiled from the same file, where no hook ever was.

The expectation has no part of the hooks in it. For the rule whose tile depends on the card's limit it does not go
through :func:`oortriage.fix.rules.decide` either: every smaller tile is compiled, and the largest that fits is it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from oortriage.fix.hooks import KERNELS
from oortriage.fix.impact import RECIPE, Impact, card_of, facts_of, impact_row, overrides, shapes
from oortriage.fix.probe import Launched, ProbeJob, Row, probe
from oortriage.fix.rules import Decision, Rule, decide, smallest_tile
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.registry import find_recipe
from oortriage.kernels.source import SourceSpec
from oortriage.replay.cells import Compilation, Progress, compile_cells
from oortriage.replay.compiler_env import CompilerEnv
from oortriage.replay.job import Cell, Outcome


class Pair(msgspec.Struct, frozen=True):
    """One launch, without and with the hooks, and what each must be. ``decision``: what the rule changes."""

    row: Row
    plain: Launched
    hooked: Launched
    plain_expected: Launched
    expected: Launched
    decision: Decision | None

    @property
    def errors(self) -> list[str]:
        """What did not launch or compile."""
        return [one.error for one in (self.plain, self.hooked, self.plain_expected, self.expected) if one.error]

    @property
    def named(self) -> str:
        """Name it for people."""
        shape = self.row.shape
        return (
            f"{self.row.card.name} {shape['dtype']} head {shape['head_size']} window {shape['window']} {shape['phase']}"
        )

    @property
    def impact(self) -> Impact:
        """The launch as a row of the impact table."""
        row, plain = self.row, self.plain
        return impact_row(
            row.card, row.shape, plain.required_bytes, self.hooked.required_bytes, plain.tile, self.decision
        )


def pairs(
    rule: Rule,
    cards: Sequence[str],
    control: SourceSpec,
    env: CompilerEnv,
    *,
    progress: Progress | None = None,
    use_cache: bool = True,
) -> list[Pair]:
    """Launch the impact table's rows without and with a rule's hooks, and compile what they must be.

    Args:
        rule: the rule.
        cards: names of the cards.
        control: a vLLM with the original policy file.
        env: the compiler of the expectations.
        progress: called with (cards done, all).
        use_cache: whether compilations of earlier runs count; the hooked module is asked anew each time.

    Raises:
        UsageError: no such card.
        OortriageError: there is no compiler, or the module cannot be asked.
    """
    rows = [Row(card, shape) for card in map(card_of, cards) for shape in _asked(rule, card)]
    ((plain, hooked),) = probe([ProbeJob(control, tuple(rows), ("", rule.name), compile=True)])
    found: list[Pair] = []
    for step, name in enumerate(cards):
        card = card_of(name)
        what = Compilation(RECIPE, card, env, control)
        expected = _expected(rule, what, _asked(rule, card), use_cache=use_cache)
        for before, after, decision in expected:
            at = len(found)
            found.append(Pair(rows[at], plain[at], hooked[at], before, after, decision))
        if progress:
            progress(step + 1, len(cards))
    return found


def _asked(rule: Rule, card: Card) -> list[dict[str, Any]]:
    """List a card's shapes; a rule for any shape is also asked for the largest head, where not every tile fits."""
    asked = shapes(card)
    if rule.conditions:
        return asked
    return asked + [
        {"dtype": "float32", "head_size": 512, "window": window, "phase": phase}
        for window in (0, 1024)
        for phase in ("prefill", "decode")
    ]


def _expected(
    rule: Rule, what: Compilation, asked: Sequence[dict[str, Any]], *, use_cache: bool
) -> list[tuple[Launched, Launched, Decision | None]]:
    """Say for each shape what is launched without the rule, with it, and what it changes."""
    recipe = find_recipe(RECIPE)
    whole = [recipe.shape(shape)[0] for shape in asked]

    def run(cells: list[Cell]) -> list[Launched]:
        return [_launched(one) for one in compile_cells(what, cells, use_cache=use_cache)[0]] if cells else []

    before = run([Cell(shape) for shape in whole])
    trials = [
        (index, decision)
        for index, (shape, own) in enumerate(zip(asked, before, strict=True))
        for decision in _candidates(rule, what.card, shape, own)
    ]
    after = run([Cell(whole[index], overrides(decision)) for index, decision in trials])
    chosen: dict[int, tuple[Launched, Decision]] = {}
    for (index, decision), launched in zip(trials, after, strict=True):
        fits = launched.required_bytes is not None and launched.required_bytes <= what.card.limit_bytes
        if rule.change is not None or (fits and index not in chosen):  # candidates come largest first
            chosen[index] = (launched, decision)
    return [(own, *chosen.get(index, (own, None))) for index, own in enumerate(before)]


def _candidates(rule: Rule, card: Card, shape: dict[str, Any], own: Launched) -> list[Decision]:
    """List what a rule might change a launch to; one thing, or every smaller tile where its own does not fit."""
    if own.error or not own.tile:
        return []
    facts = facts_of(card, shape, own.tile)
    if rule.change is not None:
        decision = decide(rule, facts)
        return [decision] if decision else []
    if (own.required_bytes or 0) <= card.limit_bytes:
        return []
    halves = (own.tile >> step for step in range(1, own.tile.bit_length()))
    return [Decision(tile=tile) for tile in halves if tile >= smallest_tile(facts.q_bytes)]


def _launched(outcome: Outcome) -> Launched:
    kernels = [one for one in outcome.launched if one.name in KERNELS]
    if not kernels:
        return Launched(error=outcome.failure.message if outcome.failure else "nothing was launched")
    largest = max(kernels, key=lambda one: one.required_bytes)
    return Launched(largest.settings.get("TILE_SIZE"), largest.settings.get("num_warps"), largest.required_bytes)
