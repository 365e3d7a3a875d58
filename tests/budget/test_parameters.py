"""Parameters counted from shapes, against what the public checkpoints hold (model cards on huggingface.co)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.budget.model import read_model
from oortriage.budget.parameters import Part, count_parameters, has_experts, layer_parts


def config(model_type: str, *sizes: int, **more: object) -> dict:
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    names += ("num_key_value_heads", "vocab_size")
    return {
        "model_type": model_type,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        **dict(zip(names, sizes, strict=True)),
        **more,
    }


DEEPSEEK = {
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "moe_layer_freq": 1,
    "hidden_act": "silu",
}
COUNTS = {
    "meta-llama/Meta-Llama-3-8B": (config("llama", 4096, 14336, 32, 32, 8, 128256), 8030261248),
    "meta-llama/Llama-3.1-70B": (config("llama", 8192, 28672, 80, 64, 8, 128256), 70553706496),
    "meta-llama/Llama-3.2-1B": (
        config("llama", 2048, 8192, 16, 32, 8, 128256, head_dim=64, tie_word_embeddings=True),
        1235814400,
    ),
    "mistralai/Mistral-7B-v0.1": (config("mistral", 4096, 14336, 32, 32, 8, 32000), 7241732096),
    "mistralai/Mixtral-8x7B-v0.1": (
        config("mixtral", 4096, 14336, 32, 32, 8, 32000, num_local_experts=8, num_experts_per_tok=2),
        46702792704,
    ),
    "Qwen/Qwen2.5-0.5B": (config("qwen2", 896, 4864, 24, 14, 2, 151936, tie_word_embeddings=True), 494032768),
    "Qwen/Qwen2.5-7B": (config("qwen2", 3584, 18944, 28, 28, 4, 152064), 7615616512),
    "Qwen/Qwen3-8B": (config("qwen3", 4096, 12288, 36, 32, 8, 151936, head_dim=128), 8190735360),
    "Qwen/Qwen3-30B-A3B": (
        config(
            "qwen3_moe", 2048, 6144, 48, 32, 4, 151936, head_dim=128, moe_intermediate_size=768, num_experts=128,
            num_experts_per_tok=8, decoder_sparse_step=1, mlp_only_layers=[],
        ),
        30532122624,
    ),
    "google/gemma-2-9b": (
        config("gemma2", 3584, 14336, 42, 16, 8, 256000, head_dim=256, tie_word_embeddings=True, sliding_window=4096),
        9241705984,
    ),
    "microsoft/Phi-3-mini-4k-instruct": (config("phi3", 3072, 8192, 32, 32, 32, 32064), 3821079552),
    "openai/gpt-oss-20b": (
        config(
            "gpt_oss", 2880, 2880, 24, 64, 8, 201088, head_dim=64, num_local_experts=32, num_experts_per_tok=4,
            attention_bias=True, sliding_window=128,
        ),
        20914757184,
    ),
    "deepseek-ai/DeepSeek-V2-Lite": (
        config(
            "deepseek_v2", 2048, 10944, 27, 16, 16, 102400, n_routed_experts=64, n_shared_experts=2,
            num_experts_per_tok=6, moe_intermediate_size=1408, first_k_dense_replace=1, q_lora_rank=None, **DEEPSEEK,
        ),
        15706484224,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_every_parameter_of_a_public_checkpoint_is_counted(name: str) -> None:
    shape, parameters = COUNTS[name]
    assert count_parameters(read_model(shape)) == parameters


def test_deepseek_v3_has_671_billion() -> None:
    shape = config(
        "deepseek_v3", 7168, 18432, 61, 128, 128, 129280, n_routed_experts=256, n_shared_experts=1,
        num_experts_per_tok=8, moe_intermediate_size=2048, first_k_dense_replace=3, q_lora_rank=1536,
        topk_method="noaux_tc", **DEEPSEEK,
    )  # fmt: skip
    assert count_parameters(read_model(shape)) == pytest.approx(671.03e9, rel=1e-4)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"num_experts": 4, "decoder_sparse_step": 2}, [False, True, False, True]),
        ({"num_experts": 4, "mlp_only_layers": [0, 3]}, [False, True, True, False]),
        ({"n_routed_experts": 4, "first_k_dense_replace": 2}, [False, False, True, True]),
        ({"num_experts": 4, "moe_layers": [1]}, [False, True, False, False]),
        ({"num_experts": 4, "moe_layer_freq": [0, 1, 0, 1]}, [False, True, False, True]),
        ({}, [False] * 4),
        ({"num_experts": 4, "decoder_sparse_step": "two"}, [True] * 4),
    ],
)
def test_which_layers_have_experts(more: dict, expected: list[bool]) -> None:
    model = read_model(config("qwen3_moe", 64, 128, 4, 4, 2, 1000, moe_intermediate_size=32, **more))
    assert [has_experts(model, index) for index in range(4)] == expected


def test_an_mlp_without_gates_has_two_matrices() -> None:
    model = read_model(config("gpt2", 64, 256, 1, 4, 4, 1000, max_position_embeddings=128))
    names = [part.name.rsplit(".", 1)[-1] for part in layer_parts(model, 0)]
    assert "gate_proj" not in names
    assert "up_proj" in names


@given(st.integers(1, 64), st.integers(1, 8), st.integers(1, 512))
def test_elements_are_what_the_shape_says(inputs: int, outputs: int, copies: int) -> None:
    assert Part("x", inputs, outputs, "no", copies).elements == inputs * outputs * copies
