"""States of fixed size: the shapes of vLLM's own calculator, worked out by hand for public models."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.budget.state import State, read_state, state_elements
from tests.budget.configs import LLAMA_3_8B, NEMOTRON_NANO_9B, QWEN3_5_35B, QWEN3_NEXT

BAMBA = {
    "model_type": "bamba", "hidden_size": 4096, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": 128,
    "mamba_d_head": 64, "mamba_d_state": 128, "mamba_d_conv": 4,
}  # fmt: skip
JAMBA = {"model_type": "jamba", "hidden_size": 4096, "mamba_expand": 2, "mamba_d_state": 16, "mamba_d_conv": 4}
LFM2 = {"model_type": "lfm2", "hidden_size": 2048, "conv_dim": 2048, "conv_L_cache": 3}
KIMI = {
    "model_type": "kimi_linear",
    "linear_attn_config": {"num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4},
}
MINIMAX = {"model_type": "minimax_text_01", "num_attention_heads": 64, "head_dim": 128}


@pytest.mark.parametrize(
    ("config", "tp", "elements"),
    [
        (QWEN3_NEXT, 1, (3 * 8192, 32 * 128 * 128)),
        (QWEN3_NEXT, 4, (3 * 2048, 8 * 128 * 128)),
        (BAMBA, 1, (3 * (8192 + 2 * 128), 128 * 64 * 128)),
        (BAMBA, 2, (3 * (8192 + 2 * 2 * 128) // 2, 64 * 64 * 128)),  # one group is given to both ranks
        (JAMBA, 2, (3 * 4096, 4096 * 16)),
        (LFM2, 1, (2 * 2048, 0)),
        (KIMI, 2, (3 * 3 * 2048, 16 * 128 * 128)),
        (MINIMAX, 8, (0, 8 * 128 * 128)),
        (NEMOTRON_NANO_9B, 1, (3 * (10240 + 2 * 8 * 128), 128 * 80 * 128)),
    ],
)
def test_shapes(config: dict[str, Any], tp: int, elements: tuple[int, int]) -> None:
    state = read_state(config, config["model_type"])
    assert state is not None
    assert state_elements(state, tp) == elements


@pytest.mark.parametrize(
    ("config", "dtype"),
    [(QWEN3_NEXT, ""), (QWEN3_5_35B["text_config"], "float32"), (KIMI, "float32"), (NEMOTRON_NANO_9B, "float16")],
)
def test_types_of_the_recurrent_state(config: dict[str, Any], dtype: str) -> None:
    state = read_state(config, config["model_type"])
    assert state is not None
    assert state.recurrent_dtype == dtype


@pytest.mark.parametrize("config", [{}, LLAMA_3_8B, {"mamba_d_state": 128}, {"linear_num_value_heads": 4}])
def test_configs_that_do_not_tell(config: dict[str, Any]) -> None:
    assert read_state(config, str(config.get("model_type", ""))) is None


@settings(deadline=None)
@given(
    st.sampled_from(["mamba1", "mamba2", "gdn", "kda", "linear", "conv"]),
    st.tuples(*[st.integers(0, 4096)] * 8),
    st.sampled_from([1, 2, 4, 8]),
)
def test_more_ranks_never_hold_more(family: Any, sizes: tuple[int, ...], tp: int) -> None:
    inner, heads, head_size, size, groups, kernel, key_heads, key_size = sizes
    if groups % tp:
        groups = 0  # groups that do not divide are copied
    state = State(family, inner, heads, head_size, size, groups, kernel, key_heads, key_size)
    assert all(
        0 <= cut <= whole for cut, whole in zip(state_elements(state, tp), state_elements(state, 1), strict=True)
    )
