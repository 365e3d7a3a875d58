"""vLLM's prefill over a cached prefix (0.6.5 to 0.33): chunked prefill of V0 and of ROCM_ATTN."""

from __future__ import annotations

import inspect
from typing import Any

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.calling import call_with


def _call(library: Library, shape: Shape) -> None:
    import torch

    module = library.module("vllm.v1.attention.ops.prefix_prefill", "vllm.attention.ops.prefix_prefill")
    dtype = getattr(torch, shape["dtype"])
    kv_cache_dtype = shape["kv_cache_dtype"]
    # The cache of 8-bit floats is handed over as bytes; the wrapper views it as the card's own type.
    cache = dtype if kv_cache_dtype == "auto" else torch.uint8
    head, kv_heads, page = shape["head_size"], shape["kv_heads"], shape["block_size"]
    heads = kv_heads * shape["q_per_kv"]
    sequences, length, blocks = 2, 512, 128
    packed = 16 // cache.itemsize  # elements of 16 bytes lie together in a page of keys
    query = torch.empty(sequences * length, heads, head, dtype=dtype)
    keys = torch.empty(sequences * length, kv_heads, head, dtype=dtype)
    wanted = inspect.signature(module.context_attention_fwd).parameters
    scale = 1.0 if isinstance(wanted["k_scale"].default, float) else torch.ones(1)  # a number before 0.8
    given: dict[str, Any] = {
        "q": query,
        "k": keys,
        "v": torch.empty_like(keys),
        "o": torch.empty_like(query),
        "kv_cache_dtype": kv_cache_dtype,
        "k_cache": torch.empty(blocks, kv_heads, head // packed, page, packed, dtype=cache),
        "v_cache": torch.empty(blocks, kv_heads, head, page, dtype=cache),
        "b_loc": torch.zeros(sequences, blocks // sequences, dtype=torch.int32),
        "b_start_loc": torch.arange(sequences + 1, dtype=torch.int32) * length,
        "b_seq_len": torch.full((sequences,), length * 2, dtype=torch.int32),
        "b_ctx_len": torch.full((sequences,), length, dtype=torch.int32),  # before 0.7
        "max_seq_len": length * 2,
        "max_input_len": length,
        "k_scale": scale,
        "v_scale": scale,
        "alibi_slopes": torch.empty(heads, dtype=torch.float32) if shape["alibi"] else None,
        "sliding_window": shape["window"],
        "sm_scale": head**-0.5,
        "skip_decode": True,
        "sinks": torch.empty(heads, dtype=dtype) if shape["sinks"] else None,
    }
    # The signature grew over the releases; each gets what it has a parameter for.
    call_with(module.context_attention_fwd, given)


RECIPES = (
    Recipe(
        name="vllm.prefix_prefill",
        title="vLLM's prefill over a cached prefix (V0 chunked prefill, ROCM_ATTN)",
        call=_call,
        library="vllm",
        since="0.6.5",
        kernels=("_fwd_kernel", "_fwd_kernel_alibi"),
        files=("prefix_prefill.py",),
        parameters=(
            Parameter("dtype", "float16", "element type of the model", fact="dtype"),
            Parameter("head_size", 128, "elements a head", tries=(64, 128, 256), fact="head_size"),
            Parameter("q_per_kv", 4, "query heads that share a KV head", tries=(1, 4, 8)),
            Parameter("kv_heads", 4, "KV heads on the card"),
            Parameter(
                "block_size",
                16,
                "tokens a page of the KV cache; some releases choose tiles by it",
                tries=(16, 32, 544),
                fact="block_size",
            ),
            Parameter(
                "kv_cache_dtype",
                "auto",
                "KV cache as in --kv-cache-dtype; auto is the model's type",
                choices=("auto", "fp8", "fp8_e4m3", "fp8_e5m2"),
            ),
            Parameter("window", 0, "sliding window in tokens, 0 for full attention", fact="sliding_window"),
            Parameter("alibi", False, "whether positions are ALiBi's (another kernel)", tries=(False, True)),
            Parameter("sinks", False, "whether attention sinks are added, from 0.10.2"),
        ),
        levers={"tile": "BLOCK_N"},
        vary={"num_stages": (1, 2, 3), "BLOCK_N": (16, 32, 64), "num_warps": (4, 8)},
    ),
)
