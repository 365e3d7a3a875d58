"""The serving engine's KV pool: its sums redone by hand, and remedies that fit the release."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.api import Analyzer
from tests.triage.messages import GIB, MIB, NO_BLOCKS, PLAIN
from tests.triage.reading import changes, documented_causes, utilizations

CAUSES = documented_causes()["kv_cache"]


def profile_of_v0(total: float, fraction: float, weights: float, other: float, peak: float, left: float) -> str:
    """Print the memory profile of vLLM 0.6.6 to 0.10 (V0)."""
    return (
        "INFO 02-26 09:54:05 worker.py:267] Memory profiling takes 6.50 seconds\n"
        f"INFO 02-26 09:54:05 worker.py:267] the current vLLM instance can use total_gpu_memory "
        f"({total:.2f}GiB) x gpu_memory_utilization ({fraction:.2f}) = {total * fraction:.2f}GiB\n"
        f"INFO 02-26 09:54:05 worker.py:267] model weights take {weights:.2f}GiB; non_torch_memory "
        f"takes {other:.2f}GiB; PyTorch activation peak memory takes {peak:.2f}GiB; the rest of "
        f"the memory reserved for KV Cache is {left:.2f}GiB.\n"
    )


def too_long_v0(length: int, tokens: int) -> str:
    return (
        f"ValueError: The model's max seq len ({length}) is larger than the maximum number of "
        f"tokens that can be stored in KV cache ({tokens}). Try increasing "
        "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
    )


def too_long_v1(length: int, needed: str, available: str, estimate: int | None = None) -> str:
    """The V1 wording, with upstream's ``models's`` and its bracket that never closes."""
    guess = f"Based on the available memory, the estimated maximum model length is {estimate}. " if estimate else ""
    return (
        f"ValueError: To serve at least one request with the models's max seq len ({length}), "
        f"({needed} GiB KV cache is needed, which is larger than the available KV cache memory "
        f"({available} GiB). {guess}Try increasing `gpu_memory_utilization` or decreasing "
        "`max_model_len` when initializing the engine.\n"
    )


def engine(version: str, **config: object) -> str:
    settings_ = ", ".join(f"{name}={value}" for name, value in config.items())
    return (
        f"INFO 03-01 10:00:00 [core.py:76] Initializing a V1 LLM engine (v{version}) with config: "
        f"model='org/m', dtype=torch.float16, {settings_}\n"
    )


# -------------------------------------------------------------------------------- zero blocks


def test_the_budget_of_13882_is_redone_term_by_term(analyzer: Analyzer) -> None:
    """8.00 x 0.70 - 5.20 - 0.03 - 1.42 = -1.05 GiB; 0.90 leaves about +0.55."""
    assert pytest.approx(-1.05) == 8.00 * 0.70 - 5.20 - 0.03 - 1.42
    assert pytest.approx(0.55) == 8.00 * 0.90 - 5.20 - 0.03 - 1.42
    diagnosis = analyzer.text(profile_of_v0(8.00, 0.70, 5.20, 0.03, 1.42, -1.05) + NO_BLOCKS)
    assert (diagnosis.resource, diagnosis.cause) == ("kv_cache", "no_blocks")
    assert diagnosis.numbers["kv_available_bytes"] == round(-1.05 * GIB)
    assert "8.00 x 0.70 - 5.20" in diagnosis.summary
    assert "= -1.05 GiB" in diagnosis.summary
    first = diagnosis.prescriptions[0]
    assert first.change == "--gpu-memory-utilization 0.90"
    assert "1.60 GiB" in first.effect  # 0.20 x 8.00
    assert f"{0.55 * GIB / MIB:.2f} MiB" in first.effect


@settings(deadline=None, max_examples=80)
@given(
    total=st.integers(400, 14000),
    percent=st.integers(30, 98),
    other=st.integers(0, 200),
    peak=st.integers(10, 3000),
    missing=st.integers(0, 500),
)
def test_any_printed_budget_is_redone_and_the_fraction_offered_is_enough(
    total: int, percent: int, other: int, peak: int, missing: int, analyzer: Analyzer
) -> None:
    """All sizes in hundredths of a GiB, so that the log prints them without loss."""
    budget = total * percent / 100
    weights = round(budget) + missing - other - peak
    if weights <= 0:
        return
    left = (total * percent - 100 * (weights + other + peak)) / 10000
    terms = (total / 100, percent / 100, weights / 100, other / 100, peak / 100)
    diagnosis = analyzer.text(profile_of_v0(*terms, left) + NO_BLOCKS)
    assert diagnosis.cause == "no_blocks"
    summed = diagnosis.summary.rpartition("= ")[2].removesuffix(" GiB.")
    assert float(summed) == pytest.approx(left, abs=0.0051)
    computed = [one for one in diagnosis.prescriptions if "the budget grows by" in one.effect]
    if percent < 94 and (total * percent + 100 * missing + 5100) < 97 * total:
        assert computed, "there is room for half a GiB below 0.97"
    for one in computed:
        fraction = float(one.change.split()[1])
        assert percent / 100 < fraction <= 0.97
        after = (total * round(fraction * 100) / 100 - weights - other - peak) / 100
        assert after > 0.48, "less than half a GiB serves nothing"


@pytest.mark.parametrize("now", [0.95, 0.96, 0.98])
def test_zero_blocks_near_the_whole_card_are_not_met_by_a_larger_fraction(now: float, analyzer: Analyzer) -> None:
    """Qwen3#12: 28 GiB of weights on a 32 GiB card at 0.95. Raising was the bad advice."""
    log = profile_of_v0(32.0, now, 29.0, 0.3, 4.0, 32.0 * now - 33.3) + NO_BLOCKS
    diagnosis = analyzer.text(log)
    assert diagnosis.cause == "no_blocks"
    assert any("raising" in one.advice for one in diagnosis.will_not_help)
    assert utilizations(diagnosis) == []


