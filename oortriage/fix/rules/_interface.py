"""What a rule is, and the one function that applies it: pure, and light enough for a serving process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

#: Triton's matrix product takes no fewer than 16 rows, and 32 of one-byte elements.
_SMALLEST, _SMALLEST_ONE_BYTE = 16, 32

FactName = Literal["capability", "head_size", "q_bytes", "kv_bytes", "window", "tile"]


class Facts(msgspec.Struct, frozen=True):
    """One launch as a policy sees it. Widths in bytes an element; ``window`` 0 is full attention.

    ``kv_bytes`` is None where the policy is not told: the kernel casts K and V to q's type before the
    product, so q's width decides. ``tile`` is what the policy chose without us, ``limit_bytes`` what the
    card gives one block (0: not known).
    """

    capability: tuple[int, int]
    head_size: int
    q_bytes: int
    kv_bytes: int | None
    window: int
    is_prefill: bool
    tile: int
    limit_bytes: int = 0


class Decision(msgspec.Struct, frozen=True):
    """What to launch with instead: a tile, or a number of warps with the tile as it was."""

    tile: int | None = None
    num_warps: int | None = None


class Condition(msgspec.Struct, frozen=True):
    """A fact that must have this value."""

    fact: FactName
    value: int | tuple[int, int]
    words: str

    def holds(self, facts: Facts) -> bool:
        """Tell whether it holds; a width that the policy is not told counts as q's."""
        if self.fact == "kv_bytes" and facts.kv_bytes is None:
            return True
        return bool(getattr(facts, self.fact) == self.value)


class Rule(msgspec.Struct, frozen=True):
    """When a policy is changed, and to what.

    Args:
        name: as in ``--rule`` and ``OORTRIAGE_TILE_POLICY``.
        title: as people write it.
        summary: one sentence.
        conditions: all must hold.
        change: what is launched instead; None for the largest tile whose exact requirement fits.
        reason: why it helps.
        reports: public reports that it answers.
        since: first vLLM release that it is for, and ``until`` the last (empty: the newest read).
        proof: what was measured, and where.
        cautions: what is not known, or speaks against it.
    """

    name: str
    title: str
    summary: str
    conditions: tuple[Condition, ...]
    change: Decision | None
    reason: str
    reports: tuple[str, ...]
    since: str
    proof: tuple[str, ...]
    until: str = ""
    cautions: tuple[str, ...] = ()


#: Says how many bytes a block needs with a tile; None when that is not known.
Requirement = Callable[[int], "int | None"]


def decide(rule: Rule, facts: Facts, required: Requirement | None = None) -> Decision | None:
    """Say what a rule changes about a launch.

    Args:
        rule: the rule.
        facts: the launch.
        required: the exact bytes for a tile; only a rule without a fixed change asks for it.

    Returns:
        The change; None when the launch stays as it was.
    """
    if broken(rule, facts):
        return None
    change = rule.change
    if change is None:
        tile = _largest_fitting(facts, required)
        return None if tile in (None, facts.tile) else Decision(tile=tile)
    if change.tile is not None and change.tile >= facts.tile:
        return None  # already as small
    return change


def broken(rule: Rule, facts: Facts) -> list[Condition]:
    """List the conditions that do not hold."""
    return [condition for condition in rule.conditions if not condition.holds(facts)]


def smallest_tile(q_bytes: int) -> int:
    """Return the smallest tile that Triton's matrix product takes."""
    return _SMALLEST_ONE_BYTE if q_bytes == 1 else _SMALLEST


def _largest_fitting(facts: Facts, required: Requirement | None) -> int | None:
    """Halve the tile until it fits; None when no tile does, or when nothing is known."""
    if required is None or facts.limit_bytes <= 0:
        return None
    tile = facts.tile
    while tile >= smallest_tile(facts.q_bytes):
        size = required(tile)
        if size is None:
            return None
        if size <= facts.limit_bytes:
            return tile
        tile //= 2
    return None
