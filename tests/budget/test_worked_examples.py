"""Figures that were worked out by hand from vLLM's source, or that a real engine printed."""

from __future__ import annotations

from typing import Any

import pytest

from oortriage.budget.kv import KvLayout, Pool, kv_layout, pool
from oortriage.budget.model import read_model
from tests.budget.configs import (
    DEEPSEEK_V3,
    GEMMA_3_1B,
    GEMMA_3_4B,
    LFM2_1_2B,
    LLAMA_3_8B,
    QWEN3_CODER_30B,
    TINY_GEMMA,
)

GIB = 1 << 30


def held(config: dict[str, Any], version: str, size: float, length: int, batched: int = 2048, **flags: Any) -> Pool:
    return pool(
        kv_layout(read_model(config), version, **flags), size, max_model_len=length, max_num_batched_tokens=batched
    )


def laid(config: dict[str, Any], version: str, **flags: Any) -> KvLayout:
    return kv_layout(read_model(config), version, **flags)


@pytest.mark.parametrize(
    "version", ["0.5.4", "0.6.3", "0.7.3", "0.8.5", "0.9.2", "0.11.0", "0.17.1", "0.22.1", "0.33.0"]
)
def test_llama_3_8b_in_five_gibibytes(version: str) -> None:
    layout = laid(LLAMA_3_8B, version)
    assert layout.bytes_per_token.value == 131072
    assert layout.groups[0].page.bytes == 65536
    assert layout.bytes_per_block == (2 << 20,)
    found = held(LLAMA_3_8B, version, 5 * GIB, 8192)
    assert (found.num_blocks.value, found.kv_tokens.value, found.max_concurrency.value) == (2560, 40960, 5.0)
    assert found.needed_bytes.value == GIB
    assert (found.admitted, found.serves, found.traps) == (True, True, ())
    assert {found.num_blocks.provenance, found.kv_tokens.provenance, found.max_concurrency.provenance} == {"derived"}


def test_deepseek_v3_keeps_one_vector() -> None:
    layout = laid(DEEPSEEK_V3, "0.17.1", tp=8)
    assert layout.bytes_per_token.value == 70272
    assert layout.bytes_per_token.how.startswith("61 mla layers x 1,152 bytes")
    assert layout.block_size == 64
    assert laid(DEEPSEEK_V3, "0.17.1", tp=8, kv_dtype="fp8_ds_mla").bytes_per_token.value == 40016
    # before MLA was kept compressed: 128 heads of 256, keys and values, on eight ranks
    assert laid(DEEPSEEK_V3, "0.6.6.post1", tp=8).bytes_per_token.value == 61 * 16 * 2 * 256 * 2


@pytest.mark.parametrize(
    ("version", "tokens"),
    [("0.9.2", 29952), ("0.12.0", 29952), ("0.17.1", 29952), ("0.20.0", 29952), ("0.22.1", 64294), ("0.25.1", 64294)],
)
def test_gemma_3_4b_in_four_gibibytes(version: str, tokens: int) -> None:
    flags = {"dtype": "float32", "tp": 2, "block_size": 16}
    layout = laid(GEMMA_3_4B, version, **flags)
    assert {group.page.bytes for group in layout.groups} == {65536}
    assert layout.group_size == (5,)
    assert [group.page.kind for group in layout.groups] == ["sliding"] * 6 + ["full"]
    found = held(GEMMA_3_4B, version, 4 * GIB, 8192, **flags)
    assert found.num_blocks.value == 13107
    assert found.blocks_per_request.value == 512 + 6 * 193 == 1670
    assert f"{found.max_concurrency.value:.2f}" == "7.85"
    assert found.kv_tokens.value == tokens
    assert f"{held(GEMMA_3_4B, version, 4 * GIB, 32768, **flags).max_concurrency.value:.2f}" == "4.09"


@pytest.mark.parametrize(
    ("version", "admitted"), [("0.9.2", True), ("0.13.0", True), ("0.14.1", False), ("0.33.0", False)]
)
def test_gemma_3_4b_without_the_hybrid_manager(version: str, admitted: bool) -> None:
    flags = {"dtype": "float32", "tp": 2, "block_size": 16, "hybrid": False}
    found = held(GEMMA_3_4B, version, 4 * GIB, 8192, **flags)
    assert (found.num_blocks.value, found.kv_tokens.value) == (1927, 30832)
    assert f"{found.max_concurrency.value:.2f}" == "3.76"
    long = held(GEMMA_3_4B, version, 4 * GIB, 32768, **flags)
    assert f"{long.max_concurrency.value:.2f}" == "0.94"
    # until 0.13.0 the start check is done before the windows are charged in full
    assert (long.admitted, long.serves) == (admitted, False)
    assert bool(long.traps) == admitted


@pytest.mark.parametrize("version", ["0.28.0", "0.30.0", "0.33.0"])
def test_windows_hold_two_batches_from_0_28_on(version: str) -> None:
    found = held(GEMMA_3_4B, version, 4 * GIB, 8192, dtype="float32", tp=2, block_size=16)
    assert found.blocks_per_request.value == 512 + 6 * (320 + 1)
    assert "2 batches in flight" in found.notes[0]


