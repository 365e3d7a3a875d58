"""SGLang's Triton decode attention (0.4 and later): one new token a sequence, the cache split over blocks."""

from __future__ import annotations

import inspect
from typing import Any

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.calling import call_with

_SEQUENCES, _CACHED, _SPLITS = 4, 1024, 8


def _call(library: Library, shape: Shape) -> None:
    import torch

    module = library.module(
        "sglang.kernels.ops.attention.decode_attention", "sglang.srt.layers.attention.triton_ops.decode_attention"
    )
    dtype = getattr(torch, shape["dtype"])
    cache = getattr(torch, shape["kv_dtype"]) if shape["kv_dtype"] != "auto" else dtype
    head, kv_heads = shape["head_size"], shape["kv_heads"]
    value_head = shape["v_head_size"] or head
    heads = kv_heads * shape["q_per_kv"]
    cached = _SEQUENCES * _CACHED
    keys = torch.empty(cached, kv_heads, head, dtype=cache)
    wanted = inspect.signature(module.decode_attention_fwd).parameters
    starts = torch.arange(_SEQUENCES + 1, dtype=torch.int32)
    # The log-sum-exp lay behind the values of each split until it got a tensor of its own (0.4.5);
    # 0.4.0 kept the logits themselves, one a head and token.
    partial = torch.empty(_SEQUENCES, heads, _SPLITS, value_head + ("attn_lse" not in wanted))
    given: dict[str, Any] = {
        "q": torch.empty(_SEQUENCES, heads, head, dtype=dtype),
        "k_buffer": keys,
        # In absorbed multi-head latent attention the values are the first part of the keys.
        "v_buffer": keys[..., :value_head],
        "o": torch.empty(_SEQUENCES, heads, value_head, dtype=dtype),
        "kv_indptr": starts * _CACHED,
        "kv_indices": torch.zeros(cached, dtype=torch.int64),
        "attn_logits": torch.empty(heads, cached, dtype=torch.float16) if "max_len_in_batch" in wanted else partial,
        "attn_lse": torch.empty(_SEQUENCES, heads, _SPLITS),
        "num_kv_splits": (
            torch.full((_SEQUENCES,), _SPLITS, dtype=torch.int32) if "max_kv_splits" in wanted else _SPLITS
        ),
        "max_kv_splits": _SPLITS,
        "sm_scale": head**-0.5,
        "k_scale": 1.0,
        "v_scale": 1.0,
        "logit_cap": shape["softcap"],
        "sinks": torch.empty(heads) if shape["sinks"] else None,
        "has_mla": head != value_head,
        "page_size": shape["block_size"],
        # Up to 0.4.2 the wrapper took the table of tokens instead of ready indices.
        "req_to_token": torch.zeros(_SEQUENCES, 4096, dtype=torch.int32),
        "b_req_idx": torch.arange(_SEQUENCES),
        "b_start_loc": starts[:-1] * _CACHED,
        "b_seq_len": torch.full((_SEQUENCES,), _CACHED, dtype=torch.int32),
        "max_len_in_batch": _CACHED,
    }
    call_with(module.decode_attention_fwd, given)


RECIPES = (
    Recipe(
        name="sglang.decode_attention",
        title="SGLang's Triton decode attention (split KV)",
        call=_call,
        library="sglang",
        since="0.4.0",
        kernels=(
            "_fwd_grouped_kernel_stage1",
            "_fwd_kernel_stage1",
            "_fwd_grouped_kernel_stage2",
            "_fwd_kernel_stage2",
            "decode_attention_fwd",
        ),
        files=("triton_ops/decode_attention.py", "ops/attention/decode_attention.py"),
        parameters=(
            Parameter("dtype", "bfloat16", "element type of the model", fact="dtype"),
            Parameter(
                "head_size",
                128,
                "elements of a query and key head; 576 for absorbed latent attention (DeepSeek, Kimi, GLM)",
                tries=(64, 128, 256, 576),
                fact="head_size",
            ),
            Parameter("v_head_size", 0, "elements of a value head, 0 for the same as head_size", tries=(0, 512)),
            Parameter("q_per_kv", 4, "query heads that share a KV head; 1 takes another kernel", tries=(4, 16, 1)),
            Parameter("kv_heads", 1, "KV heads on the card"),
            Parameter("block_size", 1, "tokens a page of the KV cache (from 0.5.13)", fact="block_size"),
            Parameter("kv_dtype", "auto", "element type of the KV cache; auto is the model's"),
            Parameter("softcap", 0.0, "logit soft cap, 0 for none"),
            Parameter("sinks", False, "attention sinks (from 0.5.0)"),
        ),
        levers={"tile": "BLOCK_N", "rows": "BLOCK_H"},
        vary={"num_stages": (1, 2, 3), "BLOCK_N": (16, 32, 64), "num_warps": (2, 4, 8)},
    ),
)
