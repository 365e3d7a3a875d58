"""What a pool holds: what grows with what, what the start check lets through, what no number is."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.budget.figure import Figure
from oortriage.budget.kv import KvLayout, kv_layout, pool
from oortriage.budget.model import read_model
from oortriage.budget.versions import KNOWN
from oortriage.errors import UsageError
from tests.budget.configs import GEMMA_3_4B, GPT_OSS_20B, LLAMA_3_8B, LLAMA_4_SCOUT, QWEN3_NEXT

GIB = 1 << 30
V1 = [version for version in KNOWN if version not in KNOWN[:6]]
LLAMA, GEMMA, GPT_OSS = read_model(LLAMA_3_8B), read_model(GEMMA_3_4B), read_model(GPT_OSS_20B)
MODELS = {"llama": LLAMA, "gemma": GEMMA, "gpt-oss": GPT_OSS}


@cache
def laid(name: str, version: str, block_size: int | None = None) -> KvLayout:
    return kv_layout(MODELS[name], version, block_size=block_size)


sizes = st.integers(0, 200 * GIB)
lengths = st.integers(1, 200_000)


@settings(deadline=None)
@given(st.sampled_from(V1), st.sampled_from(list(MODELS)), sizes, sizes, lengths)
def test_more_memory_never_holds_less(version: str, model: str, one: int, other: int, length: int) -> None:
    small, large = sorted((one, other))
    layout = laid(model, version)
    less, more = (pool(layout, size, max_model_len=length) for size in (small, large))
    assert less.num_blocks.value <= more.num_blocks.value
    assert less.kv_tokens.value <= more.kv_tokens.value
    assert less.max_concurrency.value <= more.max_concurrency.value
    assert more.admitted or not less.admitted
    assert more.serves or not less.serves


@settings(deadline=None)
@given(st.sampled_from(V1), st.sampled_from(list(MODELS)), sizes, lengths, lengths)
def test_a_longer_request_never_fits_more_often(version: str, model: str, size: int, one: int, other: int) -> None:
    short, long = sorted((one, other))
    layout = laid(model, version)
    less, more = (pool(layout, size, max_model_len=length) for length in (long, short))
    assert less.max_concurrency.value <= more.max_concurrency.value
    assert less.needed_bytes.value >= more.needed_bytes.value


@settings(deadline=None)
@given(st.sampled_from(KNOWN), sizes, st.sampled_from([8, 16, 32]), st.integers(1, 500))
def test_tokens_are_blocks_times_block_size_for_a_uniform_model(
    version: str, size: int, block: int, count: int
) -> None:
    """From 0.22 on the logged figure goes by whole blocks a request, so the length is a multiple of the block here."""
    found = pool(laid("llama", version, block), size, max_model_len=block * count)
    assert found.kv_tokens.value == pytest.approx(found.num_blocks.value * block, abs=1)
    assert found.num_blocks.value * 131072 * block <= size


@settings(deadline=None)
@given(st.sampled_from(V1), st.sampled_from(list(MODELS)), sizes, lengths)
def test_newer_checks_admit_only_what_is_there(version: str, model: str, size: int, length: int) -> None:
    """From 0.30 on what is admitted can be served: the null block is taken off."""
    found = pool(laid(model, "0.33.0"), size, max_model_len=length)
    assert found.serves or not found.admitted
    older = pool(laid(model, version), size, max_model_len=length)
    if older.admitted and not older.serves:
        assert any("would wait for ever" in trap for trap in older.traps)


def test_the_check_of_0_14_to_0_18_counts_one_group() -> None:
    flags = {"dtype": "float32", "tp": 2, "block_size": 16}
    small = 2400 * 5 * 65536  # 2,400 blocks; a request of 32,768 tokens takes 3,206
    verdicts = {
        version: (found.admitted, found.serves)
        for version in ("0.13.0", "0.14.1", "0.17.1", "0.18.0", "0.19.1", "0.30.0")
        for found in [pool(kv_layout(GEMMA, version, **flags), small, max_model_len=32768)]  # type: ignore[arg-type]
    }
    assert verdicts == {
        "0.13.0": (False, False), "0.14.1": (True, False), "0.17.1": (True, False), "0.18.0": (True, False),
        "0.19.1": (False, False), "0.30.0": (False, False),
    }  # fmt: skip


def test_the_null_block_counts_in_the_check_from_0_30_on() -> None:
    exact = 512 * (2 << 20)  # exactly one request of 8,192 tokens
    assert pool(kv_layout(LLAMA, "0.28.0"), exact, max_model_len=8192).admitted
    found = pool(kv_layout(LLAMA, "0.30.0"), exact, max_model_len=8192)
    assert (found.admitted, found.serves) == (False, False)
    assert pool(kv_layout(LLAMA, "0.30.0"), exact + (2 << 20), max_model_len=8192).admitted


@pytest.mark.parametrize(("version", "admitted"), [("0.20.0", False), ("0.22.1", True)])
def test_overridden_blocks(version: str, admitted: bool) -> None:
    found = pool(kv_layout(LLAMA, version), 0.5 * GIB, max_model_len=8192, blocks_override=1000)
    assert (found.num_blocks.value, found.num_blocks.how) == (1000, "--num-gpu-blocks-override")
    assert found.admitted is admitted


def test_an_estimate_keeps_its_range() -> None:
    size = Figure(2 * GIB, "bytes", "estimated", "a guess", 0.5 * GIB, 4 * GIB)
    found = pool(kv_layout(LLAMA, "0.17.1"), size, max_model_len=8192)
    assert found.num_blocks.provenance == "estimated"
    assert (found.num_blocks.low, found.num_blocks.value, found.num_blocks.high) == (256, 1024, 2048)
    assert (found.admitted, found.serves) == (None, None)
    assert found.needed_bytes.provenance == "derived"


def test_stages_have_the_fewest_blocks_of_all() -> None:
    layout = kv_layout(LLAMA, "0.17.1", pp=3)
    assert layout.bytes_per_block == (11 * 65536, 11 * 65536, 10 * 65536)
    assert kv_layout(LLAMA, "0.7.3", pp=3).bytes_per_block == (10 * 65536, 10 * 65536, 12 * 65536)
    assert pool(layout, [GIB, GIB / 2, GIB], max_model_len=4096).num_blocks.value == (GIB // 2) // (11 * 65536)
    with pytest.raises(UsageError, match="2 sizes of the pool for 3 pipeline stages"):
        pool(layout, [GIB, GIB], max_model_len=4096)


def test_v0_divides_its_blocks_by_the_stages() -> None:
    found = {
        version: pool(kv_layout(LLAMA, version, pp=2, engine="V0"), 0.75 * GIB, max_model_len=8192)
        for version in ("0.7.3", "0.8.0")
    }
    assert {one.num_blocks.value for one in found.values()} == {768}
    assert (found["0.7.3"].admitted, found["0.8.0"].admitted) == (True, False)
    assert (found["0.7.3"].serves, found["0.8.0"].serves) == (False, False)


def test_context_parallelism_multiplies_the_tokens() -> None:
    one, two = (pool(kv_layout(LLAMA, "0.17.1", tp=2, dcp=dcp), GIB, max_model_len=8192) for dcp in (1, 2))
    assert two.kv_tokens.value == 2 * one.kv_tokens.value
    assert two.blocks_per_request.value * 2 == one.blocks_per_request.value


def test_chunked_attention_turns_the_hybrid_manager_off() -> None:
    model = read_model(LLAMA_4_SCOUT)
    off, on = (kv_layout(model, "0.17.1", tp=8, chunked_hybrid=wish) for wish in (False, True))
    assert (off.hybrid, len(off.groups), on.hybrid, len(on.groups)) == (False, 1, True, 4)
    assert any("VLLM_ALLOW_CHUNKED_LOCAL_ATTN" in note for note in off.notes)
    request = pool(on, GIB, max_model_len=100_000, max_num_batched_tokens=8192)
    assert request.blocks_per_request.how == "3 x 1,024 (chunked) + 6,250 (full)"


def test_a_state_takes_one_block_a_request() -> None:
    """Qwen3-Next at TP 1: a state of 1,097,728 bytes, 2,048 bytes a token: blocks of 544 tokens."""
    layout = kv_layout(read_model(QWEN3_NEXT), "0.17.1")
    assert layout.block_size == 544
    assert layout.block_size_from == "a page of attention must hold a state"
    assert {group.page.bytes for group in layout.groups} == {544 * 2048}
    found = pool(layout, 10 * GIB, max_model_len=262144)
    assert found.blocks_per_request.value == 3 + -(-262144 // 544)
    kept = kv_layout(read_model(QWEN3_NEXT), "0.17.1", state_mode="align")
    assert pool(kept, GIB, max_model_len=262144).blocks_per_request.value == 6 + 482
    newer = kv_layout(read_model(QWEN3_NEXT), "0.28.0")
    assert pool(newer, GIB, max_model_len=262144).blocks_per_request.how == "3 x 2 (state) + 482 (full)"
    assert any("--no-enable-prefix-caching" in note for note in newer.notes)


@pytest.mark.parametrize("size", [float("nan"), float("inf"), -float("inf"), 1e300, True, [1.0, float("nan")]])
def test_bytes_that_are_no_number(size: Any) -> None:
    with pytest.raises(UsageError):
        pool(kv_layout(LLAMA, "0.17.1"), size, max_model_len=8192)
    if not isinstance(size, list):
        with pytest.raises(UsageError):
            pool(kv_layout(LLAMA, "0.17.1"), Figure(1, "bytes", "estimated", "", 0, size), max_model_len=8192)


@pytest.mark.parametrize("length", [0, -1, True, 1 << 60, 1.5])
def test_lengths_that_are_no_count(length: Any) -> None:
    with pytest.raises(UsageError, match="not a count"):
        pool(kv_layout(LLAMA, "0.17.1"), GIB, max_model_len=length)
    with pytest.raises(UsageError, match="not a count"):
        pool(kv_layout(LLAMA, "0.17.1"), GIB, max_model_len=8192, max_num_batched_tokens=length)
    with pytest.raises(UsageError, match="not a count"):
        pool(kv_layout(LLAMA, "0.17.1"), GIB, max_model_len=8192, blocks_override=length)
