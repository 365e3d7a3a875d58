"""The rules as truth tables, and what holds for every fact there can be."""

from __future__ import annotations

import subprocess
import sys
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.errors import UsageError
from oortriage.fix.rules import RULES, Decision, Facts, broken, decide, find_rule, smallest_tile

T4 = Facts((7, 5), 256, 4, 4, 0, is_prefill=True, tile=32, limit_bytes=65_536)
TILE16, FULL, WARPS2, FITTILE = RULES


def other(**changes: object) -> Facts:
    return msgspec.structs.replace(T4, **changes)


@pytest.mark.parametrize(
    ("facts", "tile16", "full", "warps2"),
    [
        (T4, 16, 16, 2),
        (other(kv_bytes=None), 16, 16, 2),  # not told: q's width decides
        (other(window=1024), 16, None, 2),
        (other(is_prefill=False, window=1024), 16, None, 2),  # Gemma 3's decode tile of 32
        (other(is_prefill=False, tile=16), None, None, None),  # already as small
        (other(capability=(8, 0)), None, None, None),
        (other(capability=(7, 0)), None, None, None),
        (other(capability=(8, 6)), None, None, None),
        (other(head_size=128), None, None, None),
        (other(head_size=512), None, None, None),
        (other(q_bytes=2, kv_bytes=2), None, None, None),
        (other(kv_bytes=2), None, None, None),
        (other(kv_bytes=1), None, None, None),
        (other(tile=64), 16, 16, None),
    ],
)
def test_what_each_rule_says(facts: Facts, tile16: int | None, full: int | None, warps2: int | None) -> None:
    assert decide(TILE16, facts) == (Decision(tile=tile16) if tile16 else None)
    assert decide(FULL, facts) == (Decision(tile=full) if full else None)
    assert decide(WARPS2, facts) == (Decision(num_warps=warps2) if warps2 else None)


def test_only_the_target_shape_changes() -> None:
    changed = {
        (capability, head, q, kv, window, prefill)
        for capability, head, q, kv, window, prefill in product(
            ((6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)),
            (64, 96, 128, 192, 256, 512), (1, 2, 4), (1, 2, 4), (0, 512, 1024), (True, False),
        )
        if decide(TILE16, Facts(capability, head, q, kv, window, prefill, 32 if prefill else 16))
    }  # fmt: skip
    assert changed == {((7, 5), 256, 4, 4, window, True) for window in (0, 512, 1024)}


@pytest.mark.parametrize(
    ("sizes", "tile"),
    [
        ({32: 81_920, 16: 49_152}, 16),
        ({32: 65_536, 16: 1}, None),  # it fits to the byte: nothing changes
        ({32: 65_537, 16: 65_536}, 16),
        ({32: 98_304, 16: 66_000}, None),  # no tile fits: as it was, and the card says so itself
        ({}, None),
    ],
)
def test_the_fitting_tile(sizes: dict[int, int], tile: int | None) -> None:
    assert decide(FITTILE, T4, sizes.get) == (Decision(tile=tile) if tile else None)


def test_the_fitting_tile_needs_figures() -> None:
    assert decide(FITTILE, T4) is None
    assert decide(FITTILE, other(limit_bytes=0), {32: 81_920, 16: 49_152}.get) is None
    one_byte = other(q_bytes=1)
    assert decide(FITTILE, one_byte, {32: 81_920, 16: 49_152}.get) is None
    assert smallest_tile(1) == 32


def test_which_condition_fails() -> None:
    assert broken(TILE16, T4) == []
    assert [one.fact for one in broken(FULL, other(window=1024, head_size=128))] == ["head_size", "window"]


def test_rules_are_found_by_name() -> None:
    assert find_rule(" TILE16-full ") is FULL
    with pytest.raises(UsageError, match="tile16, tile16-full, warps2, fittile"):
        find_rule("tile8")


FACTS = st.builds(
    Facts,
    capability=st.tuples(st.integers(6, 12), st.integers(0, 9)),
    head_size=st.sampled_from((64, 80, 128, 256, 512)),
    q_bytes=st.sampled_from((1, 2, 4)),
    kv_bytes=st.sampled_from((None, 1, 2, 4)),
    window=st.integers(0, 4096),
    is_prefill=st.booleans(),
    tile=st.sampled_from((16, 32, 64, 128)),
    limit_bytes=st.integers(0, 1 << 18),
)


@given(FACTS, st.sampled_from(RULES), st.integers(1, 8192))
def test_a_rule_never_makes_it_worse(facts: Facts, rule: object, per_row: int) -> None:
    decision = decide(rule, facts, lambda tile: tile * per_row)
    if decision is None:
        return
    assert broken(rule, facts) == []
    if decision.tile is not None:
        assert 16 <= decision.tile < facts.tile
        assert decision.tile & (decision.tile - 1) == 0
    if rule is FITTILE:
        assert facts.tile * per_row > facts.limit_bytes >= decision.tile * per_row
        assert decision.tile * 2 * per_row > facts.limit_bytes


@given(FACTS, st.sampled_from(RULES), st.integers(1, 8192))
def test_a_rule_applied_twice_is_the_rule(facts: Facts, rule: object, per_row: int) -> None:
    decision = decide(rule, facts, lambda tile: tile * per_row)
    if decision and decision.tile:
        assert decide(rule, msgspec.structs.replace(facts, tile=decision.tile), lambda tile: tile * per_row) is None


def test_rules_import_nothing_heavy() -> None:
    code = "import sys, oortriage.fix.rules; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "triton", "vllm", "typer", "rich", "regex"} & set(done.stdout.split())
