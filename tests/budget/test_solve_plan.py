"""By the model's layout the answers are exact: what is named works, and a little less does not."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.budget.figure import Figure
from oortriage.budget.kv import pool
from oortriage.budget.memory import available_for_kv
from oortriage.budget.model import read_model
from oortriage.budget.plan import Planned, Settings, prepare
from oortriage.budget.plan_parts import plan_parts
from oortriage.budget.solution import Solution
from oortriage.budget.solve import Want
from oortriage.budget.solve_plan import Card, card_of, solve_plan
from oortriage.errors import UsageError
from tests.budget.configs import GEMMA_3_4B, LLAMA_3_8B

GIB = 1 << 30
CONFIGS = {"llama": LLAMA_3_8B, "gemma": GEMMA_3_4B}


def planned(name: str, version: str, length: int = 8192) -> Planned:
    model = read_model(CONFIGS[name], name)
    return prepare(
        model, Settings(version=version, dtype="bfloat16", max_model_len=length, max_num_batched_tokens=2048)
    )


def given_bytes(size: float) -> Figure:
    return Figure(size, "bytes", "given")


def of(found: tuple[Solution, ...], kind: str) -> Solution | None:
    return next((one for one in found if one.kind == kind), None)


def works(plan: Planned, size: float, length: int, concurrency: float) -> bool:
    held = pool(plan.layout, size, max_model_len=length, max_num_batched_tokens=2048)
    return bool(held.admitted and held.serves and held.max_concurrency.value >= concurrency - 1e-9)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(["llama", "gemma"]), st.sampled_from(["0.9.2", "0.13.0", "0.17.1", "0.22.1", "0.33.0"]),
    st.floats(0.1, 60), st.integers(1, 60_000), st.sampled_from([1.0, 2.0, 7.5]),
)  # fmt: skip
def test_what_is_named_works_and_a_byte_or_a_token_more_does_not(
    name: str, version: str, gib: float, length: int, concurrency: float
) -> None:
    plan = planned(name, version)
    found = solve_plan(plan, given_bytes(gib * GIB), Want(length=length, concurrency=concurrency))
    fits = works(plan, gib * GIB, length, concurrency)
    assert (of(found, "fits") is not None) is fits
    longest = of(found, "length")
    if longest:
        tokens = int(longest.value or 0)
        assert works(plan, gib * GIB, tokens, concurrency)
        ceiling = plan.model.max_position_embeddings
        assert tokens == ceiling or not works(plan, gib * GIB, tokens + 1, concurrency)
    fixed = of(found, "kv_memory")
    if fixed:
        size = int(fixed.value or 0)
        assert works(plan, size, length, concurrency)
        assert not works(plan, size - 1, length, concurrency)
        assert fixed.change == f"--kv-cache-memory-bytes {size}"
    assert (fixed is None) is (fits or version == "0.9.2")


@settings(max_examples=15, deadline=None)
@given(st.integers(10, 140), st.integers(30, 90), st.floats(0.2, 30), st.integers(1, 60))
def test_the_smallest_share_gives_the_bytes(total: int, percent: int, rest: float, times: int) -> None:
    plan = planned("llama", "0.17.1")
    left = total * percent / 100 - rest
    card = Card(given_bytes(total * GIB), percent / 100)
    found = solve_plan(plan, given_bytes(left * GIB), Want(concurrency=times), card)
    share = of(found, "utilization")
    if share:
        assert share.value is not None
        assert works(plan, (total * share.value - rest) * GIB, 8192, times)
        assert not works(plan, (total * (share.value - 0.0101) - rest) * GIB, 8192, times)
    elif of(found, "fits") is None:
        assert not works(plan, (total * 0.969 - rest) * GIB, 8192, times)
        assert of(found, "no_window") is not None


def test_gate_and_graphs_close_the_window() -> None:
    plan = planned("llama", "0.17.1")
    card = Card(given_bytes(24 * GIB), 0.9, free=given_bytes(21.8 * GIB))
    none = of(solve_plan(plan, given_bytes(1 * GIB), Want(concurrency=3), card), "no_window")
    assert none is not None
    assert "are free at start" in none.effect
    card = Card(given_bytes(24 * GIB), 0.9, graphs=given_bytes(2 * GIB))
    none = of(solve_plan(plan, given_bytes(1 * GIB), Want(concurrency=3), card), "no_window")
    assert none is not None
    assert "outside of the share" in none.effect


def test_a_card_is_taken_from_a_planned_memory() -> None:
    size = given_bytes(16 * GIB)
    memory = available_for_kv(
        version="0.17.1", total=given_bytes(24 * GIB), weights=size, activation=given_bytes(GIB), utilization=0.9,
        non_torch=given_bytes(0.5 * GIB),
    )  # fmt: skip
    card = card_of(memory)
    assert card is not None
    assert (card.total.value, card.utilization) == (24 * GIB, 0.9)
    assert card_of(None) is None
    parts = plan_parts(memory)
    for before, after in pairwise(parts[:-1]):
        assert after.start == pytest.approx(before.start + before.size.value)
    assert [one.kind for one in parts] == ["weights", "non_torch", "activations", "kv", "outside"]


@pytest.mark.parametrize(("capability", "offered"), [(0.0, True), (9.0, True), (8.0, False)])
def test_fp8_is_offered_where_the_card_can_and_it_is_enough(capability: float, offered: bool) -> None:
    found = solve_plan(planned("llama", "0.17.1"), given_bytes(1 * GIB), Want(concurrency=1.9, capability=capability))
    assert (of(found, "kv_dtype") is not None) is offered
    assert of(solve_plan(planned("llama", "0.17.1"), given_bytes(1 * GIB), Want(concurrency=3)), "kv_dtype") is None


def test_a_wish_beyond_any_machine_is_refused() -> None:
    with pytest.raises(UsageError, match="more than any machine"):
        solve_plan(planned("llama", "0.17.1"), given_bytes(GIB), Want(length=1 << 39, concurrency=1e9))
