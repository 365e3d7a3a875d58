"""vLLM's Triton unified attention (0.9 to 0.33): the attention of TRITON_ATTN and of cards without FlashAttention."""

from __future__ import annotations

from typing import Any

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.calling import call_with
from oortriage.kernels.live import Batch, LiveCase


def _call(library: Library, shape: Shape) -> None:
    import torch

    wrapper = _wrapper(library)
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
        given |= _segments(tokens, heads, head, "cpu")
    call_with(wrapper, given)


def _wrapper(library: Library) -> Any:
    module = library.module(
        "vllm.v1.attention.ops.triton_unified_attention", "vllm.attention.ops.triton_unified_attention"
    )
    return module.unified_attention


def _live(library: Library, shape: Shape, batch: Batch, device: str, seed: int, copies: int) -> LiveCase:
    import torch

    from oortriage.kernels.paged_attention import PagedBatch

    wrapper = _wrapper(library)
    sets = [PagedBatch(shape, batch, device, seed + index) for index in range(copies)]
    outputs = [torch.empty_like(one.query) for one in sets]
    calls = [_given(one, output, device) for one, output in zip(sets, outputs, strict=True)]
    return LiveCase(
        lambda index: call_with(wrapper, calls[index]),
        outputs,
        sets[0].reference,
        sets[0].bytes_moved,
        sets[0].flops,
    )


def _given(one: Any, output: Any, device: str) -> dict[str, Any]:
    import torch

    given: dict[str, Any] = {
        "q": one.query,
        "k": one.keys,
        "v": one.values,
        "out": output,
        "cu_seqlens_q": one.starts,
        "max_seqlen_q": max(one.counts),
        "seqused_k": one.lengths,
        "max_seqlen_k": max(one.totals),
        "avg_seqlen_q": sum(one.counts) / len(one.counts),
        "avg_seqlen_k": sum(one.totals) / len(one.totals),
        "softmax_scale": one.scale,
        "causal": True,
        "window_size": (one.window - 1, 0) if one.window else (-1, -1),
        "block_table": one.table,
        "softcap": one.softcap,
        "q_descale": None,
        "k_descale": torch.ones(1, device=device),
        "v_descale": torch.ones(1, device=device),
    }
    if max(one.counts) == 1:
        given |= _segments(len(one.counts), one.heads, one.head, device)
    return given


def _segments(tokens: int, heads: int, head: int, device: str) -> dict[str, Any]:
    """Make the buffers with which the engine lets a decode step be split along the context."""
    import torch

    count, padded = 16, 1 << (head - 1).bit_length()
    return {
        "seq_threshold_3D": 64,
        "num_par_softmax_segments": count,
        "softmax_segm_output": torch.empty(tokens, heads, count, padded, device=device),
        "softmax_segm_max": torch.empty(tokens, heads, count, device=device),
        "softmax_segm_expsum": torch.empty(tokens, heads, count, device=device),
    }


RECIPES = (
    Recipe(
        name="vllm.unified_attention",
        title="vLLM's Triton unified attention (prefill and decode over paged KV)",
        call=_call,
        live=_live,
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
