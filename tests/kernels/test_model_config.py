"""What a model's ``config.json`` says of its attention layers: as published ones are written, and as broken ones are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oortriage.errors import InputError
from oortriage.kernels.model_config import ModelConfig, model_config, read_model_config

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "num_hidden_layers": 32, "torch_dtype": "bfloat16",
}  # fmt: skip
MISTRAL = {**LLAMA, "architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 4096}
QWEN = {
    **LLAMA, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "use_sliding_window": False,
    "sliding_window": 131072, "max_window_layers": 28,
}  # fmt: skip
GEMMA2 = {
    "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "hidden_size": 2304, "head_dim": 256,
    "num_attention_heads": 8, "num_key_value_heads": 4, "num_hidden_layers": 26, "sliding_window": 4096,
    "attn_logit_softcapping": 50.0, "torch_dtype": "float32",
}  # fmt: skip
GEMMA3 = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "text_config": {
        "model_type": "gemma3_text", "hidden_size": 2560, "head_dim": 256, "num_attention_heads": 8,
        "num_key_value_heads": 4, "num_hidden_layers": 34, "sliding_window": 1024, "sliding_window_pattern": 6,
    },
    "vision_config": {"hidden_size": 1152, "num_attention_heads": 16},
    "torch_dtype": "bfloat16",
}  # fmt: skip
GEMMA4 = {
    "architectures": ["Gemma4ForConditionalGeneration"],
    "text_config": {
        "model_type": "gemma4_text", "hidden_size": 2560, "head_dim": 256, "global_head_dim": 512,
        "num_attention_heads": 8, "num_key_value_heads": 4, "num_global_key_value_heads": 2,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 5, "num_hidden_layers": 30,
        "sliding_window": 512, "dtype": "bfloat16",
    },
}  # fmt: skip
DEEPSEEK = {
    "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 7168, "num_attention_heads": 128,
    "num_key_value_heads": 128, "num_hidden_layers": 61, "kv_lora_rank": 512, "q_lora_rank": 1536,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "torch_dtype": "bfloat16",
}  # fmt: skip
HYBRID = {
    "architectures": ["Qwen3NextForCausalLM"], "hidden_size": 2048, "head_dim": 256, "num_attention_heads": 16,
    "num_key_value_heads": 2, "num_hidden_layers": 48, "dtype": "bfloat16",
    "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 12,
}  # fmt: skip
EXAONE = {**LLAMA, "sliding_window": 4096, "sliding_window_pattern": "LLLG"}


def kinds(config: ModelConfig) -> list[tuple[str, int, int, int, int]]:
    return [(one.name, one.head_size, one.q_per_kv, one.kv_heads, one.count) for one in config.layers]


@pytest.mark.parametrize(
    ("whole", "expected", "dtype"),
    [
        (LLAMA, [("full attention", 128, 4, 8, 32)], "bfloat16"),
        (MISTRAL, [("sliding window 4096", 128, 4, 8, 32)], "bfloat16"),
        (QWEN, [("full attention", 128, 4, 8, 32)], "bfloat16"),
        (
            {**QWEN, "use_sliding_window": True, "sliding_window": 4096},
            [("full attention", 128, 4, 8, 28), ("sliding window 4096", 128, 4, 8, 4)],
            "bfloat16",
        ),
        (GEMMA2, [("full attention", 256, 2, 4, 13), ("sliding window 4096", 256, 2, 4, 13)], "float32"),
        (GEMMA3, [("full attention", 256, 2, 4, 5), ("sliding window 1024", 256, 2, 4, 29)], "bfloat16"),
        (GEMMA4, [("full attention", 512, 4, 2, 5), ("sliding window 512", 256, 2, 4, 25)], "bfloat16"),
        (DEEPSEEK, [("latent attention", 576, 128, 1, 61)], "bfloat16"),
        (HYBRID, [("full attention", 256, 8, 2, 12)], "bfloat16"),
        (EXAONE, [("full attention", 128, 4, 8, 8), ("sliding window 4096", 128, 4, 8, 24)], "bfloat16"),
        ({"n_head": 12, "n_embd": 768, "n_layer": 12}, [("full attention", 64, 1, 12, 12)], ""),
    ],
    ids=["llama", "mistral", "qwen", "qwen-window", "gemma2", "gemma3", "gemma4", "mla", "hybrid", "exaone", "gpt2"],
)
def test_published_models(whole: dict[str, Any], expected: list[Any], dtype: str) -> None:
    config = model_config(whole, "config.json")
    assert (kinds(config), config.dtype) == (expected, dtype)
    assert config.architecture == (whole.get("architectures") or [""])[0]


def test_latent_attention_is_no_plain_heads() -> None:
    """7,168 / 128 would be a head of 56 that no kernel of such a model has."""
    config = model_config(DEEPSEEK, "config.json")
    assert config.latent
    assert config.layers[0].v_head_size == 512
    assert config.notes == ("latent attention: a key is 512 + 64 elements, of which a value is the first 512",)


def test_what_was_worked_out_is_said() -> None:
    assert model_config(LLAMA, "x").notes == ("head size 128 = hidden_size / num_attention_heads",)
    assert model_config(HYBRID, "x").notes == ("36 of 48 layers have no attention over a KV cache",)
    assert model_config(GEMMA2, "x").softcap == 50.0
    assert model_config(GEMMA4, "x").notes == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_attention_heads": None}, "no num_attention_heads in it"),
        ({"num_attention_heads": "32"}, "num_attention_heads is '32', not a count"),
        ({"num_attention_heads": [32, 16]}, r"num_attention_heads is \[32, 16\], not a count"),
        ({"num_attention_heads": True}, "num_attention_heads is True, not a count"),
        ({"num_attention_heads": -1}, "num_attention_heads is -1, not a count"),
        ({"num_attention_heads": 10**40}, "num_attention_heads is 1000+…, not a count"),
        ({"hidden_size": None}, "neither head_dim nor a hidden_size"),
        ({"hidden_size": 16}, "neither head_dim nor a hidden_size"),
        ({"hidden_size": {"x": 1}}, "hidden_size is .*, not a count"),
        ({"num_hidden_layers": 1.5}, "num_hidden_layers is 1.5, not a count"),
        ({"layer_types": ["mamba", "mlp"]}, "its layer_types name no attention"),
    ],
)
def test_what_is_missing_or_wrong_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        model_config({**LLAMA, **change}, "some/config.json")
    assert str(caught.value).startswith("some/config.json: ")


@pytest.mark.parametrize(
    "change",
    [
        {"sliding_window": False}, {"sliding_window": "wide"}, {"layer_types": []}, {"layer_types": "full"},
        {"architectures": "Llama"}, {"architectures": [None]}, {"torch_dtype": {"x": 1}}, {"text_config": 5},
        {"attn_logit_softcapping": "hot"}, {"attn_logit_softcapping": 10**400}, {"head_dim": None},
        {"num_key_value_heads": None, "kv_lora_rank": 0},
    ],
    ids=str,
)  # fmt: skip
def test_oddities_that_do_not_matter(change: dict[str, Any]) -> None:
    config = model_config({**LLAMA, **change}, "x")
    assert [(one.name, one.head_size) for one in config.layers] == [("full attention", 128)]
    assert config.softcap == 0.0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe{}", "not JSON"),
        (b"PK\x03\x04", "not JSON"),
        (b"[1]", "it holds no object"),
        (b"null", "it holds no object"),
        (b'{"a":' * 100_000, "nested too deeply|not JSON"),
        (b"{}", "no num_attention_heads"),
    ],
    ids=["empty", "cut", "utf16", "zip", "list", "null", "deep", "nothing"],
)
def test_files_that_are_no_config(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_model_config(tmp_path / "config.json")


def test_a_folder_stands_for_the_config_in_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    assert read_model_config(tmp_path) == read_model_config(tmp_path / "config.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty/config\.json: cannot be read: No such file"):
        read_model_config(tmp_path / "empty")


KEYS = [
    "num_attention_heads", "num_key_value_heads", "hidden_size", "head_dim", "num_hidden_layers", "sliding_window",
    "sliding_window_pattern", "layer_types", "kv_lora_rank", "qk_rope_head_dim", "torch_dtype", "architectures",
    "model_type", "text_config", "use_sliding_window", "max_window_layers", "attn_logit_softcapping", "global_head_dim",
]  # fmt: skip
numbers = st.integers(-3, 300) | st.sampled_from([0, 1, 10**30, -(10**30)]) | st.floats()
scalars = st.none() | st.booleans() | numbers | st.text(max_size=4) | st.sampled_from(["gemma2", "qwen2", "LLG"])
lists = st.lists(st.sampled_from(["full_attention", "sliding_attention", "mamba", "x", 3, None, ["y"], {}]), max_size=4)
configs = st.recursive(
    st.dictionaries(st.sampled_from(KEYS), scalars | lists),
    lambda inner: st.dictionaries(st.sampled_from(KEYS), scalars | lists | inner),
    max_leaves=30,
)


@given(configs, st.booleans())
def test_nothing_but_input_errors(whole: dict[str, Any], full: bool) -> None:
    try:
        config = model_config({**LLAMA, **whole} if full else whole, "x")
    except InputError:
        return
    assert config.layers
    for one in config.layers:
        assert one.head_size > 0
        assert one.count > 0
        assert one.q_per_kv > 0
        assert one.kv_heads > 0
        assert one.window >= 0


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60))
def test_no_file_but_input_errors(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("c") / "config.json"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read_model_config(path)
