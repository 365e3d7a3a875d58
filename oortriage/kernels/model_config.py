"""Reads a model's ``config.json``: which kinds of attention layers it has, and how wide they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from oortriage.errors import InputError

#: How ``layer_types`` names the layers that see a window only.
_SLIDING = ("sliding_attention", "local_attention", "chunked_attention")


class LayerKind(msgspec.Struct, frozen=True):
    """Attention layers of one shape. ``window`` is in tokens, 0 for full attention; ``count`` of them."""

    name: str
    head_size: int
    heads: int
    kv_heads: int
    window: int
    count: int

    @property
    def q_per_kv(self) -> int:
        """Query heads that share a KV head."""
        return max(1, self.heads // max(1, self.kv_heads))


class ModelConfig(msgspec.Struct, frozen=True):
    """What a ``config.json`` says of attention. ``dtype`` is the weights' type; ``notes`` what was assumed."""

    architecture: str
    dtype: str
    layers: tuple[LayerKind, ...]
    softcap: float = 0.0
    notes: tuple[str, ...] = ()


def read_model_config(path: Path) -> ModelConfig:
    """Read a local ``config.json``, or the one in a model's folder.

    Raises:
        InputError: it is not there, no JSON, or says nothing of attention heads.
    """
    file = path / "config.json" if path.is_dir() else path
    try:
        whole = msgspec.json.decode(file.read_bytes())
    except OSError as problem:
        raise InputError(f"{file}: cannot be read: {problem.strerror or problem}") from problem
    except msgspec.DecodeError as problem:
        raise InputError(f"{file}: not JSON: {problem}") from problem
    if not isinstance(whole, dict):
        raise InputError(f"{file}: not a model's config: it holds no object")
    return model_config(whole, str(file))


def model_config(whole: dict[str, Any], name: str) -> ModelConfig:
    """Take the text part of a config apart.

    Raises:
        InputError: the heads are not told; ``name`` is in the message.
    """
    text = _text_part(whole)
    heads = _integer(text, "num_attention_heads", "n_head", "num_heads")
    if not heads:
        raise InputError(f"{name}: no num_attention_heads in it: which attention it has cannot be told")
    hidden = _integer(text, "hidden_size", "n_embd", "d_model")
    notes = []
    head = _integer(text, "head_dim")
    if not head:
        if not hidden:
            raise InputError(f"{name}: neither head_dim nor hidden_size in it")
        head = hidden // heads
        notes.append(f"head size {head} = hidden_size / num_attention_heads")
    kv_heads = _integer(text, "num_key_value_heads", "n_head_kv", "num_kv_heads") or heads
    window = _integer(text, "sliding_window") if text.get("use_sliding_window", True) else 0
    depth = _integer(text, "num_hidden_layers", "n_layer", "num_layers") or 1
    sliding = _sliding_count(text, depth, window)
    global_head = _integer(text, "global_head_dim") or head
    global_kv = _integer(text, "num_global_key_value_heads") or kv_heads
    layers = []
    if sliding < depth:
        layers.append(LayerKind("full attention", global_head, heads, global_kv, 0, depth - sliding))
    if sliding:
        layers.append(LayerKind(f"sliding window {window}", head, heads, kv_heads, window, sliding))
    architectures = whole.get("architectures") or text.get("architectures") or [""]
    dtype = str(text.get("dtype") or text.get("torch_dtype") or whole.get("dtype") or whole.get("torch_dtype") or "")
    softcap = text.get("attn_logit_softcapping")
    return ModelConfig(
        architecture=str(architectures[0]) if isinstance(architectures, list) and architectures else "",
        dtype=dtype.removeprefix("torch."),
        layers=tuple(layers),
        softcap=float(softcap) if isinstance(softcap, int | float) else 0.0,
        notes=tuple(notes),
    )


def _text_part(whole: dict[str, Any]) -> dict[str, Any]:
    """Return the language model's part of a multimodal config."""
    for key in ("text_config", "language_config", "llm_config", "thinker_config"):
        part = whole.get(key)
        if isinstance(part, dict):
            return _text_part(part)
    return whole


def _sliding_count(text: dict[str, Any], depth: int, window: int) -> int:
    """Count the layers that see a window only."""
    if not window:
        return 0
    kinds = text.get("layer_types")
    if isinstance(kinds, list) and kinds:
        return sum(kind in _SLIDING for kind in kinds)
    pattern = _integer(text, "sliding_window_pattern", "interleaved_sliding_window_pattern", "_sliding_window_pattern")
    if pattern:
        return depth - depth // pattern  # every pattern-th layer is a full one
    if str(text.get("model_type", "")).startswith("gemma2"):
        return depth - depth // 2
    if str(text.get("model_type", "")).startswith("gemma3"):
        return depth - depth // 6
    return depth


def _integer(config: dict[str, Any], *names: str) -> int:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0
