"""The sums of each release, done by hand here and by the product there; deviations come with the rule behind them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.budget.log_budget import Check, LogBudget
from tests.budget._logs import (
    GIB,
    available,
    banner,
    blocks_v0,
    budget,
    gate,
    pool_v1,
    profile_v0,
    refused_v1,
    usage,
)


def check(found: LogBudget, what: str) -> Check:
    (one,) = [one for one in found.checks if one.what == what]
    return one


def test_a_public_v0_log_comes_out_term_by_term() -> None:
    """LlamaFactory#7234: 23.64 x 0.90 - 15.63 - 0.09 - 1.37 = 4.19; 4,896 x 16 = 78,336; / 128,000 = 0.61."""
    found = budget(
        profile_v0(23.64, 0.90, 15.63, 0.09, 1.37, 4.18)
        + blocks_v0(4896, 4681)
        + "INFO 03-09 19:20:55 executor_base.py:116] Maximum concurrency for 128000 tokens per request: 0.61x\n"
        + "ValueError: The model's max seq len (128000) is larger than the maximum number of tokens that can be stored in "
        "KV cache (78336). Try increasing `gpu_memory_utilization`"
    )
    assert all(one.agrees for one in found.checks)
    left = check(found, "left for the KV cache")
    assert left.computed == pytest.approx((21.28 - 15.63 - 0.09 - 1.37) * GIB, abs=4)
    assert left.deviation == pytest.approx(-0.01 * GIB, abs=4)
    blocks = check(found, "blocks of the pool")
    assert blocks.low <= 4896 <= blocks.high
    assert (found.value("block_size"), found.value("kv_tokens")) == (16, 78336)
    assert check(found, "requests of full length").computed == pytest.approx(0.612)


@settings(max_examples=40, deadline=None)
@given(
    total=st.floats(4, 200), share=st.sampled_from([0.5, 0.7, 0.9, 0.95]), weights=st.floats(0.1, 100),
    other=st.floats(0, 3), peak=st.floats(0, 20),
)  # fmt: skip
def test_any_log_of_v0_agrees_with_itself(
    total: float, share: float, weights: float, other: float, peak: float
) -> None:
    """Every figure rounded by itself, as the engine prints it: the bounds allow for just that."""
    left = total * share - weights - other - peak
    found = budget(profile_v0(total, share, weights, other, peak, left))
    assert check(found, "left for the KV cache").agrees
    assert check(found, "the engine's share of the card").agrees


@settings(max_examples=40, deadline=None)
@given(st.floats(0.06, 4))
def test_a_figure_that_is_off_is_told(off: float) -> None:
    found = budget(profile_v0(24.0, 0.9, 10.0, 0.5, 1.0, 10.1 + off))
    one = check(found, "left for the KV cache")
    assert not one.agrees
    assert one.deviation == pytest.approx(off * GIB, abs=0.02 * GIB)
    assert one.why


def test_0_6_4_counts_the_memory_of_others() -> None:
    """vllm#10439: 23.64 x 0.03 - 2.36 - 13.12 = -14.77."""
    found = budget(
        "INFO worker.py:232] Memory profiling results: total_gpu_memory=23.64GiB initial_memory_usage=14.11GiB "
        "peak_torch_memory=2.36GiB memory_usage_post_profile=14.15GiB non_torch_memory=13.12GiB kv_cache_size=-14.77GiB "
        "gpu_memory_utilization=0.03"
    )
    one = check(found, "left for the KV cache")
    assert one.agrees
    assert one.computed == pytest.approx(23.64 * 0.03 * GIB - 15.48 * GIB, abs=4)


@pytest.mark.parametrize(
    ("version", "left", "agrees"), [("0.19.1", 5.0, True), ("0.22.1", 3.8, True), ("0.22.1", 5.0, False)]
)
def test_graphs_are_in_the_budget_from_0_20_on(version: str, left: float, agrees: bool) -> None:
    """21.2 - 15.0 - 0.2 - 1.0 = 5.0, and 1.2 GiB of graphs less from 0.20.0 on."""
    found = budget(
        banner(version)
        + "DEBUG Memory profiling takes 3.51 seconds. Total non KV cache memory: 16.20GiB; torch peak memory increase: "
        "1.00GiB; non-torch forward increase memory: 0.20GiB; weights memory: 15.00GiB.\n"
        "DEBUG Initial free memory: 23.0 GiB; Requested memory: 0.9 (util), 21.2 GiB\n"
        "INFO Estimated CUDA graph memory: 1.20 GiB total\n" + available(left)
    )
    assert check(found, "left for the KV cache").agrees is agrees


