"""The layout of one rank: pages, block sizes, groups, and what a release refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.budget.groups import group_size
from oortriage.budget.kv import kv_layout
from oortriage.budget.model import UnknownLayoutError, read_model
from oortriage.budget.versions import KNOWN
from oortriage.errors import UsageError
from tests.budget.configs import (
    DEEPSEEK_V3,
    GEMMA_3_4B,
    GPT_OSS_20B,
    LLAMA_3_8B,
    NEMOTRON_NANO_9B,
    QWEN3_5_35B,
)

LLAMA, DEEPSEEK = read_model(LLAMA_3_8B), read_model(DEEPSEEK_V3)


@settings(deadline=None)
@given(st.sampled_from(KNOWN), st.sampled_from([1, 2, 4, 8, 16, 32]), st.integers(1, 64))
def test_heads_are_divided_until_one_is_left_and_then_copied(version: str, tp: int, kv_heads: int) -> None:
    model = read_model({**LLAMA_3_8B, "num_key_value_heads": kv_heads})
    assert kv_layout(model, version, tp=tp).bytes_per_token.value == 32 * 2 * 128 * 2 * max(1, kv_heads // tp)


@settings(deadline=None)
@given(st.sampled_from(KNOWN[6:]), st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128]))
def test_the_vector_of_mla_is_on_every_rank(version: str, tp: int) -> None:
    assert kv_layout(DEEPSEEK, version, tp=tp).bytes_per_token.value == 70272


@pytest.mark.parametrize(
    ("kv_dtype", "version", "token"),
    [
        ("auto", "0.17.1", 2 * 8 * 128 * 2),
        ("fp8", "0.5.4", 2 * 8 * 128),
        ("fp8_e5m2", "0.17.1", 2 * 8 * 128),
        ("bfloat16", "0.17.1", 2 * 8 * 128 * 2),
        ("int8_per_token_head", "0.20.0", 8 * (256 + 8)),
        ("fp8_per_token_head", "0.33.0", 8 * (256 + 8)),
        ("int4_per_token_head", "0.25.1", 8 * (128 + 8)),
        ("nvfp4", "0.22.1", 8 * 2 * (64 + 8)),
    ],
)
def test_types_of_the_cache(kv_dtype: str, version: str, token: int) -> None:
    layout = kv_layout(LLAMA, version, kv_dtype=kv_dtype)
    assert layout.bytes_per_token.value == 32 * token
    assert layout.groups[0].page.bytes == 16 * token


@pytest.mark.parametrize(
    ("kv_dtype", "version", "message"),
    [
        ("int8_per_token_head", "0.19.1", "there from vLLM 0.20.0 on"),
        ("int4_per_token_head", "0.22.1", "there from vLLM 0.25.1 on"),
        ("float16", "0.17.1", "there from vLLM 0.18.0 on"),
        ("fp9", "0.17.1", "takes auto, fp8, fp8_e4m3, fp8_e5m2, fp8_inc, bfloat16, fp8_ds_mla"),
        ("fp8_ds_mla", "0.17.1", "for models with MLA"),
    ],
)
def test_types_that_a_release_does_not_take(kv_dtype: str, version: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        kv_layout(LLAMA, version, kv_dtype=kv_dtype)


def test_packings_that_are_not_modelled_are_left_open() -> None:
    with pytest.raises(UnknownLayoutError, match="turboquant_k8v4: its packing is not modelled"):
        kv_layout(LLAMA, "0.22.1", kv_dtype="turboquant_k8v4")
    with pytest.raises(UsageError, match="not for a model with MLA"):
        kv_layout(DEEPSEEK, "0.33.0", kv_dtype="int8_per_token_head")


def test_a_checkpoint_that_declares_an_fp8_cache() -> None:
    declared = {"quant_method": "modelopt", "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
    layout = kv_layout(read_model({**LLAMA_3_8B, "quantization_config": declared}), "0.17.1")
    assert (layout.kv_dtype, layout.bytes_per_token.value) == ("fp8", 65536)
    scheme = {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}
    found = {
        version: kv_layout(read_model({**LLAMA_3_8B, "quantization_config": scheme}), version)
        for version in ("0.15.1", "0.16.0")
    }
    assert [one.kv_dtype for one in found.values()] == ["auto", "fp8"]
    assert any("follows it from vLLM 0.16.0 on" in note for note in found["0.15.1"].notes)


@pytest.mark.parametrize(
    ("block", "version", "message"),
    [
        (64, "0.6.3.post1", "takes 8, 16, 32"), (1, "0.8.0", "takes 8, 16, 32, 64, 128"), (256, "0.11.0", "64, 128"),
        (48, "0.17.1", "takes 1, 8, 16"), (0, "0.18.0", "any positive number"), (-16, "0.33.0", "any positive number"),
        (1 << 40, "0.33.0", "any positive number"),
    ],
)  # fmt: skip
def test_block_sizes_that_a_release_does_not_take(block: int, version: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        kv_layout(LLAMA, version, block_size=block)


@pytest.mark.parametrize(
    ("version", "backend", "given_size", "size"),
    [
        ("0.17.1", "", None, 64), ("0.17.1", "CUTLASS_MLA", None, 128), ("0.17.1", "TRITON_MLA", None, 16),
        ("0.17.1", "FLASHMLA", 128, 128), ("0.17.1", "FLASHMLA", 16, 64), ("0.22.1", "", None, 16),
        ("0.22.1", "FLASHMLA", None, 64), ("0.22.1", "FLASHINFER_MLA", None, 32), ("0.22.1", "FLASHMLA", 16, 16),
    ],
)  # fmt: skip
def test_the_block_size_of_mla_is_its_kernels(version: str, backend: str, given_size: int | None, size: int) -> None:
    layout = kv_layout(DEEPSEEK, version, attention_backend=backend, block_size=given_size)
    assert layout.block_size == size


@pytest.mark.parametrize(
    ("config", "version", "tp", "tokens", "padding"),
    [
        (QWEN3_5_35B, "0.17.1", 1, 1056, 0.76),  # printed by public runs, with the padding
        (
            {**QWEN3_5_35B["text_config"], "linear_num_value_heads": 48, "num_key_value_heads": 4,
             "num_attention_heads": 24},
            "0.18.0", 1, 784, 0.13,
        ),
        (NEMOTRON_NANO_9B, "0.10.2", 1, 672, None),  # vllm-project/vllm issue 24280
    ],
)  # fmt: skip
def test_blocks_grow_until_they_hold_a_state(
    config: dict[str, Any], version: str, tp: int, tokens: int, padding: float | None
) -> None:
    """Sizes that vLLM printed: `Setting attention block size to N tokens`, `Padding mamba page size by P%`."""
    layout = kv_layout(read_model(config), version, tp=tp)
    assert layout.block_size == tokens
    sizes = {group.page.kind: group.page.bytes for group in layout.groups}
    assert sizes["state"] == sizes["full"]
    if padding is not None:
        conv = 3 * (2 * 16 * 128 + 128 * (48 if tokens == 784 else 32)) * 2
        state = conv + (48 if tokens == 784 else 32) * 128 * 128 * 4
        assert round(100 * (sizes["full"] - state) / state, 2) == padding


@pytest.mark.parametrize(
    ("counts", "version", "size"),
    [
        ((5, 29), "0.11.0", 5), ((12, 13), "0.11.2", 12), ((12, 13), "0.12.0", 13), ((4, 5), "0.17.1", 4),
        ((4, 5), "0.18.0", 5), ((10, 15), "0.18.0", 10), ((8, 9), "0.17.1", 9), ((7,), "0.17.1", 7),
    ],
)  # fmt: skip
def test_the_group_size_per_release(counts: tuple[int, ...], version: str, size: int) -> None:
    assert group_size(counts, version) == size


def test_groups_of_unequal_kinds_are_padded() -> None:
    config = {**GPT_OSS_20B, "num_hidden_layers": 25, "layer_types": [*GPT_OSS_20B["layer_types"], "full_attention"]}
    old, new = (kv_layout(read_model(config), version) for version in ("0.11.2", "0.12.0"))
    assert (len(old.groups), old.group_size) == (3, (12,))
    assert (len(new.groups), new.group_size) == (2, (13,))
    assert "11 padding layers beside 13 full ones: memory for nothing" in old.notes
    assert "1 padding layer beside 12 sliding ones: memory for nothing" in new.notes


def test_layers_of_several_widths() -> None:
    blocks = [{"attention": {"n_heads_in_group": 4 if index % 2 else 8}} for index in range(32)]
    model = read_model({**LLAMA_3_8B, "block_configs": blocks, "num_key_value_heads": None})
    with pytest.raises(UsageError, match=r"several widths; it can from 0\.11\.0 on"):
        kv_layout(model, "0.10.2")
    layout = kv_layout(model, "0.11.0")
    assert layout.groups[0].mixed
    assert layout.bytes_per_block == (16 * (16 * 4 + 16 * 8) * 2 * 128 * 2,)


def test_windows_and_wide_layers_share_a_pool_from_0_12_on() -> None:
    wide = read_model({**GEMMA_3_4B["text_config"], "global_head_dim": 512, "num_global_key_value_heads": 4})
    with pytest.raises(UsageError, match=r"differ in size; it can from 0\.12\.0 on"):
        kv_layout(wide, "0.11.2", dtype="bfloat16")
    layout = kv_layout(wide, "0.17.1", dtype="bfloat16")
    assert {(group.page.kind, group.page.block_size) for group in layout.groups} == {("sliding", 32), ("full", 16)}
    assert len({group.page.bytes for group in layout.groups}) == 1
    odd = read_model({**GEMMA_3_4B["text_config"], "global_head_dim": 384})
    with pytest.raises(UsageError, match="does not divide"):
        kv_layout(odd, "0.17.1", dtype="bfloat16")
    padded = kv_layout(odd, "0.28.0", dtype="bfloat16")
    assert {(group.page.kind, group.page.block_size) for group in padded.groups} == {("sliding", 16), ("full", 16)}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"tp": 3}, "does not divide the model's 32 attention heads"), ({"tp": 0}, "not a number of ranks"),
        ({"tp": -1}, "not a number of ranks"), ({"pp": 33}, "32 layers only"), ({"pp": 1 << 30}, "not a number"),
        ({"dcp": 2}, "does not divide --tp 1"), ({"engine": "V0"}, "has no V0 engine"),
        ({"dtype": "int3"}, "there are auto"), ({"pp": 2, "pp_partition": [31, 2]}, "does not cut 32 layers"),
    ],
)  # fmt: skip
def test_numbers_that_do_not_go_together(flags: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        kv_layout(LLAMA, "0.17.1", **flags)


def test_context_parallelism_is_not_for_windows_nor_for_old_releases() -> None:
    with pytest.raises(UsageError, match="not for a model with sliding windows"):
        kv_layout(read_model(GEMMA_3_4B), "0.17.1", tp=2, dcp=2)
    with pytest.raises(UsageError, match=r"from 0\.10\.2 on"):
        kv_layout(LLAMA, "0.10.0", tp=2, dcp=2)


def test_a_partition_of_ones_own() -> None:
    layout = kv_layout(LLAMA, "0.17.1", pp=2, pp_partition=[20, 12])
    assert layout.bytes_per_block == (20 * 65536, 12 * 65536)
    assert layout.bytes_per_token.value == 20 * 4096
    assert layout.bytes_per_token.how.endswith("one rank, pipeline stage 0 of 2")


def test_v0_knows_neither_windows_nor_states() -> None:
    layout = kv_layout(read_model(NEMOTRON_NANO_9B), "0.8.5", engine="V0")
    assert [group.page.kind for group in layout.groups] == ["full"]
    assert layout.bytes_per_block == (4 * 16 * 2 * 8 * 128 * 2,)
    assert any("outside the KV cache" in note for note in layout.notes)
    assert kv_layout(read_model(GEMMA_3_4B), "0.7.3").bytes_per_block == (34 * 16 * 2 * 4 * 256 * 2,)


def test_what_is_not_told_is_left_open() -> None:
    with pytest.raises(UnknownLayoutError, match="compress_ratios") as caught:
        kv_layout(read_model({**DEEPSEEK_V3, "compress_ratios": [4]}), "0.33.0")
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("model_type", "dtype", "asked", "capability", "version", "taken"),
    [
        ("llama", "bfloat16", "auto", "", "0.17.1", "bfloat16"), ("llama", "bfloat16", "auto", "8.9", "0.17.1", "bfloat16"),
        ("llama", "bfloat16", "auto", "7.5", "0.17.1", "float16"), ("llama", "float32", "auto", "", "0.17.1", "float16"),
        ("gemma3_text", "bfloat16", "auto", "7.5", "0.17.1", "float32"),
        ("gemma3_text", "bfloat16", "auto", "7.5", "0.8.5", "float16"),
        ("gemma3_text", "float16", "auto", "8.0", "0.17.1", "bfloat16"),
        ("gemma3_text", "float16", "auto", "7.5", "0.17.1", "float32"),
        ("gemma3_text", "bfloat16", "float32", "7.5", "0.17.1", "float32"), ("llama", "", "half", "7.5", "0.17.1", "half"),
    ],
)  # fmt: skip
def test_the_type_a_model_runs_in(
    model_type: str, dtype: str, asked: str, capability: str, version: str, taken: str
) -> None:
    model = read_model({**LLAMA_3_8B, "model_type": model_type, "torch_dtype": dtype})
    assert kv_layout(model, version, dtype=asked, capability=capability, engine="V1").dtype == taken


def test_types_that_a_model_or_a_card_refuses() -> None:
    gemma = read_model(GEMMA_3_4B)
    with pytest.raises(UsageError, match="refuses it for gemma3_text; bfloat16 or float32"):
        kv_layout(gemma, "0.17.1", dtype="float16")
    with pytest.raises(UsageError, match=r"below compute capability 8\.0, and the card has 7\.5"):
        kv_layout(gemma, "0.17.1", dtype="bfloat16", capability="7.5")
