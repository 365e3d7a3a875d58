"""SGLang's Triton attention over whole prompts (0.4 and later): encoders, vision towers, no cached prefix."""

from __future__ import annotations

from typing import Any

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.calling import call_with

_SEQUENCES, _TOKENS = 4, 256


def _call(library: Library, shape: Shape) -> None:
    import torch

    module = library.module(
        "sglang.kernels.ops.attention.prefill_attention", "sglang.srt.layers.attention.triton_ops.prefill_attention"
    )
    dtype, head, kv_heads = getattr(torch, shape["dtype"]), shape["head_size"], shape["kv_heads"]
    query = torch.empty(_SEQUENCES * _TOKENS, kv_heads * shape["q_per_kv"], head, dtype=dtype)
    keys = torch.empty(_SEQUENCES * _TOKENS, kv_heads, head, dtype=dtype)
    given: dict[str, Any] = {
        "q": query,
        "k": keys,
        "v": torch.empty_like(keys),
        "o": torch.empty_like(query),
        "b_start_loc": torch.arange(_SEQUENCES, dtype=torch.int32) * _TOKENS,
        "b_seq_len": torch.full((_SEQUENCES,), _TOKENS, dtype=torch.int32),
        "max_input_len": _TOKENS,
        "is_causal": shape["causal"],
    }
    call_with(module.context_attention_fwd, given)


RECIPES = (
    Recipe(
        name="sglang.context_attention",
        title="SGLang's Triton attention over whole prompts (no cached prefix)",
        call=_call,
        library="sglang",
        since="0.4.0",
        kernels=("_fwd_kernel", "context_attention_fwd"),
        files=("triton_ops/prefill_attention.py", "ops/attention/prefill_attention.py"),
        parameters=(
            Parameter(
                "dtype",
                "bfloat16",
                "element type of Q, K and V",
                tries=("bfloat16", "float16", "float32"),
                fact="dtype",
            ),
            Parameter("head_size", 128, "elements a head", tries=(64, 80, 128, 256), fact="head_size"),
            Parameter("q_per_kv", 4, "query heads that share a KV head", tries=(4, 1)),
            Parameter("kv_heads", 1, "KV heads on the card"),
            Parameter("causal", True, "tokens see only those before them"),
        ),
        levers={"tile": "BLOCK_N", "rows": "BLOCK_M"},
        vary={"num_stages": (1, 2), "BLOCK_M": (32, 64, 128), "BLOCK_N": (32, 64, 128), "num_warps": (4, 8)},
    ),
)
