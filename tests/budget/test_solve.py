"""Flags that are solved for must do what they say: put back into the sum they came from, and in the release's words."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oortriage.budget.log_budget import LogBudget
from oortriage.budget.relieve import relieve
from oortriage.budget.solution import Solution
from oortriage.budget.solve import Want, largest_length, solve
from tests.budget._logs import (
    GIB,
    available,
    banner,
    blocks_v0,
    budget,
    pool_v1,
    profile_v0,
    refused_v1,
    usage,
)

#: 28 layers x 4 KV heads x 128 x 2 (K, V) x 2 bytes x 16 tokens: a block of Qwen2-7B.
BLOCK = 28 * 4 * 128 * 2 * 2 * 16
CPU_BLOCKS = 4 * GIB // BLOCK


def of(found: LogBudget, kind: str, want: Want | None = None) -> Solution | None:
    return next((one for one in solve(found, want) if one.kind == kind), None)


def v0(total: float, share: float, rest: float, length: int) -> LogBudget:
    """A V0 log of a card of ``total`` GiB of which ``rest`` GiB are no KV cache."""
    left = total * share - rest
    blocks = max(0, math.floor(left * GIB / BLOCK))
    tail = f"ValueError: The model's max seq len ({length}) is larger than the maximum number of tokens that can be stored "
    tail += f"in KV cache ({blocks * 16}). Try"
    return budget(
        banner("0.7.3", length, "V0") + profile_v0(total, share, rest - 0.5, 0.1, 0.4, left)
        + blocks_v0(blocks, CPU_BLOCKS) + tail
    )  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(
    total=st.integers(8, 140),
    percent=st.integers(30, 90),
    rest=st.integers(100, 9000),
    length=st.integers(2048, 200000),
)
def test_the_smallest_share_works_and_a_hundredth_less_may_not(
    total: int, percent: int, rest: int, length: int
) -> None:
    rest_gib = rest / 100
    assume(rest_gib < total)
    found = v0(float(total), percent / 100, rest_gib, length)
    tokens = found.value("kv_tokens")
    one, none = of(found, "utilization"), of(found, "no_window")
    need = math.ceil(length / 16) * BLOCK / GIB
    if tokens is not None and tokens < length:
        if one:
            assert one.value is not None
            assert total * one.value - rest_gib >= need - 0.03
            # Never much more than what is needed: a hundredth for rounding up, and the bounds of the printed figures.
            assert total * (one.value - 0.011) - rest_gib < need + 0.05 + need * 0.001
            assert one.change == f"--gpu-memory-utilization {one.value:g}"
        else:
            assert none is not None
            assert total * 0.97 - rest_gib < need + 0.05 + need * 0.001


def test_no_window_names_both_ends() -> None:
    found = v0(8.0, 0.7, 6.65, 100000)
    none = of(found, "no_window")
    assert none is not None
    assert none.change == ""
    assert "no --gpu-memory-utilization works" in none.effect
    assert (none.value or 0) > 1


def test_the_start_gate_closes_the_window() -> None:
    """0.90 needs 5.0 GiB more of 24, and only 21.7 GiB are free at start: needed 1.1, allowed 0.90."""
    text = (
        banner("0.17.1", 65536)
        + "DEBUG Initial free memory: 21.7 GiB; Requested memory: 0.9 (util), 21.6 GiB\n"
        + available("3.0")
        + refused_v1(65536, "5.0", "3.0", 39312)
    )
    none = of(budget(text), "no_window")
    assert none is not None
    assert none.provenance == "estimated"  # nothing says that each token takes the same
    assert "21.70 GiB of 24.00 GiB were free at start" in none.effect


def test_graphs_outside_of_the_share_close_it_too_before_0_20() -> None:
    text = (
        banner("{}", 65536)
        + "DEBUG Initial free memory: 23.9 GiB; Requested memory: 0.9 (util), 21.6 GiB\n"
        + "INFO Graph capturing finished in 20 secs, took 1.50 GiB\n"
        + available("3.0")
        + refused_v1(65536, "4.5", "3.0", 39312)
    )
    older, newer = budget(text.replace("v{}", "v0.17.1")), budget(text.replace("v{}", "v0.22.1"))
    assert "CUDA graphs (1.50 GiB)" in (of(older, "no_window") or Solution("fits", "", "", "derived")).effect
    assert of(newer, "utilization") is not None


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40000), st.integers(1, 64))
def test_the_longest_length_fits_as_often_as_asked(blocks: int, times: int) -> None:
    text = banner("0.17.1", 4096) + available("5.0") + pool_v1(blocks * 16, 4096, blocks * 16 / 4096)
    found = largest_length(budget(text), times)
    if found is None:
        return
    length, _, _ = found
    assert math.ceil(length / 16) * times <= blocks
    assert math.ceil((length + 16) / 16) * times > blocks


def test_v0_admits_a_length_of_all_its_tokens_and_0_30_one_block_less() -> None:
    old = budget(banner("0.7.3", 4096, "V0") + blocks_v0(229, 512) + "vllm serve m --block-size 16")
    assert largest_length(old) == (3664, "derived", "the tokens of the pool")
    new = budget(banner("0.30.0", 2048) + available("1.0") + pool_v1(3664, 2048, 3664 / 2048))
    assert largest_length(new)[0] == 3648  # type: ignore[index]


def test_the_engines_own_estimate_stands_before_a_quotient() -> None:
    assert largest_length(budget(refused_v1(221000, "10.12", "5.59", 122080))) == (
        122080, "derived", "the engine's own estimate",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("version", "kinds"),
    [
        ("0.9.2", {"length", "kv_dtype", "utilization"}),
        ("0.10.2", {"length", "kv_dtype", "utilization", "kv_memory"}),
        ("0.14.1", {"length", "kv_dtype", "utilization", "kv_memory", "auto"}),
    ],
)
def test_only_flags_of_the_release_are_offered(version: str, kinds: set[str]) -> None:
    text = (
        banner(version, 65536)
        + "DEBUG Initial free memory: 23.5 GiB; Requested memory: 0.8 (util), 19.2 GiB\n"
        + available("3.0")
        + refused_v1(65536, "5.0", "3.0", 39312)
    )
    assert {one.kind for one in solve(budget(text))} == kinds


def test_fixed_memory_is_the_need_in_bytes() -> None:
    text = (
        banner("0.17.1", 65536)
        + "DEBUG Initial free memory: 23.5 GiB; Requested memory: 0.8 (util), 19.2 GiB\n"
        + available("3.0")
        + refused_v1(65536, "5.0", "3.0", 39312)
    )
    one = of(budget(text), "kv_memory")
    assert one is not None
    size = int(one.change.removeprefix("--kv-cache-memory-bytes "))
    assert 5.0 * GIB <= size <= 5.01 * GIB


@pytest.mark.parametrize(
    ("capability", "dtype", "offered"),
    [
        (0, "auto", True),
        (8.9, "auto", True),
        (9.0, "bfloat16", True),
        (8.6, "auto", False),
        (7.5, "auto", False),
        (9.0, "fp8", False),
    ],
)
def test_fp8_is_offered_where_the_card_can(capability: float, dtype: str, offered: bool) -> None:
    text = banner("0.17.1", 65536, kv_cache_dtype=dtype) + available("3.0") + refused_v1(65536, "5.0", "3.0", 39312)
    one = of(budget(text), "kv_dtype", Want(capability=capability))
    assert (one is not None) is offered
    if one:
        assert "2.50 GiB" in one.effect


def test_fp8_is_not_offered_where_half_is_still_too_much() -> None:
    assert of(budget(refused_v1(65536, "9.0", "3.0")), "kv_dtype") is None


def test_a_wish_beyond_the_log_is_scaled() -> None:
    """40,960 tokens in 5 GiB: 131,072 bytes each; 10 requests of 8,192 need 10 GiB."""
    text = (
        banner("0.17.1", 8192)
        + "DEBUG Initial free memory: 79.0 GiB; Requested memory: 0.5 (util), 40.0 GiB\n"
        + available("5.0")
        + pool_v1(40960, 8192, 5.0)
    )
    found = budget(text)
    assert of(found, "fits", Want(length=8192, concurrency=4)) is not None
    one = of(found, "utilization", Want(length=8192, concurrency=10))
    assert one is not None
    assert one.value == pytest.approx(0.57)  # 0.5 + 5 / 80, rounded up
    assert one.provenance == "derived"
    shorter = of(found, "length", Want(length=8192, concurrency=10))
    assert shorter is not None
    assert shorter.change == "--max-model-len 4096"


def test_a_smaller_share_that_still_works_is_named() -> None:
    text = (
        banner("0.17.1", 8192)
        + "DEBUG Initial free memory: 79.0 GiB; Requested memory: 0.9 (util), 72.0 GiB\n"
        + available("40.0")
        + pool_v1(327680, 8192, 40.0)
    )
    one = of(budget(text), "utilization")
    assert one is not None
    assert one.value == pytest.approx(0.42)  # 0.9 - (40 - 1) / 80 = 0.4125, rounded up


def test_a_full_pool_says_how_many_requests_fit() -> None:
    found = budget(banner("0.17.1") + available("8.0") + pool_v1(64000, 8192, 7.81) + usage(96.0, 48))
    one = of(found, "requests")
    assert one is not None
    assert one.change == "--max-num-seqs 50"
    assert of(budget(available("8.0") + usage(50.0, 48)), "requests") is None


def test_an_allocation_beside_the_pool_lowers_the_share_by_what_is_missing() -> None:
    """2.0 GiB wanted, 0.5 free, 24 GiB: 1.5 / 24 = 0.0625, so 0.90 becomes 0.83."""
    found = budget(profile_v0(24.0, 0.9, 10.0, 0.2, 1.0, 10.4))
    one = relieve(found, 2.0 * GIB, 0.5 * GIB, 24.0 * GIB)
    assert one is not None
    assert one.change == "--gpu-memory-utilization 0.83"
    none = relieve(budget(profile_v0(24.0, 0.9, 20.0, 0.2, 1.0, 0.4)), 2.0 * GIB, 0.5 * GIB, 24.0 * GIB)
    assert none is not None
    assert none.kind == "no_window"
    assert relieve(found, 0.5 * GIB, 2.0 * GIB, 24.0 * GIB) is None
    assert relieve(found, 30.0 * GIB, 2.0 * GIB, 24.0 * GIB) is None