def test_0_28_takes_off_what_the_driver_saw_taken() -> None:
    """71.27 - 61.41 - 3.14 = 6.72: the bill's activation peak holds the 1.12 GiB that graphs were taken for."""
    found = budget(
        banner("0.28.0")
        + "INFO Estimated CUDA graph memory: 1.12 GiB total\n"
        + available("6.72")
        + "INFO Free memory on device (78.51/79.18 GiB) on startup. Desired GPU memory utilization is (0.9, 71.27 GiB). Actual "
        "usage is 61.41 GiB for consumed memory (weights + non-torch), 3.14 GiB for peak activation, and 0.94 GiB for "
        "CUDAGraph memory."
    )
    assert check(found, "left for the KV cache").agrees
    assert [one.kind for one in found.parts] == ["weights", "activations", "kv", "outside"]


def test_the_profile_run_s_line_of_0_28_keeps_graphs_apart() -> None:
    """71.27 - 61.41 - 2.02 - 1.12 = 6.72."""
    found = budget(
        banner("0.28.0")
        + "INFO Estimated CUDA graph memory: 1.12 GiB total\n"
        + "DEBUG worker requested memory: 71.27GiB\n"
        + "DEBUG Memory profiling takes 3.51 seconds. Total non KV cache memory: 63.43GiB; torch peak memory increase: 2.02GiB; "
        "total consumed (from mem_get_info): 61.41GiB; weights memory: 61.03GiB.\n" + available("6.72")
    )
    assert check(found, "left for the KV cache").agrees
    assert [one.kind for one in found.parts] == ["weights", "activations", "graphs", "kv"]


def test_the_engine_s_advice_is_its_own_sum_less_150_mib() -> None:
    used = (14.96 + 1.19 + 0.27 + 0.55) * GIB
    fit, full = int(21.22 * GIB - used) - 150 * 2**20, int(23.2 * GIB - used) - 150 * 2**20
    found = budget(
        banner("0.10.2")
        + "INFO [gpu_worker.py:391] Free memory on device (23.2/23.58 GiB) on startup. Desired GPU memory utilization is (0.9, "
        "21.22 GiB). Actual usage is 14.96 GiB for weight, 1.19 GiB for peak activation, 0.27 GiB for non-torch memory, and "
        f"0.55 GiB for CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory={fit}` (4.10 GiB) to fit "
        f"into requested memory, or `--kv-cache-memory={full}` (6.08 GiB) to fully utilize gpu memory. Current kv cache memory "
        "in use is 4.8 GiB.\n" + available("4.8")
    )
    assert check(found, "KV memory that fits the share, by the engine").agrees
    assert check(found, "left for the KV cache").agrees


def test_a_hybrid_model_is_told_by_its_concurrency() -> None:
    """The worked example of Gemma 3: 29,952 tokens printed, 7.85 requests of 8,192 fit."""
    found = budget(banner("0.17.1") + available("4.0") + pool_v1(29952, 8192, 7.85))
    one = check(found, "requests of full length")
    assert not one.agrees
    assert "0.9.2 to 0.20.0" in one.why
    assert found.value("kv_tokens_by_concurrency") == pytest.approx(7.85 * 8192)


def test_newer_releases_print_the_concurrency_as_tokens() -> None:
    found = budget(banner("0.22.1", 4096) + available("6.18") + pool_v1(230676, 4096, 56.32))
    assert check(found, "requests of full length").agrees


def test_tokens_that_are_not_blocks_name_the_rule() -> None:
    found = budget(banner("0.17.1") + "vllm serve m --block-size 16\n# GPU blocks: 1000\n" + pool_v1(8000, 8192, 0.98))
    one = check(found, "tokens of the pool")
    assert not one.agrees
    assert "groups" in one.why


def test_the_card_is_found_from_the_share_of_the_graphs() -> None:
    """vllm#53013: 3.61 GiB are 0.0762 of the card, so it has 47.4 GiB."""
    found = budget(
        banner("0.22.1")
        + "INFO Estimated CUDA graph memory: 3.61 GiB total\n" + available("-0.52")
        + "INFO CUDA graph memory profiling is enabled (default since v0.21.0). The current --gpu-memory-utilization=0.8500 is "
        "equivalent to --gpu-memory-utilization=0.7738 without CUDA graph memory profiling.\n"
    )  # fmt: skip
    card = found.figures["capacity_bytes"]
    assert card.provenance == "estimated"
    assert card.low is not None
    assert card.high is not None
    assert card.low < 3.61 / 0.0762 * GIB < card.high


def test_so_it_is_from_what_0_18_would_take() -> None:
    """vllm#39559: 1.62 GiB are 0.0690 of the card, an RTX 3090 of 23.5 GiB; nothing was taken off yet."""
    found = budget(
        banner("0.19.0")
        + "vllm serve m --gpu-memory-utilization 0.9 --max-model-len 8192\nINFO Estimated CUDA graph memory: 1.62 GiB total\n"
        + "INFO [gpu_worker.py:470] In v0.19, CUDA graph memory profiling will be enabled by default. To try it now, set "
        "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1 and increase --gpu-memory-utilization from 0.9000 to 0.9690 to maintain the "
        "same effective KV cache size.\n"
    )
    card = found.figures["capacity_bytes"]
    assert card.value == pytest.approx(1.62 / 0.069 * GIB)
    assert found.graphs_counted is False


