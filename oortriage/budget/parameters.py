"""A model's weight matrices from its shape: name, size, and how vLLM divides each among tensor-parallel ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from oortriage.budget.model import LayerShape, Model

#: ``out``: the output features are divided; ``in``: the input features; ``kv``: the KV heads, and no further than to
#: one; ``no``: every rank has all of it; ``vocab``: the vocabulary, padded first.
Split = Literal["out", "in", "kv", "no", "vocab"]

#: MLPs of two matrices instead of three (their model files in vLLM 0.17.1 model_executor/models/).
UNGATED = frozenset((
    "bloom", "falcon", "gpt2", "gpt_bigcode", "gpt_neox", "gptj", "mpt", "nemotron", "nemotron_h", "opt",
    "persimmon", "phi", "starcoder2", "stablelm_epoch",
))  # fmt: skip
#: Biases of query, key and value that the config does not state.
QKV_BIAS = frozenset(("qwen2", "qwen2_moe", "qwen2_vl", "qwen2_5_vl", "qwen2_5_vl_text", "qwen2_vl_text", "qwen"))
#: Norms a layer has, where it is not two.
FOUR_NORMS = frozenset(("gemma2", "gemma3", "gemma3_text"))
ONE_NORM = frozenset(("phi", "cohere", "cohere2", "gptj"))
#: Norms of query and key.
QK_NORM = frozenset(("qwen3", "qwen3_moe", "gemma3", "gemma3_text", "qwen3_next", "qwen3_vl", "qwen3_vl_text"))
#: Models whose parameters are counted here to the last one (tests/budget/test_parameters.py).
COUNTED = frozenset((
    "qwen2", "qwen3", "qwen3_moe", "llama", "mistral", "mixtral", "gemma", "gemma2", "gemma3", "gemma3_text",
    "deepseek_v2", "deepseek_v3", "phi3", "gpt_oss", "kimi_k2",
))  # fmt: skip
#: vLLM pads the vocabulary to a multiple of this (vLLM 0.22.1 layers/vocab_parallel_embedding.py).
VOCABULARY_UNIT = 64


class Part(msgspec.Struct, frozen=True):
    """One matrix or vector. ``name`` as in the checkpoint; elements of input and output; ``copies`` of it (experts).

    ``linear``: quantised formats apply to it.
    """

    name: str
    inputs: int
    outputs: int
    split: Split
    copies: int = 1
    linear: bool = True
    kv_heads: int = 0

    @property
    def elements(self) -> int:
        """All elements, before they are divided."""
        return self.inputs * self.outputs * self.copies


def layer_parts(model: Model, index: int) -> Iterator[Part]:
    """List the parts of one decoder layer."""
    layer, prefix = model.layers[index], f"model.layers.{index}"
    pattern = model.raw.get("hybrid_override_pattern")
    lone = isinstance(pattern, str) and len(pattern) == model.num_layers  # each layer is one thing only
    if layer.kind not in ("state", "none"):
        yield from _attention(model, layer, f"{prefix}.self_attn")
    if layer.kind == "state" or any(one.kind == "state" for one in layer.more):
        yield from _state(model, f"{prefix}.mixer")
    if not lone or layer.kind == "none":
        yield from _feed_forward(model, index, f"{prefix}.mlp")
    norms = 4 if model.model_type in FOUR_NORMS else 1 if model.model_type in ONE_NORM or lone else 2
    yield Part(f"{prefix}.norms", 1, norms * model.hidden_size, "no", linear=False)


def outer_parts(model: Model, *, first: bool = True, last: bool = True) -> Iterator[Part]:
    """List what stands outside the layers: embeddings on the first stage, final norm and head on the last."""
    if first or (last and model.tie_word_embeddings):
        yield Part("model.embed_tokens", model.vocab_size, model.hidden_size, "vocab", linear=False)
    if first and (model.model_type in {"gpt2", "opt"}):
        yield Part("model.positions", model.max_position_embeddings, model.hidden_size, "no", linear=False)
    if last:
        yield Part("model.norm", 1, model.hidden_size, "no", linear=False)
        if not model.tie_word_embeddings:
            yield Part("lm_head", model.hidden_size, model.vocab_size, "vocab", linear=False)


def count_parameters(model: Model) -> int:
    """Count the parameters of the language model as its checkpoint has them."""
    parts = [*outer_parts(model)]
    for index in range(model.num_layers):
        parts += layer_parts(model, index)
    return sum(part.elements for part in parts)


def _attention(model: Model, layer: LayerShape, prefix: str) -> Iterator[Part]:
    hidden, heads = model.hidden_size, model.heads
    if count(model.raw, "kv_lora_rank"):
        yield from _latent(model, prefix)
        return
    size = layer.head_size or model.head_size
    value = layer.v_head_size or size
    few = layer.kv_heads or model.kv_heads
    gate = 2 if model.model_type.startswith(("qwen3_next", "qwen3_5")) else 1
    yield Part(f"{prefix}.q_proj", hidden, heads * size * gate, "out")
    yield Part(f"{prefix}.k_proj", hidden, few * size, "kv", kv_heads=few)
    yield Part(f"{prefix}.v_proj", hidden, few * value, "kv", kv_heads=few)
    yield Part(f"{prefix}.o_proj", heads * value, hidden, "in")
    stated = model.raw.get("attention_bias") is True
    if model.model_type in QKV_BIAS or stated or model.raw.get("qkv_bias") is True:
        yield Part(f"{prefix}.bias", 1, heads * size + few * (size + value), "out", linear=False)
    if stated and model.model_type not in QKV_BIAS:
        yield Part(f"{prefix}.o_bias", 1, hidden, "no", linear=False)
    if model.model_type in QK_NORM:
        yield Part(f"{prefix}.qk_norm", 1, 2 * size, "no", linear=False)
    if model.model_type == "gpt_oss":
        yield Part(f"{prefix}.sinks", 1, heads, "out", linear=False)


def _latent(model: Model, prefix: str) -> Iterator[Part]:
    """List the matrices of MLA; the two that compress are on every rank (vLLM 0.22.1 models/deepseek_v2.py)."""
    raw, hidden, heads = model.raw, model.hidden_size, model.heads
    rank, rope = count(raw, "kv_lora_rank"), count(raw, "qk_rope_head_dim")
    plain, value, query = count(raw, "qk_nope_head_dim"), count(raw, "v_head_dim"), count(raw, "q_lora_rank")
    if query:
        yield Part(f"{prefix}.q_a_proj", hidden, query, "no")
        yield Part(f"{prefix}.q_a_layernorm", 1, query, "no", linear=False)
        yield Part(f"{prefix}.q_b_proj", query, heads * (plain + rope), "out")
    else:
        yield Part(f"{prefix}.q_proj", hidden, heads * (plain + rope), "out")
    yield Part(f"{prefix}.kv_a_proj_with_mqa", hidden, rank + rope, "no")
    yield Part(f"{prefix}.kv_a_layernorm", 1, rank, "no", linear=False)
    yield Part(f"{prefix}.kv_b_proj", rank, heads * (plain + value), "out")
    yield Part(f"{prefix}.o_proj", heads * value, hidden, "in")


def _state(model: Model, prefix: str) -> Iterator[Part]:
    """List the two large matrices of a layer that keeps a state: Mamba, or linear attention (Qwen3-Next)."""
    raw, hidden = model.raw, model.hidden_size
    keys = count(raw, "linear_num_key_heads") * count(raw, "linear_key_head_dim")
    values = count(raw, "linear_num_value_heads") * count(raw, "linear_value_head_dim")
    if keys and values:
        yield Part(f"{prefix}.in_proj_qkvz", hidden, 2 * keys + 2 * values, "out")
        yield Part(f"{prefix}.out_proj", values, hidden, "in")
        return
    inner = count(raw, "mamba_d_ssm", "d_inner") or (
        count(raw, "mamba_num_heads", "mamba_n_heads") * count(raw, "mamba_head_dim", "mamba_d_head")
        or (count(raw, "mamba_expand", "expand") or 2) * hidden
    )
    groups = count(raw, "n_groups", "mamba_n_groups") or 1
    state = count(raw, "ssm_state_size", "mamba_d_state", "state_size", "d_state") or 16
    yield Part(f"{prefix}.in_proj", hidden, 2 * inner + 2 * groups * state, "out")
    yield Part(f"{prefix}.out_proj", inner, hidden, "in")


def _feed_forward(model: Model, index: int, prefix: str) -> Iterator[Part]:
    if has_experts(model, index):
        yield from _experts(model, prefix)
        return
    size = count(model.raw, "intermediate_size_mlp") or model.intermediate_size or 4 * model.hidden_size
    yield from _mlp(model, prefix, size)


def _mlp(model: Model, prefix: str, size: int, copies: int = 1) -> Iterator[Part]:
    if model.model_type not in UNGATED:
        yield Part(f"{prefix}.gate_proj", model.hidden_size, size, "out", copies)
    yield Part(f"{prefix}.up_proj", model.hidden_size, size, "out", copies)
    yield Part(f"{prefix}.down_proj", size, model.hidden_size, "in", copies)


def _experts(model: Model, prefix: str) -> Iterator[Part]:
    raw, hidden = model.raw, model.hidden_size
    size = model.expert_size or model.intermediate_size
    yield from _mlp(model, f"{prefix}.experts.0", size, model.experts)
    yield Part(f"{prefix}.gate", hidden, model.experts, "no", linear=False)
    if model.model_type == "gpt_oss":
        biases = 2 * size + hidden
        yield Part(f"{prefix}.experts.bias", 1, biases, "out", model.experts, linear=False)
        yield Part(f"{prefix}.gate_bias", 1, model.experts, "no", linear=False)
    if raw.get("topk_method") == "noaux_tc":
        yield Part(f"{prefix}.gate.e_score_correction_bias", 1, model.experts, "no", linear=False)
    if shared := count(raw, "shared_expert_intermediate_size"):
        yield from _mlp(model, f"{prefix}.shared_expert", shared)
        yield Part(f"{prefix}.shared_expert_gate", hidden, 1, "no", linear=False)
    elif model.shared_experts:
        yield from _mlp(model, f"{prefix}.shared_experts", size * model.shared_experts)
    elif model.model_type.startswith("llama4"):
        yield from _mlp(model, f"{prefix}.shared_expert", size)


def has_experts(model: Model, index: int) -> bool:
    """Tell whether a layer's MLP is one of experts."""
    raw = model.raw
    if not model.experts or index < model.dense_layers:
        return False
    if isinstance(listed := raw.get("mlp_only_layers"), list) and index in listed:
        return False
    if isinstance(listed := raw.get("moe_layers"), list) and listed:
        return index in listed
    if isinstance(listed := raw.get("moe_layer_freq"), list):
        return bool(listed[index]) if index < len(listed) else True
    step = count(raw, "decoder_sparse_step", "interleave_moe_layer_step")
    if step > 1:
        return (index + 1) % step == 0
    every = count(raw, "moe_layer_freq")
    return every <= 1 or index % every == 0


def count(raw: dict[str, Any], *names: str) -> int:
    """Return the first of several counts of a config; 0 where none is there or it is nonsense."""
    for name in names:
        value = raw.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 30:
            return value
    return 0
