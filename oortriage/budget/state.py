"""States of fixed size that layers without a KV cache keep for each request: Mamba, linear attention, convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, Literal

import msgspec

from oortriage.kernels.model_config import optional_count

#: ``mamba1``, ``mamba2``, ``gdn`` (gated delta net), ``kda`` (Kimi's), ``linear`` (MiniMax's), ``conv`` (short
#: convolution).
Family = Literal["mamba1", "mamba2", "gdn", "kda", "linear", "conv"]


class State(msgspec.Struct, frozen=True):
    """The sizes of a state, in elements before tensor parallelism. ``recurrent_dtype``: empty for the model's."""

    family: Family
    inner: int = 0
    heads: int = 0
    head_size: int = 0
    size: int = 0
    groups: int = 0
    kernel: int = 0
    key_heads: int = 0
    key_size: int = 0
    recurrent_dtype: str = ""


def state_elements(state: State, tp: int) -> tuple[int, int]:
    """Return the elements of the convolution's and of the recurrent state on one rank.

    The shapes are those of vLLM 0.17.1 model_executor/layers/mamba/mamba_utils.py, MambaStateShapeCalculator.
    """
    past = max(0, state.kernel - 1)
    if state.family == "linear":
        return 0, state.heads // tp * state.head_size * state.head_size
    if state.family == "conv":
        return past * _cut(state.inner, tp), 0
    if state.family == "mamba1":
        return past * _cut(state.inner, tp), _cut(state.inner, tp) * state.size
    if state.family == "mamba2":
        # groups that do not divide are given to every rank once
        groups = state.groups if state.groups % tp == 0 else max(tp, state.groups)
        width = _cut(state.inner + 2 * groups * state.size, tp)
        return past * width, _cut(state.heads, tp) * state.head_size * state.size
    if state.family == "gdn":
        width = 2 * state.key_size * state.key_heads + state.head_size * state.heads
        return past * _cut(width, tp), _cut(state.heads, tp) * state.head_size * state.key_size
    return 3 * past * _cut(state.heads * state.head_size, tp), _cut(state.heads, tp) * state.head_size * state.head_size


def _cut(width: int, tp: int) -> int:
    return ceil(width / tp)


def read_state(text: Mapping[str, Any], model_type: str) -> State | None:
    """Read the sizes of a model's states from its config; None when it does not tell them.

    The names are those that vLLM 0.17.1 reads in each model's get_mamba_state_shape_from_config.
    """
    config = dict(text)

    def count(*names: str) -> int:
        return optional_count(config, *names)

    hidden = count("hidden_size", "d_model")
    found: State | None = None
    if count("linear_num_value_heads") and count("linear_num_key_heads"):  # Qwen3-Next, Qwen3.5
        found = State(
            "gdn",
            heads=count("linear_num_value_heads"),
            head_size=count("linear_value_head_dim"),
            key_heads=count("linear_num_key_heads"),
            key_size=count("linear_key_head_dim"),
            kernel=count("linear_conv_kernel_dim"),
            recurrent_dtype=_dtype(text, "mamba_ssm_dtype"),
        )
    elif isinstance(inner := text.get("linear_attn_config"), dict):  # Kimi Linear
        found = State(
            "kda",
            heads=optional_count(inner, "num_heads"),
            head_size=optional_count(inner, "head_dim"),
            kernel=optional_count(inner, "short_conv_kernel_size"),
            recurrent_dtype="float32",
        )
    elif model_type.startswith("minimax"):
        found = State("linear", heads=count("num_attention_heads"), head_size=count("head_dim"))
    elif count("conv_L_cache"):  # LFM2
        found = State("conv", inner=count("conv_dim", "hidden_size"), kernel=count("conv_L_cache"))
    elif model_type in ("mamba", "falcon_mamba"):
        inner_size = count("intermediate_size") or 2 * hidden
        found = State("mamba1", inner=inner_size, size=count("state_size"), kernel=count("conv_kernel"))
    elif model_type == "jamba":
        found = State(
            "mamba1",
            inner=_expanded(text, hidden),
            size=count("mamba_d_state"),
            kernel=count("mamba_d_conv"),
        )
    elif count("mamba_d_state", "ssm_state_size", "state_size"):
        heads = count("mamba_n_heads", "mamba_num_heads", "n_mamba_heads", "num_heads")
        size = count("mamba_d_head", "mamba_head_dim", "mamba_headdim", "head_dim")
        found = State(
            "mamba2",
            inner=heads * size if model_type.startswith("nemotron_h") else _expanded(text, hidden),
            heads=heads,
            head_size=size,
            size=count("mamba_d_state", "ssm_state_size", "state_size"),
            groups=count("mamba_n_groups", "mamba_ngroups", "n_groups"),
            kernel=count("mamba_d_conv", "conv_kernel"),
            # NemotronH's own default (vLLM 0.17.1 model_executor/models/config.py)
            recurrent_dtype=_dtype(text, "mamba_ssm_cache_dtype") or "float16"
            if model_type.startswith("nemotron_h")
            else "",
        )
    return found if found and sum(state_elements(found, 1)) else None


def _expanded(text: Mapping[str, Any], hidden: int) -> int:
    """Return the inner width: stated, or a multiple of the hidden size."""
    stated = optional_count(dict(text), "mamba_d_ssm")
    if stated:
        return stated
    factor = text.get("mamba_expand", text.get("expand", 2))
    usable = isinstance(factor, int | float) and not isinstance(factor, bool) and 0 < factor <= 64
    return int(hidden * factor) if usable else 0


def _dtype(text: Mapping[str, Any], name: str) -> str:
    said = text.get(name)
    return said if said in ("float32", "float16", "bfloat16") else ""
