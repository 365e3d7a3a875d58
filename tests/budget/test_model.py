"""A model's config: kinds of layers, heads and widths as vLLM reads them, and whatever is no model's config."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.budget.model import Model, read_model
from oortriage.errors import InputError, OortriageError
from oortriage.kernels.model_config import model_config
from tests.budget.configs import (
    DEEPSEEK_V3,
    GEMMA_3_4B,
    GPT_OSS_20B,
    LLAMA_3_8B,
    LLAMA_4_SCOUT,
    NEMOTRON_NANO_9B,
    QWEN3_5_35B,
    QWEN3_NEXT,
    TINY_GEMMA,
)


def kinds(model: Model) -> dict[str, int]:
    found: dict[str, int] = {}
    for layer in model.layers:
        found[layer.kind] = found.get(layer.kind, 0) + 1
    return found


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (LLAMA_3_8B, {"full": 32}),
        (GEMMA_3_4B, {"sliding": 29, "full": 5}),
        (TINY_GEMMA, {"sliding": 6, "full": 1}),
        (GPT_OSS_20B, {"sliding": 12, "full": 12}),
        (LLAMA_4_SCOUT, {"chunked": 36, "full": 12}),
        (DEEPSEEK_V3, {"mla": 61}),
        (QWEN3_NEXT, {"state": 36, "full": 12}),
        (QWEN3_5_35B, {"state": 30, "full": 10}),
        (NEMOTRON_NANO_9B, {"state": 27, "none": 25, "full": 4}),
    ],
)
def test_kinds_of_layers(config: dict[str, Any], expected: dict[str, int]) -> None:
    model = read_model(config)
    assert kinds(model) == expected
    assert model.num_layers == sum(expected.values())
    assert model.unknown == ()


def test_sizes_of_a_model_with_experts() -> None:
    model = read_model(DEEPSEEK_V3)
    assert (model.experts, model.experts_per_token, model.shared_experts) == (256, 8, 1)
    assert (model.expert_size, model.dense_layers) == (2048, 3)
    assert model.mla
    assert (model.layers[0].head_size, model.layers[0].kv_heads) == (576, 1)
    assert model.raw["first_k_dense_replace"] == 3


def test_the_text_part_of_a_multimodal_config() -> None:
    model = read_model(GEMMA_3_4B)
    assert (model.multimodal, model.dtype, model.max_position_embeddings) == (True, "bfloat16", 131072)
    assert (model.architecture, model.model_type) == ("Gemma3ForConditionalGeneration", "gemma3_text")
    assert [layer.kind for layer in model.layers[:7]] == ["sliding"] * 5 + ["full", "sliding"]


def test_what_a_config_leaves_to_transformers() -> None:
    """As google/gemma-3-4b-it and llava-1.5-7b-hf state it."""
    gemma = read_model(
        {
            "model_type": "gemma3",
            "text_config": {
                "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
                "sliding_window": 1024,
            },
        }
    )  # fmt: skip
    assert gemma.layers == read_model(GEMMA_3_4B).layers
    assert (gemma.vocab_size, gemma.max_position_embeddings) == (262208, 131072)
    assert gemma.notes == (
        "left out, so transformers' default for gemma3_text: num_attention_heads 8, num_key_value_heads 4, head_dim 256",
    )
    llava = read_model({"text_config": {"model_type": "llama", "max_position_embeddings": 4096}})
    assert (llava.num_layers, llava.layers[0].kv_heads, llava.max_position_embeddings) == (32, 32, 4096)
    old = {**LLAMA_3_8B, "model_type": "qwen2"}
    assert kinds(read_model(old)) == {"full": 32}
    assert not any("sliding" in note for note in read_model(old).notes)
    assert kinds(read_model({**LLAMA_3_8B, "model_type": "mistral"})) == {"sliding": 32}
    assert kinds(read_model({**LLAMA_3_8B, "model_type": "mistral", "sliding_window": None})) == {"full": 32}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"n_head_kv": 2, "num_kv_heads": 4, "num_key_value_heads": 8}, 2),
        ({"num_kv_heads": 4, "num_key_value_heads": 8, "multi_query_group_num": 2}, 4),
        ({"num_key_value_heads": 8, "multi_query_group_num": 2}, 8),
        ({"num_key_value_heads": None, "multi_query_group_num": 2}, 2),
        ({"num_key_value_heads": None}, 32),
        ({"multi_query": True}, 1),
        ({"model_type": "falcon", "multi_query": True}, 1),
        ({"model_type": "falcon", "multi_query": True, "new_decoder_architecture": True, "num_kv_heads": 8}, 8),
        ({"model_type": "dbrx", "attn_config": {"kv_n_heads": 8}, "num_key_value_heads": None}, 8),
    ],
)
def test_kv_heads_come_from_vllms_sources_in_its_order(more: dict[str, Any], expected: int) -> None:
    assert read_model({**LLAMA_3_8B, **more}).layers[0].kv_heads == expected


def test_head_sizes() -> None:
    assert read_model(LLAMA_3_8B).layers[0].head_size == 128
    assert "head size 128 = hidden_size / num_attention_heads" in read_model(LLAMA_3_8B).notes
    assert read_model({**LLAMA_3_8B, "head_dim": 64}).layers[0].head_size == 64
    assert read_model({**LLAMA_3_8B, "head_dim": None}).layers[0].head_size == 128
    wide = {**GEMMA_3_4B["text_config"], "global_head_dim": 512, "num_global_key_value_heads": 2}
    found = {(one.kind, one.head_size, one.kv_heads) for one in read_model(wide).layers}
    assert found == {("sliding", 256, 4), ("full", 512, 2)}


def test_layers_that_share_a_cache_have_none_of_their_own() -> None:
    model = read_model({**GEMMA_3_4B["text_config"], "num_kv_shared_layers": 10})
    assert kinds(model)["shared"] == 10
    assert [layer.kind for layer in model.layers[-10:]] == ["shared"] * 10
    assert sum(len(list(layer.caches())) for layer in model.layers) == 24


def test_a_sparse_indexer_has_a_cache_too() -> None:
    model = read_model({**DEEPSEEK_V3, "model_type": "deepseek_v32", "index_topk": 2048, "index_head_dim": 128})
    caches = list(model.layers[0].caches())
    assert [(one.kind, one.head_size, one.element_bytes) for one in caches] == [("mla", 576, 0), ("mla", 132, 1)]


def test_a_layer_with_both_attention_and_a_state() -> None:
    more = {"mamba_d_ssm": 4096, "mamba_n_heads": 64, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 128}
    model = read_model({**LLAMA_3_8B, "model_type": "falcon_h1", "mamba_d_conv": 4, **more})
    assert [[one.kind for one in layer.caches()] for layer in model.layers] == [["full", "state"]] * 32


def test_pruned_models_have_heads_of_their_own() -> None:
    blocks = [
        {"attention": {"n_heads_in_group": 8}},
        {"attention": {"no_op": True}},
        {"attention": {"n_heads_in_group": 4}},
    ]
    model = read_model({**LLAMA_3_8B, "num_hidden_layers": 3, "block_configs": blocks, "num_key_value_heads": None})
    assert [(layer.kind, layer.kv_heads) for layer in model.layers] == [("full", 4), ("none", 0), ("full", 8)]


@pytest.mark.parametrize(
    "more",
    [
        {"sliding_window": 4096},
        {"sliding_window": 4096, "use_sliding_window": False},
        {"sliding_window": 1024, "sliding_window_pattern": 4},
        {"sliding_window": 1024, "sliding_window_pattern": "LLLG"},
        {"sliding_window": 4096, "model_type": "gemma2"},
        {"sliding_window": 4096, "model_type": "gemma3_text"},
        {"sliding_window": 4096, "use_sliding_window": True, "model_type": "qwen2", "max_window_layers": 21},
        {"sliding_window": 4096, "layer_types": ["full_attention", "sliding_attention"] * 16},
        {"layer_types": ["full_attention", "sliding_attention"] * 16},
    ],
)
def test_windows_are_those_the_kernels_are_compiled_for(more: dict[str, Any]) -> None:
    """The room ``kernels`` counts the same layers, for another purpose."""
    config = {**LLAMA_3_8B, **more}
    counted = {(one.window, one.count) for one in model_config(config, "config.json").layers}
    model = read_model(config)
    windows = [layer.window for layer in model.layers]
    assert {(window, windows.count(window)) for window in set(windows)} == counted


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({**DEEPSEEK_V3, "model_type": "deepseek_v4", "compress_ratios": [4, 128]}, "compress_ratios"),
        ({**LLAMA_3_8B, "layer_types": ["mamba"] * 32}, "how large the state"),
        ({**LLAMA_3_8B, "is_encoder_decoder": True}, "encoder"),
    ],
)
def test_what_the_config_does_not_tell_is_said(config: dict[str, Any], reason: str) -> None:
    assert reason in read_model(config).unknown[0]


@pytest.mark.parametrize(
    "more",
    [
        {"num_hidden_layers": 0}, {"num_hidden_layers": -1}, {"num_hidden_layers": "many"}, {"num_hidden_layers": None},
        {"num_hidden_layers": 1e300}, {"num_hidden_layers": float("nan")}, {"num_hidden_layers": 1 << 20},
        {"num_hidden_layers": True}, {"num_attention_heads": 0}, {"num_attention_heads": -8},
        {"num_attention_heads": "eight"}, {"num_attention_heads": [8]}, {"num_attention_heads": None},
        {"num_key_value_heads": 0}, {"num_key_value_heads": -1}, {"num_key_value_heads": "x"},
        {"head_dim": -64}, {"head_dim": 1e300}, {"hidden_size": 0}, {"hidden_size": 8}, {"hidden_size": None},
        {"layer_types": ["full_attention"]}, {"layer_types": ["telepathy"] * 32}, {"layer_types": [3] * 32},
    ],
)  # fmt: skip
def test_nonsense_is_refused_in_one_line(more: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        read_model({**LLAMA_3_8B, **more}, "some/config.json")
    message = str(caught.value)
    assert message.startswith("some/config.json: ")
    assert "\n" not in message
    assert len(message) < 200


leaves = st.sampled_from([None, True, False, 0, 1, 2, 3, 7, -1, 1 << 70, 1.5, 1e300, float("nan"), "", "x", "LG"])
values = (
    leaves | st.lists(leaves, max_size=3) | st.dictionaries(st.sampled_from(["attention", "num_heads", "bits"]), leaves)
)
KEYS = sorted(
    {*LLAMA_3_8B, *DEEPSEEK_V3, *QWEN3_NEXT, *NEMOTRON_NANO_9B, *LLAMA_4_SCOUT["text_config"], *GPT_OSS_20B}
    | {"quantization_config", "text_config", "block_configs", "linear_attn_config", "attn_type_list", "attn_config"}
    | {"index_topk", "index_head_dim", "num_kv_shared_layers", "global_head_dim", "sliding_window_pattern"}
)


@settings(deadline=None)
@given(
    st.sampled_from([LLAMA_3_8B, DEEPSEEK_V3, QWEN3_NEXT, GPT_OSS_20B]),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=4),
)
def test_any_config_is_a_model_or_a_plain_error(config: dict[str, Any], more: dict[str, Any]) -> None:
    model = None
    try:
        model = read_model({**config, **more})
    except OortriageError as problem:
        told = str(problem)
    if model is None:
        assert "\n" not in told
        return
    assert 0 < model.num_layers <= 4096
    assert all(one.kv_heads >= 0 and one.head_size >= 0 and one.window >= 0 for one in model.layers)
    assert msgspec.structs.asdict(model)