def test_no_fraction_is_offered_that_the_card_does_not_have(analyzer: Analyzer) -> None:
    """4 GiB are missing on 8 GiB at 0.7: even the whole card would not do."""
    log = profile_of_v0(8.0, 0.7, 8.2, 0.2, 1.2, -4.0) + NO_BLOCKS
    assert utilizations(analyzer.text(log)) == []


def test_lowering_the_fraction_is_warned_of(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(NO_BLOCKS)
    assert any(one.advice.startswith("lowering") for one in diagnosis.will_not_help)
    assert "Available KV cache memory" in " ".join(diagnosis.missing)


@pytest.mark.parametrize(
    ("version", "offered"),
    [("0.17.1", False), ("0.19.1", False), ("0.20.0", True), ("0.22.1", True), ("0.33.0", True)],
)
def test_graph_estimate_is_given_back_only_where_it_is_taken(version: str, offered: bool, analyzer: Analyzer) -> None:
    """The estimate of CUDA graphs is part of the budget from vLLM 0.20.0 on."""
    diagnosis = analyzer.text(
        engine(version)
        + "INFO 03-01 10:00:01 [gpu_worker.py:400] Estimated CUDA graph memory: 1.50 GiB total\n"
        + "INFO 03-01 10:00:01 [gpu_worker.py:424] Available KV cache memory: -0.34 GiB\n"
        + NO_BLOCKS
    )
    switch = "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0"
    found = [one for one in diagnosis.prescriptions if one.change == switch]
    assert bool(found) is offered
    if found:
        assert "1.50 GiB" in found[0].effect
    assert "-348.16 MiB" in diagnosis.summary  # -0.34 GiB


def test_more_cards_are_never_fewer_than_now(analyzer: Analyzer) -> None:
    """With tensor parallel size 4, a remedy that says 2 puts twice the weights on each card."""
    diagnosis = analyzer.text(engine("0.17.1", tensor_parallel_size=4) + NO_BLOCKS)
    assert diagnosis.facts["tensor_parallel_size"].value == 4
    sizes = [
        int(change.split()[1].rstrip(","))
        for change in changes(diagnosis)
        if change.startswith("--tensor-parallel-size")
    ]
    assert sizes
    assert min(sizes) > 4


@pytest.mark.parametrize(
    ("flag", "name", "now"),
    [("--max-num-seqs", "max_num_seqs", 32), ("--max-num-batched-tokens", "max_num_batched_tokens", 1024)],
)
def test_a_smaller_batch_is_never_larger_than_now(flag: str, name: str, now: int, analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(f"INFO non-default args: {{'{name}': {now}}}\n{NO_BLOCKS}")
    assert diagnosis.facts[name].value == now
    for change in changes(diagnosis):
        words = change.split()
        if words[0] == flag and words[1].isdigit():
            assert int(words[1]) < now


# ---------------------------------------------------------------------- one request too long

TOO_LONG_V0 = [
    ("vllm#2418", 4096, 3664),
    ("LlamaFactory#6472", 4096, 1216),
    ("GPTFuzz#27", 4096, 1792),
    ("QAnything#289", 4096, 3792),
    ("api-for-open-llm#259", 32768, 15248),
    ("LlamaFactory#7234", 128000, 78336),
    ("DeepSeek-V2#83", 163840, 13360),
    ("gpustack#1800", 8192, 2400),
    ("vllm#10517", 29000, 23648),
]


@pytest.mark.parametrize(("name", "length", "tokens"), TOO_LONG_V0, ids=str)
def test_the_v0_engine_holds_whole_blocks_of_16_tokens(name: str, length: int, tokens: int, analyzer: Analyzer) -> None:
    assert tokens % 16 == 0, name
    diagnosis = analyzer.text(too_long_v0(length, tokens))
    assert (diagnosis.resource, diagnosis.cause) == ("kv_cache", "max_len_too_long")
    assert f"{length - tokens:,} short" in diagnosis.summary
    assert changes(diagnosis)[0] == f"--max-model-len {tokens}"


def test_blocks_of_2418_are_its_tokens(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(
        "INFO 01-11 10:00:00 llm_engine.py:275] # GPU blocks: 229, # CPU blocks: 512\n" + too_long_v0(4096, 229 * 16)
    )
    assert diagnosis.facts["kv_blocks"].value == 229
    assert diagnosis.numbers["kv_tokens"] == 3664
    assert "432 short" in diagnosis.summary


def test_blocks_of_10517_follow_from_its_budget(analyzer: Analyzer) -> None:
    """23.58 x 0.90 - 17.98 - 0.35 = 2.89 GiB are 1478 blocks of 2 MiB, 23,648 tokens.

    Length is not monotone there: 35k and 45k start, because chunked prefill lowers the peak.
    """
    assert f"{23.58 * 0.90 - 17.98 - 0.35:.2f}" == f"{1478 * 2 * MIB / GIB:.2f}" == "2.89"
    diagnosis = analyzer.text("# GPU blocks: 1478, # CPU blocks: 2048\n" + too_long_v0(29000, 1478 * 16))
    assert diagnosis.facts["kv_blocks"].value * 16 == diagnosis.numbers["kv_tokens"] == 23648
    assert "5,352 short" in diagnosis.summary
    assert "--enable-chunked-prefill" in changes(diagnosis)


def test_a_pool_that_was_sized_is_no_kv_failure_when_an_allocation_fails_later(analyzer: Analyzer) -> None:
    """vllm#11251: 15.77 x 0.90 - 7.51 - 0.39 - 2.53 = 3.76 GiB of KV; serving runs out beside it."""
    assert f"{15.77 * 0.90 - 7.51 - 0.39 - 2.53:.2f}" == "3.76"
    diagnosis = analyzer.text(profile_of_v0(15.77, 0.90, 7.51, 0.39, 2.53, 3.76) + PLAIN)
    assert diagnosis.resource == "device_memory"
    assert diagnosis.facts["kv_available_bytes"].value == round(3.76 * GIB)
    assert diagnosis.facts["budget_bytes"].value == round(14.19 * GIB)


TOO_LONG_V1 = [
    # length, needed, available, estimate, missing
    ("vllm-rocm#5", 131072, "4.11", "4.00", 127776, "112.64 MiB"),  # 0.11 GiB
    ("LMCache#1372", 32768, "4.50", "3.58", 26032, "942.08 MiB"),  # 0.92 GiB
    ("vllm#25350", 221000, "10.12", "5.59", 122080, "4.53 GiB"),
    ("tpu-inference#223", 131072, "16.00", "0.71", 5632, "15.29 GiB"),
]


@pytest.mark.parametrize(
    ("name", "length", "needed", "available", "estimate", "missing"),
    TOO_LONG_V1,
    ids=str,
)
def test_the_v1_engine_names_needed_available_and_an_estimate(
    name: str,
    length: int,
    needed: str,
    available: str,
    estimate: int,
    missing: str,
    analyzer: Analyzer,
) -> None:
    diagnosis = analyzer.text(too_long_v1(length, needed, available, estimate))
    assert (diagnosis.resource, diagnosis.cause) == ("kv_cache", "max_len_too_long"), name
    assert f"{missing} short" in diagnosis.summary
    assert changes(diagnosis)[0] == f"--max-model-len {estimate}"
    # vllm#25350: measured at the failing length, so longer ones may fit.
    assert any("lower bound" in note for note in diagnosis.notes)


def test_without_an_estimate_the_length_is_scaled_down_to_whole_blocks(analyzer: Analyzer) -> None:
    """vllm#16118: 1,048,576 x 9.97 / 24.00 = 435,596; the block below it ends at 435,584."""
    diagnosis = analyzer.text(too_long_v1(1048576, "24.00", "9.97"))
    assert pytest.approx(435596, abs=1) == 1048576 * 9.97 / 24
    assert changes(diagnosis)[0] == "--max-model-len 435584"
    assert not any("lower bound" in note for note in diagnosis.notes)


@settings(deadline=None, max_examples=80)
@given(
    length=st.integers(64, 2_000_000),
    needed=st.integers(2, 60000),
    share=st.integers(1, 99),
    total=st.one_of(st.none(), st.integers(800, 18000)),
    percent=st.integers(10, 93),
)
def test_any_shortage_is_stated_and_what_is_offered_for_it_suffices(
    length: int, needed: int, share: int, total: int | None, percent: int, analyzer: Analyzer
) -> None:
    available = max(1, needed * share // 100)
    if available == needed:
        return
    log = too_long_v1(length, f"{needed / 100:.2f}", f"{available / 100:.2f}")
    if total is not None:
        log = (
            f"INFO Free memory on device ({total / 100:.2f}/{total / 100:.2f} GiB) on startup. "
            f"Desired GPU memory utilization is ({percent / 100}, {total * percent / 1e4:.2f} GiB)."
            f"\n{log}"
        )
    diagnosis = analyzer.text(log)
    assert diagnosis.cause in CAUSES
    assert diagnosis.numbers["kv_needed_bytes"] == round(needed * GIB / 100)
    assert diagnosis.numbers["kv_available_bytes"] == round(available * GIB / 100)
    offered = [one.split()[1] for one in changes(diagnosis) if one.startswith("--max-model-len ")]
    if offered and offered[0].isdigit():
        tokens = int(offered[0])
        assert tokens % 16 == 0
        assert tokens * needed <= length * available, "that length does not fit either"
        assert (tokens + 16) * needed >= length * available, "more than a block is given away"
    computed = [one for one in diagnosis.prescriptions if "missing" in one.effect]
    if computed and total is not None:
        fraction = utilizations(diagnosis)[0]
        gained = (fraction * 100 - percent) * total / 100
        assert fraction <= 0.97
        # A thousandth of a hundredth of the card is below what the log prints.
        assert gained >= (needed - available) - 1e-5 * total


@pytest.mark.parametrize(
    ("gpu", "offered"),
    [("NVIDIA GeForce RTX 4090", True), ("NVIDIA H100 80GB HBM3", True), ("Tesla T4", False)],
)
def test_an_fp8_cache_is_offered_only_to_cards_that_have_the_type(gpu: str, offered: bool, analyzer: Analyzer) -> None:
    """Triton's e4m3 needs sm_89; half of 6.00 GiB would fit in 4.00."""
    listing = f"GPU 0: {gpu} (UUID: GPU-5d0c1c8e-77aa-4d1b-9b0e-0d4f6a3e9a11)\n"
    diagnosis = analyzer.text(listing + too_long_v1(32768, "6.00", "4.00"))
    found = [one for one in diagnosis.prescriptions if one.change == "--kv-cache-dtype fp8"]
    assert bool(found) is offered
    if found:
        assert "3.00 GiB" in found[0].effect


def test_an_fp8_cache_is_not_offered_twice_over(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text("INFO non-default args: {'kv_cache_dtype': 'fp8'}\n" + too_long_v1(32768, "6.00", "4.00"))
    assert "--kv-cache-dtype fp8" not in changes(diagnosis)


def test_offloading_to_the_host_is_warned_of(analyzer: Analyzer) -> None:
    """LMCache#1372: the check counts the GPU's pool alone."""
    diagnosis = analyzer.text(too_long_v1(32768, "4.50", "3.58", 26032))
    assert any("LMCache" in one.advice for one in diagnosis.will_not_help)


@pytest.mark.parametrize(
    ("version", "offered"), [("0.8.5", False), ("0.13.0", False), ("0.14.1", True), ("0.20.2", True)]
)
def test_automatic_length_is_offered_from_the_release_that_has_it(
    version: str, offered: bool, analyzer: Analyzer
) -> None:
    """The message is cut before its figures, so there is no length to compute."""
    cut = too_long_v1(32768, "4.50", "3.58").partition(" KV cache is needed")[0]
    diagnosis = analyzer.text(f"{engine(version)}{cut}\n")
    assert diagnosis.cause == "max_len_too_long"
    assert ("--max-model-len auto" in changes(diagnosis)) is offered


# ---------------------------------------------------------------------------------- the rest


def test_the_pool_that_ran_out_by_pages_is_told_its_own_figures(analyzer: Analyzer) -> None:
    """sglang#4602: 148 sequences need 148 pages of 64 tokens; 2048 tokens are 32 pages."""
    assert (148 * 64, 2048 // 64) == (9472, 32)
    diagnosis = analyzer.text(
        "RuntimeError: Decode out of memory. Try to lower your batch size.\n"
        "Try to allocate 148 tokens.\nAvaliable tokens: 2048\n"
    )
    assert (diagnosis.resource, diagnosis.cause) == ("kv_cache", "pressure")
    assert "148 tokens" in diagnosis.summary
    assert "2,048" in diagnosis.summary
    # More than enough tokens are free: the size of a page is the lever.
    assert changes(diagnosis)[0] == "--page-size 1"


@pytest.mark.parametrize("text", [NO_BLOCKS, too_long_v0(4096, 3664), too_long_v1(64, "4.0", "2.0")])
def test_the_card_and_its_blocks_are_ruled_out(text: str, analyzer: Analyzer) -> None:
    ruled_out = {one.resource: one for one in analyzer.text(f"starting\n{text}").ruled_out}
    assert set(ruled_out) == {"shared_memory", "device_memory"}
    assert all(one.line == 2 for one in ruled_out.values())


def test_preemption_alone_is_pressure_and_no_failure(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(
        "WARNING 08-20 10:18:39 scheduler.py:1141] Sequence group 147 is preempted by "
        "PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. This can affect "
        "the end-to-end performance. total_num_cumulative_preemption=1\n"
    )
    assert diagnosis.exit_code == 0
    assert [one.relation for one in diagnosis.others] == ["warning"]


def test_sglang_retracting_requests_is_no_failure(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(
        "[2025-12-12 08:43:59] KV cache pool is full. Retract requests. #retracted_reqs: 1, "
        "#new_tokens_gained: 300, #new_token_ratio: 0.50 -> 0.70\n"
    )
    assert diagnosis.exit_code == 0
