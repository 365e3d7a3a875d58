"""What a config leaves to its class in transformers: multimodal ones state little of their language model.

The figures are those of transformers' ``configuration_*.py``, checked on 2026-11-30. They count only where the key is
not there at all: a key that says ``null`` means none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_GEMMA: dict[str, Any] = {
    "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
    "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096,
}  # fmt: skip
DEFAULTS: dict[str, dict[str, Any]] = {
    "gemma2": {**_GEMMA, "vocab_size": 256000, "max_position_embeddings": 8192},
    "gemma3_text": {**_GEMMA, "vocab_size": 262208, "max_position_embeddings": 131072},
    "llama": {
        "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
        "vocab_size": 32000, "max_position_embeddings": 2048,
    },
    "mistral": {
        "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 131072, "sliding_window": 4096,
    },
    "qwen2": {
        "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 32, "vocab_size": 151936, "max_position_embeddings": 32768, "use_sliding_window": False,
        "sliding_window": 4096, "max_window_layers": 28,
    },
}  # fmt: skip
#: Which of them are worth a note.
_TOLD = ("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size", "sliding_window")


def with_defaults(text: Mapping[str, Any], model_type: str) -> tuple[dict[str, Any], list[str]]:
    """Fill in what a config leaves to its class; the strings are notes of what was filled in."""
    missing = {key: value for key, value in DEFAULTS.get(model_type, {}).items() if key not in text}
    told = [f"{key} {missing[key]}" for key in _TOLD if key in missing]
    if not text.get("use_sliding_window", missing.get("use_sliding_window", True)):
        told = [one for one in told if not one.startswith("sliding_window")]
    notes = [f"left out, so transformers' default for {model_type}: {', '.join(told)}"] if told else []
    return {**missing, **text}, notes
