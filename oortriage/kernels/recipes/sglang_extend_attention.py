"""SGLang's Triton extend attention (0.4 and later): new tokens that look at a cached prefix."""

from __future__ import annotations

from typing import Any

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.calling import call_with

_SEQUENCES, _NEW, _PREFIX = 4, 128, 1024


def _call(library: Library, shape: Shape) -> None:
    import torch

    module = library.module(
        "sglang.kernels.ops.attention.extend_attention", "sglang.srt.layers.attention.triton_ops.extend_attention"
    )
    dtype = getattr(torch, shape["dtype"])
    cache = getattr(torch, shape["kv_dtype"]) if shape["kv_dtype"] != "auto" else dtype
    head, kv_heads = shape["head_size"], shape["kv_heads"]
    value_head = shape["v_head_size"] or head
    heads = kv_heads * shape["q_per_kv"]
    tokens, cached = _SEQUENCES * _NEW, _SEQUENCES * (_NEW + _PREFIX)
    query = torch.empty(tokens, heads, head, dtype=dtype)
    out = torch.empty(tokens, heads, value_head, dtype=dtype)
    key_cache = torch.empty(cached, kv_heads, head, dtype=cache)
    # In absorbed multi-head latent attention the values are the first part of the keys.
    value_cache = key_cache[..., :value_head]
    starts = torch.arange(_SEQUENCES + 1, dtype=torch.int32)
    lengths = torch.full((_SEQUENCES,), _NEW, dtype=torch.int32)
    masked = shape["custom_mask"]
    given: dict[str, Any] = {
        "q_extend": query,
        "k_extend": torch.empty(tokens, kv_heads, head, dtype=dtype),
        "v_extend": torch.empty(tokens, kv_heads, value_head, dtype=dtype),
        "o_extend": out,
        "q": query,
        "o": out,
        "k_buffer": key_cache,
        "v_buffer": value_cache,
        "qo_indptr": starts * _NEW,
        "kv_indptr": starts * _PREFIX,
        "kv_indices": torch.zeros(cached, dtype=torch.int64),
        "prefix_lens": torch.full((_SEQUENCES,), _PREFIX, dtype=torch.int32),
        "custom_mask": torch.ones(_NEW * (_NEW + _PREFIX) * _SEQUENCES, dtype=torch.bool) if masked else None,
        "mask_indptr": starts.to(torch.int64) * _NEW * (_NEW + _PREFIX) if masked else None,
        "is_causal": True,
        "max_len_extend": _NEW,
        "k_scale": 1.0,
        "v_scale": 1.0,
        "sm_scale": head**-0.5,
        "logit_cap": shape["softcap"],
        "sliding_window_size": shape["window"] or -1,
        "sinks": torch.empty(heads) if shape["sinks"] else None,
        "window_kv_offsets": torch.zeros(_SEQUENCES, dtype=torch.int32) if shape["window"] else None,
        "page_size": shape["block_size"],
        # Up to 0.4.2 the wrapper took the table of tokens instead of ready indices.
        "req_to_tokens": torch.zeros(_SEQUENCES, 4096, dtype=torch.int32),
        "b_req_idx": torch.arange(_SEQUENCES),
        "b_seq_len": lengths + _PREFIX,
        "b_seq_len_extend": lengths,
        "b_start_loc_extend": starts[:-1] * _NEW,
    }
    function = module.extend_attention_fwd_unified if shape["deterministic"] else module.extend_attention_fwd
    call_with(function, given)


RECIPES = (
    Recipe(
        name="sglang.extend_attention",
        title="SGLang's Triton extend attention (prefill over a cached prefix)",
        call=_call,
        library="sglang",
        since="0.4.0",
        kernels=("_fwd_kernel", "_fwd_kernel_unified", "extend_attention_fwd", "extend_attention_fwd_unified"),
        files=("triton_ops/extend_attention.py", "ops/attention/extend_attention.py"),
        parameters=(
            Parameter("dtype", "bfloat16", "element type of the model", fact="dtype"),
            Parameter(
                "head_size",
                128,
                "elements of a query and key head; 576 for absorbed latent attention (DeepSeek, Kimi, GLM)",
                tries=(64, 128, 256, 576, 192),
                fact="head_size",
            ),
            Parameter("v_head_size", 0, "elements of a value head, 0 for the same as head_size", tries=(0, 512, 128)),
            Parameter("q_per_kv", 4, "query heads that share a KV head", tries=(4, 16, 1)),
            Parameter("kv_heads", 1, "KV heads on the card"),
            Parameter("window", 0, "sliding window in tokens, 0 for full attention", fact="sliding_window"),
            Parameter("block_size", 1, "tokens a page of the KV cache (from 0.5.13)", fact="block_size"),
            Parameter("kv_dtype", "auto", "element type of the KV cache; auto is the model's"),
            Parameter("softcap", 0.0, "logit soft cap, 0 for none"),
            Parameter("sinks", False, "attention sinks (from 0.5.0)"),
            Parameter("custom_mask", False, "a mask is given, as for trees of speculative decoding (from 0.4.3)"),
            Parameter("deterministic", False, "the one-stage kernel of deterministic inference (from 0.5.4)"),
        ),
        levers={"tile": "BLOCK_N", "rows": "BLOCK_M"},
        vary={"num_stages": (1, 2), "BLOCK_M": (16, 32, 64), "BLOCK_N": (16, 32, 64), "num_warps": (4, 8)},
    ),
)
