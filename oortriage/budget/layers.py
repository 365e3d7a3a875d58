"""Which cache each layer of a model has, read from its ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from oortriage.errors import InputError
from oortriage.kernels.model_config import optional_count

#: What ``layer_types`` and its relatives call a layer, and what it keeps.
KINDS = {
    "full_attention": "full", "attention": "full", "global_attention": "full", "full": "full", "global": "full",
    "sliding_attention": "sliding", "local_attention": "sliding", "sliding_window": "sliding", "sliding": "sliding",
    "local": "sliding", "chunked_attention": "chunked", "linear_attention": "state", "mamba": "state",
    "mamba2": "state", "conv": "state", "recurrent": "state", "ssm": "state", "hybrid": "both", "mlp": "none",
    "moe": "none", "m": "state", "*": "full", "-": "none", "e": "none",
}  # fmt: skip

#: Models whose every n-th layer sees everything when the config does not say so (their code in transformers).
_PATTERN_OF = {"gemma2": 2, "gemma3": 6, "gemma3n": 5, "cohere2": 4, "olmo3": 4, "gpt_oss": 2}


class Kinds(msgspec.Struct, frozen=True):
    """One kind a layer: full, sliding, chunked, state, both (a state and attention), none, shared."""

    order: tuple[str, ...]
    window: int = 0
    chunk: int = 0
    notes: tuple[str, ...] = ()


def read_kinds(text: Mapping[str, Any], model_type: str, depth: int, name: str) -> Kinds:
    """Tell what each of ``depth`` layers keeps; ``window`` and ``chunk`` in tokens.

    Raises:
        InputError: the config names fewer layers than it says the model has, or layers of a kind nobody knows.
    """
    config = dict(text)
    notes: list[str] = []
    window = optional_count(config, "sliding_window", "sliding_window_size") if _uses_window(text) else 0
    chunk = optional_count(config, "attention_chunk_size")
    order = _named(config, model_type, depth, name, notes)
    if order is None:
        order = _patterned(config, model_type, depth, window=window, chunk=chunk)
    order = [_without_window(kind, window, chunk) for kind in order]
    shared = optional_count(config, "num_kv_shared_layers")
    if 0 < shared < depth:
        order[depth - shared :] = ["shared"] * shared
        notes.append(f"the last {shared} layers read the cache of others")
    return Kinds(tuple(order), window, chunk, tuple(notes))


def _uses_window(text: Mapping[str, Any]) -> bool:
    return bool(text.get("use_sliding_window", True))


def _without_window(kind: str, window: int, chunk: int) -> str:
    """Take a layer with a window nobody states, or none, for a full one, as the engine does."""
    if (kind == "sliding" and not window) or (kind == "chunked" and not chunk):
        return "full"
    return kind


def _named(config: dict[str, Any], model_type: str, depth: int, name: str, notes: list[str]) -> list[str] | None:
    """Read a list of layers; None when there is none."""
    for key in ("layer_types", "layers_block_type", "hybrid_override_pattern"):
        listed = config.get(key)
        if isinstance(listed, list | str) and listed:
            return _translated(listed, key, depth, name, notes)
    numbers = config.get("attn_type_list")  # MiniMax: 0 is linear attention, 1 is softmax
    if isinstance(numbers, list) and numbers:
        return _translated(["full" if one else "ssm" for one in numbers], "attn_type_list", depth, name, notes)
    return _indexed(config, model_type, depth)


def _translated(listed: Sequence[Any], key: str, depth: int, name: str, notes: list[str]) -> list[str]:
    if len(listed) < depth:
        raise InputError(f"{name}: {key} names {len(listed)} layers, the model has {depth}")
    if len(listed) > depth:
        notes.append(f"{key} names {len(listed)} layers, of which the first {depth} are the model's")
    order = []
    for one in listed[:depth]:
        kind = KINDS.get(one.lower()) if isinstance(one, str) else None
        if kind is None:
            raise InputError(f"{name}: {key} has a layer of the kind {str(one)[:40]!r}, which is not known")
        order.append(kind)
    return order


def _indexed(config: dict[str, Any], model_type: str, depth: int) -> list[str] | None:
    """Read layouts that name the attention layers by number, or by how often they come."""
    inner = config.get("linear_attn_config")
    if isinstance(inner, dict) and isinstance(inner.get("full_attn_layers"), list):  # Kimi Linear counts from 1
        full = {one - 1 for one in inner["full_attn_layers"] if isinstance(one, int)}
        return ["full" if index in full else "state" for index in range(depth)]
    for key in ("attn_layer_indices", "full_attn_idxs"):
        listed = config.get(key)
        if isinstance(listed, list) and listed:
            return ["full" if index in listed else "state" for index in range(depth)]
    period = optional_count(config, "attn_layer_period")
    if period:  # Jamba
        offset = optional_count(config, "attn_layer_offset")
        return ["full" if index % period == offset else "state" for index in range(depth)]
    interval = optional_count(config, "full_attention_interval")
    if interval:  # Qwen3-Next
        return ["state" if (index + 1) % interval else "full" for index in range(depth)]
    if model_type.startswith("falcon_h1"):
        return ["both"] * depth
    if model_type in ("mamba", "mamba2", "falcon_mamba"):
        return ["state"] * depth
    blocks = config.get("block_configs")
    if isinstance(blocks, list) and len(blocks) >= depth:
        return [_block_kind(block) for block in blocks[:depth]]
    return None


def _block_kind(block: Any) -> str:
    """Tell what a block of a pruned model keeps (``block_configs`` of Nemotron's DeciLM)."""
    attention = block.get("attention") if isinstance(block, dict) else None
    if isinstance(attention, dict) and (attention.get("no_op") or attention.get("replace_with_linear")):
        return "none"
    return "full"


def _patterned(config: dict[str, Any], model_type: str, depth: int, *, window: int, chunk: int) -> list[str]:
    """Follow a pattern: stated, or the architecture's own."""
    if chunk:  # Llama 4: layers without rotary embedding see everything
        rotary = config.get("no_rope_layers")
        if isinstance(rotary, list) and len(rotary) >= depth:
            return ["chunked" if one else "full" for one in rotary[:depth]]
        return ["chunked" if (index + 1) % 4 else "full" for index in range(depth)]
    if not window:
        return ["full"] * depth
    letters = config.get("sliding_window_pattern")
    if isinstance(letters, str) and letters and set(letters) <= {"L", "G"}:
        return ["sliding" if letters[index % len(letters)] == "L" else "full" for index in range(depth)]
    every = optional_count(
        config, "sliding_window_pattern", "interleaved_sliding_window_pattern", "_sliding_window_pattern"
    )
    if not every:
        every = _PATTERN_OF.get(model_type.removesuffix("_text"), 0)
    if every:
        return ["sliding" if (index + 1) % every else "full" for index in range(depth)]
    if model_type.startswith(("qwen2", "qwen3")):
        first = optional_count(config, "max_window_layers")
        return ["sliding" if index >= first else "full" for index in range(depth)]
    return ["sliding"] * depth
