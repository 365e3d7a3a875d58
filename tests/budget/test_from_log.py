"""Which of a log's figures count: of the run asked for, of the rank with the least left, the surest wording."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.api import default_analyzer
from oortriage.budget.from_log import engine_of, read_figures
from oortriage.evidence.event import find_events
from oortriage.intake.line import Piece
from oortriage.intake.log import build_log
from tests.budget._logs import GIB, available, banner, blocks_v0, figures, gate, pool_v1, profile_v0, refused_v1, usage

#: A wording of each release range and the figures that must come out of it, in GiB where they are bytes.
WORDINGS = {
    "0.6.3 V0": (
        "INFO 10-20 12:00:00 model_runner.py:1067] Loading model weights took 14.9888 GB\n"
        + blocks_v0(2560, 2048, "GPU"),
        {"weights_bytes": 14.9888, "kv_blocks": 2560, "kv_cpu_blocks": 2048},
    ),
    "0.6.4 V0": (
        (
            "INFO worker.py:232] Memory profiling results: total_gpu_memory=23.64GiB initial_memory_usage=14.11GiB "
            "peak_torch_memory=2.36GiB memory_usage_post_profile=14.15GiB non_torch_memory=13.12GiB kv_cache_size=-14.77GiB "
            "gpu_memory_utilization=0.03"
        ),
        {
            "capacity_bytes": 23.64,
            "initial_used_bytes": 14.11,
            "peak_torch_bytes": 2.36,
            "used_after_profile_bytes": 14.15,
            "non_torch_bytes": 13.12,
            "kv_available_bytes": -14.77,
            "gpu_memory_utilization": 0.03,
        },
    ),
    "0.6.6 V0": (
        profile_v0(23.64, 0.90, 15.63, 0.09, 1.37, 4.18) + blocks_v0(4896, 4681),
        {
            "capacity_bytes": 23.64,
            "budget_bytes": 21.28,
            "weights_bytes": 15.63,
            "non_torch_bytes": 0.09,
            "activation_peak_bytes": 1.37,
            "kv_available_bytes": 4.18,
            "kv_blocks": 4896,
        },
    ),
    "0.9.2 V1, debug": (
        (
            "DEBUG [gpu_worker.py:261] Memory profiling takes 3.51 seconds. Total non KV cache memory: 16.42GiB; torch peak "
            "memory increase: 1.19GiB; non-torch forward increase memory: 0.27GiB; weights memory: 14.96GiB.\n"
            "DEBUG [gpu_worker.py:240] Initial free memory: 22.0 GiB; Requested memory: 0.9 (util), 21.22 GiB\n"
            "DEBUG [gpu_worker.py:247] Free memory after profiling: 5.5 GiB (total), 4.8 GiB (within requested)\n"
        ),
        {
            "non_kv_bytes": 16.42,
            "activation_peak_bytes": 1.19,
            "non_torch_bytes": 0.27,
            "weights_bytes": 14.96,
            "free_bytes": 22.0,
            "budget_bytes": 21.22,
            "free_after_profile_bytes": 5.5,
        },
    ),
    "0.17.1 V1": (
        available("5.59") + pool_v1(122080, 8192, 14.90),
        {"kv_available_bytes": 5.59, "kv_tokens": 122080, "max_model_len": 8192, "kv_concurrency": 14.90},
    ),
    "0.10.2 V1, advice": (
        (
            "INFO [gpu_worker.py:391] Free memory on device (23.2/23.58 GiB) on startup. Desired GPU memory utilization is (0.9, "
            "21.22 GiB). Actual usage is 14.96 GiB for weight, 1.19 GiB for peak activation, 0.27 GiB for non-torch memory, and "
            "0.55 GiB for CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory=4562402000` (4.25 GiB) "
            "to fit into requested memory, or `--kv-cache-memory=6689000000` (6.23 GiB) to fully utilize gpu memory. Current kv "
            "cache memory in use is 4.8 GiB."
        ),
        {
            "free_bytes": 23.2,
            "capacity_bytes": 23.58,
            "budget_bytes": 21.22,
            "weights_bytes": 14.96,
            "activation_peak_bytes": 1.19,
            "non_torch_bytes": 0.27,
            "cudagraph_bytes": 0.55,
            "kv_in_use_bytes": 4.8,
        },
    ),
    "0.28 V1": (
        (
            "INFO [kv_cache_utils.py:1911] GPU KV cache size: 27,520 tokens, Maximum concurrency for 27,520 tokens per request: "
            "1.00x\nINFO [gpu_worker.py:902] Actual usage is 61.41 GiB for consumed memory (weights + non-torch), 2.02 GiB for "
            "peak activation, and 0.94 GiB for CUDAGraph memory."
        ),
        {
            "kv_tokens": 27520,
            "kv_concurrency": 1.0,
            "consumed_bytes": 61.41,
            "activation_peak_bytes": 2.02,
            "cudagraph_bytes": 0.94,
        },
    ),
    "0.20 V1, graphs": (
        (
            "INFO [gpu_model_runner.py:6365] Estimated CUDA graph memory: 3.61 GiB total\nINFO [gpu_worker.py:481] CUDA graph "
            "memory profiling is enabled (default since v0.21.0). The current --gpu-memory-utilization=0.8500 is equivalent to "
            "--gpu-memory-utilization=0.7738 without CUDA graph memory profiling. To maintain"
        ),
        {"cudagraph_estimate_bytes": 3.61, "gpu_memory_utilization": 0.85, "utilization_without_graphs": 0.7738},
    ),
    "start gate": (
        gate(6.44, 11.63, 0.9),
        {"free_bytes": 6.44, "capacity_bytes": 11.63, "gpu_memory_utilization": 0.9, "budget_bytes": 10.47},
    ),
    "refused, V1": (
        refused_v1(221000, "10.12", "5.59", 122080),
        {
            "max_model_len": 221000,
            "kv_needed_bytes": 10.12,
            "kv_available_bytes": 5.59,
            "estimated_max_model_len": 122080,
        },
    ),
    "blocks by hand": (
        "INFO [kv_cache_utils.py:700] Overriding num_gpu_blocks=2103 with num_gpu_blocks_override=512",
        {"kv_blocks_profiled": 2103, "kv_blocks_override": 512},
    ),
    "length fitted": (
        (
            "INFO Auto-fit max_model_len: reduced from 131072 to 32768 to fit in available GPU memory (4.0 GiB available for KV "
            "cache)"
        ),
        {"derived_max_model_len": 131072, "max_model_len": 32768, "kv_available_bytes": 4.0},
    ),
    "context parallel": (
        "INFO Multiplying the GPU KV cache size by the cp_world_size 16 (pcp_world_size 2 * dcp_world_size 8).",
        {"context_parallel_size": 16},
    ),
}


@pytest.mark.parametrize("name", WORDINGS)
def test_every_wording_gives_its_figures(name: str) -> None:
    text, expected = WORDINGS[name]
    read = figures(text)
    for figure, value in expected.items():
        span = read.spans[figure]
        wanted = value * GIB if figure.endswith("_bytes") else value
        assert span.value == pytest.approx(wanted, abs=1.0 if figure.endswith("_bytes") else 1e-9), figure
        assert read.figure(figure).provenance == "measured"  # type: ignore[union-attr]


def test_figures_name_their_line_in_the_file() -> None:
    read = figures("one\ntwo\n" + available("5.59"))
    figure = read.figure("kv_available_bytes")
    assert figure is not None
    assert (read.lines["kv_available_bytes"], figure.how) == (3, "line 3")


def test_a_rounded_size_has_the_bounds_of_its_rounding() -> None:
    figure = figures(available("5.59")).figure("kv_available_bytes")
    assert figure is not None
    assert (figure.low, figure.high) == (pytest.approx(5.585 * GIB), pytest.approx(5.595 * GIB))


@settings(max_examples=40, deadline=None)
@given(st.permutations([410, 425, 397, 440]), st.permutations([1501, 1480, 1512, 1499]))
def test_the_rank_with_the_least_counts_whatever_the_order(left: list[int], weights: list[int]) -> None:
    lines = []
    for rank, (one, weight) in enumerate(zip(left, weights, strict=True)):
        who = f"Worker_TP{rank} pid={100 + rank}"
        lines.append(
            f"({who}) INFO 08-20 18:00:00 [gpu_model_runner.py:2007] Model loading took {weight / 100:.4f} GiB and 5.1 s\n"
        )
        lines.append(available(f"{one / 100:.2f}", who))
    read = figures("".join(lines))
    assert read.ranks == 4
    assert read.spans["kv_available_bytes"].value == pytest.approx(3.97 * GIB, abs=1)
    assert read.spans["weights_bytes"].value == pytest.approx(weights[left.index(397)] / 100 * GIB, abs=1)
    assert "of 4" in read.figure("kv_available_bytes").how  # type: ignore[union-attr]


def test_the_last_run_counts_and_each_run_can_be_asked_for() -> None:
    first = banner("0.9.2", 8192) + available("3.10") + pool_v1(25000, 8192, 3.05)
    second = banner("0.11.0", 4096) + available("4.20") + pool_v1(34000, 4096, 8.30)
    text = first + second
    read = figures(text)
    assert (read.words["vllm_version"], read.spans["kv_tokens"].value) == ("0.11.0", 34000)
    pieces = (Piece(number, 0, line) for number, line in enumerate(text.split("\n"), 1))
    log = build_log("log.txt", pieces, complete=True, notes=[])
    events = find_events(log, default_analyzer().matcher)
    earlier = read_figures(events, at_order=2)
    assert (earlier.spans["kv_tokens"].value, earlier.spans["max_model_len"].value) == (25000, 8192)


def test_a_dying_engine_s_dump_begins_no_run(fixtures: Path) -> None:
    log = default_analyzer().read(fixtures / "triton" / "vllm-36802-t4-fp32-head256" / "log.txt")
    found = read_figures(find_events(log, default_analyzer().matcher))
    assert found.lines["kv_available_bytes"] == 37
    assert found.spans["kv_tokens"].value == 49_568


def test_a_setting_in_front_of_the_runs_holds_for_them() -> None:
    command = "vllm serve org/m --block-size 32 --gpu-memory-utilization 0.85\n"
    read = figures(command + banner("0.9.2") + available("3.10") + banner("0.9.2") + available("4.20"))
    assert (read.spans["block_size"].value, read.spans["gpu_memory_utilization"].value) == (32, 0.85)


def test_the_highest_usage_is_the_peak() -> None:
    read = figures(usage(3.1, 2) + usage(87.5, 40) + usage(12.0, 9))
    assert read.usage is not None
    assert (read.usage.peak_percent, read.usage.running, read.usage.readings, read.usage.peak_line) == (87.5, 40, 3, 2)


def test_the_estimate_of_graphs_is_not_their_size() -> None:
    read = figures("INFO [gpu_model_runner.py:6365] Estimated CUDA graph memory: 3.61 GiB total")
    assert "cudagraph_bytes" not in read.spans
    both = figures(
        "INFO CUDA graph pool memory: 0.94 GiB (actual), 1.12 GiB (estimated), difference: 0.18 GiB (19.1%)."
    )
    assert both.spans["cudagraph_bytes"].value == pytest.approx(0.94 * GIB, abs=1)


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        (profile_v0(24, 0.9, 15, 0.1, 1, 5.5), "V0"),
        (available("5.59"), "V1"),
        ("GPU memory is full", ""),
    ],
)
def test_the_engine_is_told_by_what_only_it_prints(text: str, engine: str) -> None:
    assert engine_of(figures(text)) == engine


def test_a_log_without_figures_gives_none() -> None:
    assert figures("nothing\nof the kind\n").spans == {}
