"""Sizes that are captured, and the memory they take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.budget.graphs import capture_sizes, graph_memory
from oortriage.budget.model import read_model
from oortriage.budget.versions import KNOWN, has_engine
from oortriage.evidence.values import GIB
from tests.budget.test_parameters import COUNTS, config


def test_v0_goes_to_the_first_size_that_holds_all_sequences() -> None:
    assert capture_sizes("0.7.3", max_num_seqs=256) == (1, 2, 4, *range(8, 257, 8))
    assert len(capture_sizes("0.7.3", max_num_seqs=256)) == 35  # "Capturing CUDA graph shapes: 35/35"
    assert capture_sizes("0.6.3", max_num_seqs=13) == (1, 2, 4, 8, 16)
    assert capture_sizes("0.6.3", max_num_seqs=3) == (1, 2, 4)
    assert capture_sizes("0.6.3", max_num_seqs=1) == (1,)


def test_v1_goes_to_512_whatever_is_scheduled_until_0_11_0() -> None:
    assert len(capture_sizes("0.10.2", max_num_seqs=16)) == 67  # "Capturing CUDA graphs: 67/67"
    assert capture_sizes("0.10.2", max_num_seqs=16, max_num_batched_tokens=16) == (1, 2, 4, 8, 16)


def test_v1_goes_to_twice_the_sequences_from_0_11_2() -> None:
    assert len(capture_sizes("0.15.1", max_num_seqs=256)) == 51  # "Capturing CUDA graphs (PIECEWISE): 51/51"
    # native_compiled_mp_ok.log: "PIECEWISE=5 (largest=16)" with max_num_seqs 8
    assert capture_sizes("0.22.1", max_num_seqs=8, max_num_batched_tokens=16384) == (1, 2, 4, 8, 16)
    assert capture_sizes("0.22.1", max_num_seqs=256, max_num_batched_tokens=100)[-2:] == (96, 100)
    assert capture_sizes("0.20.0", max_num_seqs=256, max_num_batched_tokens=100)[-1] == 96
    assert capture_sizes("0.28.0", max_num_seqs=1024, capability="10.0")[-1] == 1024
    assert capture_sizes("0.25.1", max_num_seqs=1024, capability="10.0")[-1] == 512


def test_eager_captures_nothing_and_takes_nothing() -> None:
    assert capture_sizes("0.22.1", max_num_seqs=256, eager=True) == ()
    found = graph_memory(read_model(COUNTS["Qwen/Qwen3-8B"][0]), version="0.22.1", sizes=())
    assert (found.value, found.provenance) == (0.0, "derived")


def test_sizes_given_are_taken_within_the_step() -> None:
    assert capture_sizes("0.22.1", max_num_seqs=8, max_num_batched_tokens=64, given=(64, 1, 1, 128, -3)) == (1, 64)


QWEN = config("qwen2", 1536, 8960, 28, 12, 2, 151936)


@pytest.mark.parametrize(
    ("shape", "version", "seqs", "printed"),
    [
        (QWEN, "0.7.3", 256, 0.17),
        (COUNTS["Qwen/Qwen3-8B"][0], "0.15.1", 256, 0.54),
        (COUNTS["meta-llama/Meta-Llama-3-8B"][0], "0.30.0", 256, 0.23),
        (COUNTS["Qwen/Qwen2.5-0.5B"][0], "0.25.1", 256, 0.40),
        (config("granite", 2048, 8192, 40, 32, 8, 49159), "0.10.2", 256, 0.62),
    ],
)
def test_memory_that_vllm_printed_lies_in_the_range(shape: dict, version: str, seqs: int, printed: float) -> None:
    sizes = capture_sizes(version, max_num_seqs=seqs)
    found = graph_memory(read_model(shape), version=version, sizes=sizes)
    assert (found.low or 0) <= printed * GIB <= (found.high or 0)
    assert found.value / GIB == pytest.approx(printed, rel=0.9)


@given(st.sampled_from(KNOWN), st.integers(1, 5000), st.integers(1, 40000), st.sampled_from(["V0", "V1"]))
def test_sizes_rise_and_stay_within_the_step(version: str, seqs: int, tokens: int, engine: str) -> None:
    if not has_engine(version, engine):
        return
    sizes = capture_sizes(version, max_num_seqs=seqs, max_num_batched_tokens=tokens, engine=engine)
    assert list(sizes) == sorted(set(sizes))
    assert sizes[0] >= 1
    if engine == "V1" and version not in ("0.6.4.post1", "0.6.6.post1", "0.7.3", "0.8.0"):
        assert sizes[-1] <= tokens
