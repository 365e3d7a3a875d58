"""Reads a model's ``config.json``: which kinds of attention layers it has, and how wide they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from oortriage.errors import InputError

#: How ``layer_types`` names the layers that see a window only, and those without attention over a KV cache.
_SLIDING = ("sliding_attention", "local_attention", "chunked_attention")
_NO_ATTENTION = ("linear_attention", "mamba", "mamba2", "conv", "recurrent", "mlp", "moe", "ssm")
#: Where a multimodal config keeps its language model.
_PARTS = ("text_config", "language_config", "llm_config", "thinker_config")
#: No model has more of anything that is counted here.
_MOST = 1 << 24


class LayerKind(msgspec.Struct, frozen=True):
    """Attention layers of one shape. ``window`` is in tokens, 0 for full attention; ``count`` of them.

    ``v_head_size`` is the width of a value where it differs from a key's, else 0.
    """

    name: str
    head_size: int
    heads: int
    kv_heads: int
    window: int
    count: int
    v_head_size: int = 0

    @property
    def q_per_kv(self) -> int:
        """Query heads that share a KV head."""
        return max(1, self.heads // max(1, self.kv_heads))


class ModelConfig(msgspec.Struct, frozen=True):
    """What a ``config.json`` says of attention. ``dtype`` is the weights' type; ``notes`` what was assumed.

    ``latent``: keys and values are parts of one compressed vector (DeepSeek's MLA), and other kernels compute it.
    """

    architecture: str
    dtype: str
    layers: tuple[LayerKind, ...]
    softcap: float = 0.0
    latent: bool = False
    notes: tuple[str, ...] = ()


def read_model_config(path: Path) -> ModelConfig:
    """Read a local ``config.json``, or the one in a model's folder.

    Raises:
        InputError: it is not there, no JSON, or says nothing of attention heads.
    """
    whole = load_config(path)
    return model_config(whole, str(path / "config.json" if path.is_dir() else path))


def load_config(path: Path) -> dict[str, Any]:
    """Read a ``config.json``, or the one in a model's folder, as it is.

    Raises:
        InputError: it is not there, no JSON, or holds no object.
    """
    file = path / "config.json" if path.is_dir() else path
    try:
        whole = msgspec.json.decode(file.read_bytes())
    except OSError as problem:
        raise InputError(f"{file}: cannot be read: {problem.strerror or problem}") from problem
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"{file}: not JSON: {problem}") from problem
    except RecursionError as problem:
        raise InputError(f"{file}: not a model's config: nested too deeply") from problem
    if not isinstance(whole, dict):
        raise InputError(f"{file}: not a model's config: it holds no object")
    return whole


def model_config(whole: dict[str, Any], name: str) -> ModelConfig:
    """Take the text part of a config apart.

    Raises:
        InputError: the heads are not told; ``name`` is in the message.
    """
    text = text_part(whole)
    heads = stated_count(text, name, "num_attention_heads", "n_head", "num_heads")
    if not heads:
        raise InputError(f"{name}: no num_attention_heads in it: which attention it has cannot be told")
    notes: list[str] = []
    depth, sliding_layers, window = _layers(text, name, notes)
    latent = optional_count(text, "kv_lora_rank")
    softcap = text.get("attn_logit_softcapping")
    common: dict[str, Any] = {
        "architecture": architecture_name(whole, text),
        "dtype": dtype_name(text) or dtype_name(whole),
        "softcap": float(softcap) if isinstance(softcap, int | float) and 0 < softcap < _MOST else 0.0,
    }
    if latent:
        rotary = optional_count(text, "qk_rope_head_dim")
        notes.append(f"latent attention: a key is {latent} + {rotary} elements, of which a value is the first {latent}")
        layer = LayerKind("latent attention", latent + rotary, heads, 1, 0, depth, latent)
        return ModelConfig(layers=(layer,), latent=True, notes=tuple(notes), **common)
    head = stated_count(text, name, "head_dim")
    if not head:
        hidden = stated_count(text, name, "hidden_size", "n_embd", "d_model")
        head = hidden // heads
        if not head:
            raise InputError(f"{name}: neither head_dim nor a hidden_size of at least one element a head in it")
        notes.append(f"head size {head} = hidden_size / num_attention_heads")
    kv_heads = stated_count(text, name, "num_key_value_heads", "n_head_kv", "num_kv_heads") or heads
    full = depth - sliding_layers
    layers = []
    if full:
        wide, few = optional_count(text, "global_head_dim"), optional_count(text, "num_global_key_value_heads")
        layers.append(LayerKind("full attention", wide or head, heads, few or kv_heads, 0, full))
    if sliding_layers:
        layers.append(LayerKind(f"sliding window {window}", head, heads, kv_heads, window, sliding_layers))
    return ModelConfig(layers=tuple(layers), notes=tuple(notes), **common)


def text_part(whole: dict[str, Any]) -> dict[str, Any]:
    """Return the language model's part of a multimodal config."""
    for _ in _PARTS:
        inner = next((part for key in _PARTS if isinstance(part := whole.get(key), dict)), None)
        if inner is None:
            break
        whole = inner
    return whole


def architecture_name(whole: dict[str, Any], text: dict[str, Any]) -> str:
    """Return the first architecture that a config names; empty when it names none."""
    for config in (whole, text):
        names = config.get("architectures")
        if isinstance(names, list) and names and isinstance(names[0], str):
            return names[0]
    return ""


def dtype_name(config: dict[str, Any]) -> str:
    """Return the weights' type as a config states it; empty when it does not."""
    said = config.get("dtype") or config.get("torch_dtype")
    return said.removeprefix("torch.") if isinstance(said, str) else ""


def _layers(text: dict[str, Any], name: str, notes: list[str]) -> tuple[int, int, int]:
    """Count the layers with attention and those of them that see a window only; and say how wide it is."""
    window = optional_count(text, "sliding_window") if text.get("use_sliding_window", True) else 0
    kinds = text.get("layer_types")
    if isinstance(kinds, list) and kinds:
        attending = [kind for kind in kinds if kind not in _NO_ATTENTION]
        if not attending:
            raise InputError(f"{name}: its layer_types name no attention")
        if len(attending) < len(kinds):
            notes.append(f"{len(kinds) - len(attending)} of {len(kinds)} layers have no attention over a KV cache")
        return len(attending), sum(kind in _SLIDING for kind in attending) if window else 0, window
    depth = stated_count(text, name, "num_hidden_layers", "n_layer", "num_layers") or 1
    return depth, _sliding_count(text, depth) if window else 0, window


def _sliding_count(text: dict[str, Any], depth: int) -> int:
    """Count the layers that see a window only, of a model that has a window."""
    names = ("sliding_window_pattern", "interleaved_sliding_window_pattern", "_sliding_window_pattern")
    pattern = optional_count(text, *names)
    if pattern:
        return depth - depth // pattern  # every pattern-th layer is a full one
    letters = text.get("sliding_window_pattern")
    if isinstance(letters, str) and letters and set(letters) <= {"L", "G"}:
        return sum(letters[index % len(letters)] == "L" for index in range(min(depth, _MOST)))
    kind = str(text.get("model_type", ""))
    if kind.startswith("gemma2"):
        return depth - depth // 2
    if kind.startswith("gemma3"):
        return depth - depth // 6
    if kind.startswith("qwen2"):
        return max(0, depth - optional_count(text, "max_window_layers"))
    return depth


def optional_count(config: dict[str, Any], *names: str) -> int:
    """Return the first of these that is a plain count; 0 when none is."""
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST:
            return value
    return 0


def stated_count(config: dict[str, Any], file: str, *names: str) -> int:
    """Return a count that must be one where it is stated."""
    stated = next((name for name in names if config.get(name) is not None), "")
    value = optional_count(config, stated) if stated else 0
    if stated and not value:
        shown = repr(config[stated])
        raise InputError(f"{file}: {stated} is {shown[:40]}{'…' if len(shown) > 40 else ''}, not a count")
    return value