def test_what_vllm_0_22_1_printed_for_two_gibibytes() -> None:
    found = held(TINY_GEMMA, "0.22.1", 2 * GIB, 4096, 16384, dtype="float32")
    assert found.kv_tokens.value == 74648  # "GPU KV cache size: 74,648 tokens"
    assert f"{found.max_concurrency.value:.2f}x" == "18.22x"


@pytest.mark.parametrize(("printed", "tokens", "concurrency"), [(6.09, 227214, "55.47"), (6.18, 230676, "56.32")])
def test_what_vllm_0_22_1_printed_after_profiling(printed: float, tokens: int, concurrency: str) -> None:
    """The bytes are printed with two decimals: the figures lie between those of the rounding's ends."""
    ends = [held(TINY_GEMMA, "0.22.1", (printed + end) * GIB, 4096, 16384, dtype="float32") for end in (-0.005, 0.005)]
    assert ends[0].kv_tokens.value <= tokens <= ends[1].kv_tokens.value
    assert ends[1].kv_tokens.value / ends[0].kv_tokens.value < 1.002
    assert ends[0].max_concurrency.value <= float(concurrency) + 0.005
    assert float(concurrency) - 0.005 <= ends[1].max_concurrency.value


@pytest.mark.parametrize("printed", [-0.34, -0.79])
def test_nothing_left_is_refused(printed: float) -> None:
    found = held(TINY_GEMMA, "0.22.1", printed * GIB, 4096, 16384, dtype="float32")
    assert (found.num_blocks.value, found.admitted) == (0, False)


def between(config: dict[str, Any], version: str, printed: float, length: int, **flags: Any) -> tuple[Pool, Pool]:
    """The pool at both ends of a rounding to two decimals."""
    low, high = (held(config, version, (printed + end) * GIB, length, 8192, **flags) for end in (-0.005, 0.005))
    return low, high


def test_a_public_log_of_gemma_3_1b() -> None:
    """25.39 GiB; "Add 2 padding layers, may waste at most 9.09%"; 950,864 tokens; 461.21x at 2,048 tokens."""
    layout = laid(GEMMA_3_1B, "0.13.0")
    assert "2 padding layers beside 22 sliding ones: memory for nothing" in layout.notes
    low, high = between(GEMMA_3_1B, "0.13.0", 25.39, 2048)
    assert low.kv_tokens.value <= 950864 <= high.kv_tokens.value
    assert low.max_concurrency.value <= 461.21 <= high.max_concurrency.value + 0.005


@pytest.mark.parametrize(
    ("version", "printed", "tokens", "length", "concurrency"),
    [("0.6.4.post1", 3.81, 1952 * 16, 20000, 1.56), ("0.15.1", 19.28, 157936, 131072, 1.20)],
)
def test_public_logs_of_llama_3_1_8b(
    version: str, printed: float, tokens: int, length: int, concurrency: float
) -> None:
    """vllm-project/vllm issue 10517, and a log of an eager start."""
    low, high = between(LLAMA_3_8B, version, printed, length)
    assert low.kv_tokens.value <= tokens <= high.kv_tokens.value
    assert low.max_concurrency.value - 0.005 <= concurrency <= high.max_concurrency.value + 0.005


def test_the_refusal_of_issue_10517() -> None:
    """2.89 GiB: 1,478 blocks, 23,648 tokens, and max_model_len 29,000 is refused."""
    found = held(LLAMA_3_8B, "0.6.4.post1", 1478 * (2 << 20) + 5000, 29000)
    assert (found.num_blocks.value, found.kv_tokens.value, found.admitted) == (1478, 23648, False)
    assert f"{found.max_concurrency.value:.2f}" == "0.82"


def test_the_refusal_of_issue_34076() -> None:
    """Two stages of 16 and 32 layers on vLLM 0.15: 24.0 GiB are asked of one stage, for the layers of both."""
    layout = kv_layout(read_model(QWEN3_CODER_30B), "0.15.1", pp=2, pp_partition=[16, 32], kv_dtype="auto")
    found = pool(layout, [3.18 * GIB, 12 * GIB], max_model_len=262144)
    assert (found.needed_bytes.value, found.admitted) == (24 * GIB, False)
    assert any("asks one stage's memory for the layers of all stages" in trap for trap in found.traps)
    # "the estimated maximum model length is 34736", from 3.18 GiB, which is rounded
    assert abs(3.18 * GIB / layout.groups[0].block_bytes(0) / 3 * 16 - 34736) < 60


def test_the_padding_of_lfm2_1_2b() -> None:
    """ "Add 2 padding layers, may waste at most 20.00% KV cache memory": ten convolutions beside six attentions."""
    assert "2 padding layers beside 10 state ones: memory for nothing" in laid(LFM2_1_2B, "0.17.1").notes
