"""vLLM's Triton unified attention (0.9 to 0.33): the attention of TRITON_ATTN and of cards without FlashAttention."""

from __future__ import annotations

import inspect
from typing import Any

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape


def _call(library: Library, shape: Shape) -> None:
    import torch

    module = library.module(
        "vllm.v1.attention.ops.triton_unified_attention", "vllm.attention.ops.triton_unified_attention"
    )
    dtype = getattr(torch, shape["dtype"])
    cache = getattr(torch, shape["kv_dtype"]) if shape["kv_dtype"] != "auto" else dtype
    head, kv_heads, page = shape["head_size"], shape["kv_heads"], shape["block_size"]
    heads = kv_heads * shape["q_per_kv"]
    sequences = 4
    prefill = shape["phase"] == "prefill"
    tokens = sequences * (512 if prefill else 1)
    blocks = -(-4096 // page)
    query = torch.empty(tokens, heads, head, dtype=dtype)
    keys = torch.empty(blocks, page, kv_heads, head, dtype=cache)
    segments = 16
    given: dict[str, Any] = {
        "q": query,
        "k": keys,
        "v": torch.empty_like(keys),
        "out": torch.empty_like(query),
        "cu_seqlens_q": torch.arange(sequences + 1, dtype=torch.int32) * (tokens // sequences),
        "max_seqlen_q": tokens // sequences,
        "seqused_k": torch.full((sequences,), 1024, dtype=torch.int32),
        "max_seqlen_k": 1024,
        "avg_seqlen_q": tokens // sequences,
        "avg_seqlen_k": 1024,
        "softmax_scale": head**-0.5,
        "causal": True,
        "window_size": (shape["window"] - 1, 0) if shape["window"] else (-1, -1),
        "block_table": torch.zeros(sequences, blocks // sequences, dtype=torch.int32),
        "softcap": shape["softcap"],
        "q_descale": None,
        "k_descale": torch.ones(1),
        "v_descale": torch.ones(1),
    }
    if not prefill:
        padded = 1 << (head - 1).bit_length()
        given |= {
            "seq_threshold_3D": 64,
            "num_par_softmax_segments": segments,
            "softmax_segm_output": torch.empty(tokens, heads, segments, padded),
            "softmax_segm_max": torch.empty(tokens, heads, segments),
            "softmax_segm_expsum": torch.empty(tokens, heads, segments),
        }
    # The signature grew over the releases; each gets what it has a parameter for.
    wanted = inspect.signature(module.unified_attention).parameters
    module.unified_attention(**{name: value for name, value in given.items() if name in wanted})


RECIPES = (
    Recipe(
        name="vllm.unified_attention",
        title="vLLM's Triton unified attention (prefill and decode over paged KV)",
        call=_call,
        library="vllm",
        since="0.9.0",
        kernels=(
            "kernel_unified_attention",
            "kernel_unified_attention_2d",
            "kernel_unified_attention_3d",
            "unified_attention",
        ),
        files=("triton_unified_attention.py",),
        parameters=(
            Parameter("dtype", "float16", "element type of the model", fact="dtype"),
            Parameter("head_size", 128, "elements a head", tries=(64, 128, 256, 512), fact="head_size"),
            Parameter(
                "window", 0, "sliding window in tokens, 0 for full attention", tries=(0, 1024), fact="sliding_window"
            ),
            Parameter(
                "phase", "prefill", "what the batch does", tries=("prefill", "decode"), choices=("prefill", "decode")
            ),
            Parameter("block_size", 16, "tokens a page of the KV cache", tries=(16, 32), fact="block_size"),
            Parameter("q_per_kv", 2, "query heads that share a KV head", tries=(2, 32)),
            Parameter("kv_heads", 4, "KV heads on the card"),
            Parameter("kv_dtype", "auto", "element type of the KV cache; auto is the model's"),
            Parameter("softcap", 0.0, "logit soft cap, 0 for none"),
        ),
        levers={"tile": "TILE_SIZE"},
        vary={"num_stages": (1, 2, 3), "TILE_SIZE": (16, 32, 64), "num_warps": (1, 2, 4, 8)},
    ),
)