def test_the_engines_own_estimate_is_held_against_the_quotient() -> None:
    """vllm#25350: 221,000 x 5.59 / 10.12 = 122,074 against 122,080 printed."""
    found = budget(refused_v1(221000, "10.12", "5.59", 122080))
    assert check(found, "the estimated length").agrees
    assert found.value("kv_bytes_per_token") == pytest.approx(10.12 * GIB / 221000, rel=1e-6)
    off = budget(refused_v1(221000, "10.12", "5.59", 160000))
    assert "window" in check(off, "the estimated length").why


def test_a_flag_that_sets_the_memory_stands_before_the_sum() -> None:
    found = budget("non-default args: {'kv_cache_memory_bytes': 2147483648}\n" + banner("0.22.1") + available("2.0"))
    assert found.figures["kv_available_bytes"].value == 2147483648
    assert "set by the flag" in found.figures["kv_available_bytes"].how
    assert found.notes


def test_blocks_set_by_hand_stand_before_those_found() -> None:
    found = budget("vllm serve m --block-size 16\nINFO Overriding num_gpu_blocks=2103 with num_gpu_blocks_override=512")
    assert (found.value("kv_blocks"), found.value("kv_tokens")) == (512, 8192)


def test_the_pool_in_use_is_held_against_what_was_set_aside() -> None:
    found = budget(banner("0.17.1") + available("8.0") + pool_v1(64000, 8192, 7.81) + usage(2.5, 3) + usage(25.0, 30))
    assert found.use is not None
    assert found.use.peak_share == 0.25
    assert found.use.used_bytes is not None
    assert found.use.idle_bytes is not None
    assert found.use.used_bytes.value == pytest.approx(2 * GIB, abs=2)
    assert found.use.idle_bytes.value == pytest.approx(6 * GIB, abs=2)
    assert found.use.used_tokens is not None
    assert found.use.used_tokens.value == 16000


def test_a_refused_start_shows_what_was_taken_before() -> None:
    found = budget(gate(6.44, 11.63, 0.9))
    sizes = {one.kind: one.size.value / GIB for one in found.parts}
    assert sizes == pytest.approx({"others": 5.19, "other": 10.47, "missing": 4.03}, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    total=st.floats(4, 200), share=st.floats(0.1, 0.99), weights=st.floats(0.5, 150), other=st.floats(0.1, 3),
    peak=st.floats(0.1, 20),
)  # fmt: skip
def test_the_pieces_of_a_card_lie_end_to_end(
    total: float, share: float, weights: float, other: float, peak: float
) -> None:
    """What the share holds begins where the piece before ends; what is over it ends where the last one does."""
    found = budget(profile_v0(total, share, weights, other, peak, total * share - weights - other - peak))
    used = [one for one in found.parts if one.kind not in ("missing", "outside")]
    for before, after in pairwise(used):
        assert after.start == pytest.approx(before.start + before.size.value)
    over = [one for one in found.parts if one.kind == "missing"]
    for one in over:
        assert one.start + one.size.value == pytest.approx(used[-1].start + used[-1].size.value)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([
    banner("0.17.1"), banner("0.6.3", 0), banner("9" * 30), profile_v0(0, 0, 0, 0, 0, 0), profile_v0(-1, 0.5, 1e9, 0, 0, -1e9),
    blocks_v0(0, 0), blocks_v0(10**15, 1), available("0.0"), available("-999999999999"), available("9" * 12),
    pool_v1(0, 1, 0), pool_v1(10**15, 0, 0), pool_v1(5, 10**12, 9e9), refused_v1(0, "0.0", "0.0", 0),
    refused_v1(10**9, "1e9", "-5.0", 1), gate(0, 0, 0), gate(99, 1, 7.5), usage(999.9, 0), usage(0, 10**9),
    "vllm serve m --block-size 0", "--max-model-len 0", "kv_cache_memory_bytes=999999999999999",
    "INFO Multiplying the GPU KV cache size by the dcp_world_size 0.", "non-default args: {'max_model_len': -1}",
])))  # fmt: skip
def test_no_log_breaks_it(lines: list[str]) -> None:
    from oortriage.budget.solve import Want, solve

    found = budget("\n".join(lines))
    for want in (Want(), Want(length=10**9), Want(concurrency=1e9), Want(length=1, capability=9.0)):
        for one in solve(found, want):
            assert one.effect
            assert one.kind in ("fits", "no_window") or one.change
