"""vLLM's Triton prefill attention (0.14 to 0.33): attention without a cache, of encoders and vision towers."""

from __future__ import annotations

from typing import Any

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.calling import call_with


def _call(library: Library, shape: Shape) -> None:
    import torch

    module = library.module("vllm.v1.attention.ops.triton_prefill_attention")
    dtype = getattr(torch, shape["dtype"])
    head, kv_heads, window = shape["head_size"], shape["kv_heads"], shape["window"]
    sequences, length = 2, 1024
    query = torch.empty(sequences * length, kv_heads * shape["q_per_kv"], head, dtype=dtype)
    keys = torch.empty(sequences * length, kv_heads, head, dtype=dtype)
    given: dict[str, Any] = {
        "q": query,
        "k": keys,
        "v": torch.empty_like(keys),
        "o": torch.empty_like(query),
        "b_start_loc": torch.arange(sequences, dtype=torch.int32) * length,
        "b_seq_len": torch.full((sequences,), length, dtype=torch.int32),
        "max_input_len": length,
        "is_causal": shape["causal"],
        "softmax_scale": head**-0.5,
        "sliding_window_q": window,
        "sliding_window_k": window,
        "sinks": torch.empty(query.shape[1], dtype=dtype) if shape["sinks"] else None,
    }
    # The signature grew over the releases; each gets what it has a parameter for.
    call_with(module.context_attention_fwd, given)


RECIPES = (
    Recipe(
        name="vllm.prefill_attention",
        title="vLLM's Triton prefill attention without a cache (encoders, vision towers)",
        call=_call,
        library="vllm",
        since="0.14.0",
        kernels=("_fwd_kernel",),
        files=("triton_prefill_attention.py",),
        parameters=(
            Parameter("dtype", "float16", "element type of the model", fact="dtype"),
            Parameter("head_size", 128, "elements a head", tries=(64, 80, 128, 256, 512), fact="head_size"),
            Parameter("q_per_kv", 1, "query heads that share a KV head"),
            Parameter("kv_heads", 8, "KV heads on the card"),
            Parameter("causal", False, "whether a token sees only those before it", tries=(False, True)),
            Parameter("window", 0, "tokens seen on each side, 0 for all", tries=(0, 512), fact="sliding_window"),
            Parameter("sinks", False, "whether attention sinks are added, from 0.26"),
        ),
        levers={"tile": "BLOCK_N"},
        vary={"num_stages": (1, 2, 3), "BLOCK_N": (16, 32, 64, 128), "num_warps": (4, 8)},
    ),
)
