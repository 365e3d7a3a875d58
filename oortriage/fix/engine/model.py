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


def write_model(folder: Path) -> Path:
    """Write the model's folder: a ``config.json`` alone, for vLLM makes the weights itself (``dummy``)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n", encoding="utf-8")
    return folder
