"""Configs with nonsense in them: a figure or a clear error, never a traceback."""

from __future__ import annotations

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oortriage.budget.figure import Figure
from oortriage.budget.model import read_model
from oortriage.budget.plan import Settings, prepare
from oortriage.budget.startup import Start, available_at_start
from oortriage.budget.sums import high, low
from oortriage.errors import OortriageError
from tests.budget.test_parameters import COUNTS

KEYS = (
    "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
    "num_local_experts", "num_experts", "n_routed_experts", "moe_intermediate_size", "n_shared_experts", "kv_lora_rank",
    "q_lora_rank", "v_head_dim", "qk_rope_head_dim", "first_k_dense_replace", "decoder_sparse_step", "mlp_only_layers",
    "moe_layer_freq", "moe_layers", "partial_rotary_factor", "max_position_embeddings", "tie_word_embeddings",
    "model_type", "quantization_config", "attention_bias", "hybrid_override_pattern", "rope_local_base_freq",
    "layer_types", "sliding_window", "shared_expert_intermediate_size", "torch_dtype", "num_experts_per_tok",
)  # fmt: skip
nonsense = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 1 << 40) | st.floats() | st.text(max_size=8)
    | st.sampled_from(["fp8", "awq", "qwen3_next", "mamba2", "float16", "full_attention"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["quant_method", "bits", "group_size", "config_groups", "weights", "num_bits", "ignore", "lm_head"]),
        inner,
        max_size=4,
    ),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(list(COUNTS)), st.dictionaries(st.sampled_from(KEYS), nonsense, max_size=4))
def test_any_config_is_an_answer_or_a_clear_error(name: str, changed: dict) -> None:
    shape = {**COUNTS[name][0], "num_hidden_layers": 4, "max_position_embeddings": 4096, **changed}
    try:
        planned = prepare(read_model(shape), Settings(version="0.22.1", tp=2, pp=2))
        found = available_at_start(planned, Start(total=Figure(8e10, "bytes", "given")))
    except OortriageError:
        return
    assert math.isfinite(found.available.value)
    assert low(found.available) <= found.available.value <= high(found.available)
    assert found.weights.value >= 0
