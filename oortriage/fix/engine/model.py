"""A model small enough for any card, with the attention of Gemma 3: sliding layers, and one full one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: Shapes that vLLM's attention sees are Gemma 3's (head size 256, window 1024, every sixth layer full); the rest is
#: as small as it goes. Field names are those of google/gemma-3-1b-it's config.json.
CONFIG: dict[str, Any] = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attn_logit_softcapping": None,
    "bos_token_id": 2,
    "eos_token_id": 1,
    "pad_token_id": 0,
    "final_logit_softcapping": None,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 512,
    "initializer_range": 0.02,
    "intermediate_size": 1024,
    "max_position_embeddings": 8192,
    "num_attention_heads": 4,
    "num_hidden_layers": 7,
    "num_key_value_heads": 2,
    "query_pre_attn_scalar": 256,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1_000_000.0,
    "rope_local_base_freq": 10_000.0,
    "rope_scaling": None,
    "sliding_window": 1024,
    "sliding_window_pattern": 6,
    "torch_dtype": "float32",
    "use_cache": True,
    "vocab_size": 1024,
}


def weights() -> dict[str, list[int]]:
    """List the tensors of a checkpoint by name with their shapes, [out, in] as Gemma 3's own files have them."""
    hidden, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    query = CONFIG["num_attention_heads"] * CONFIG["head_dim"]
    keys = CONFIG["num_key_value_heads"] * CONFIG["head_dim"]
    found = {"model.embed_tokens.weight": [CONFIG["vocab_size"], hidden], "model.norm.weight": [hidden]}
    layer = {
        "self_attn.q_proj": [query, hidden],
        "self_attn.k_proj": [keys, hidden],
        "self_attn.v_proj": [keys, hidden],
        "self_attn.o_proj": [hidden, query],
        "self_attn.q_norm": [CONFIG["head_dim"]],
        "self_attn.k_norm": [CONFIG["head_dim"]],
        "mlp.gate_proj": [inner, hidden],
        "mlp.up_proj": [inner, hidden],
        "mlp.down_proj": [hidden, inner],
        "input_layernorm": [hidden],
        "post_attention_layernorm": [hidden],
        "pre_feedforward_layernorm": [hidden],
        "post_feedforward_layernorm": [hidden],
    }
    for index in range(CONFIG["num_hidden_layers"]):
        found |= {f"model.layers.{index}.{name}.weight": shape for name, shape in layer.items()}
    return found


def write_model(folder: Path) -> Path:
    """Write the model's folder with its ``config.json``; the weights are made where torch is, by the client."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n", encoding="utf-8")
    return folder
