"""vLLM's Triton decode attention (0.7.1 to 0.33): multi-head, grouped, and MLA over a latent KV cache (TRITON_MLA)."""

from __future__ import annotations

from typing import Any

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.calling import call_with


def _call(library: Library, shape: Shape) -> None:
    import torch

    module = library.module(
        "vllm.v1.attention.ops.triton_decode_attention", "vllm.attention.ops.triton_decode_attention"
    )
    dtype = getattr(torch, shape["dtype"])
    cache = dtype if shape["kv_dtype"] == "auto" else getattr(torch, shape["kv_dtype"])
    key, page, kv_heads = shape["head_size"], shape["block_size"], shape["kv_heads"]
    value = shape["v_head_size"] or key
    heads = kv_heads * shape["q_per_kv"]
    latent = shape["mla"]
    sequences, splits = 4, shape["num_kv_splits"]
    blocks = 64
    keys = torch.empty(blocks, page, kv_heads, key, dtype=cache)
    given: dict[str, Any] = {
        "q": torch.empty(sequences, heads, key, dtype=dtype),
        "k_buffer": keys,
        # MLA's values are the first elements of the same latent vector, with its strides.
        "v_buffer": keys[..., :value] if latent else torch.empty(blocks, page, kv_heads, value, dtype=cache),
        "o": torch.empty(sequences, heads, value, dtype=dtype),
        "lse": torch.empty(sequences, heads, dtype=dtype),
        "req_to_token": torch.zeros(sequences, blocks // sequences, dtype=torch.int32),
        "b_seq_len": torch.full((sequences,), page * 4, dtype=torch.int32),
        # One element more than the values: the kernel keeps the log-sum-exp there.
        "attn_logits": torch.empty(sequences, heads, splits, value + 1),
        "num_kv_splits": splits,
        "sm_scale": key**-0.5,
        "page_size": page,
        "logit_cap": shape["softcap"],
        "k_scale": torch.ones(1),
        "v_scale": torch.ones(1),
        "is_mla": latent,
    }
    # The signature grew over the releases; each gets what it has a parameter for.
    call_with(module.decode_attention_fwd, given)


RECIPES = (
    Recipe(
        name="vllm.decode_attention",
        title="vLLM's Triton decode attention (MHA, grouped, MLA) over paged KV",
        call=_call,
        library="vllm",
        since="0.7.1",
        kernels=("_fwd_grouped_kernel_stage1", "_fwd_kernel_stage1", "_fwd_kernel_stage2"),
        files=("triton_decode_attention.py",),
        parameters=(
            Parameter("dtype", "bfloat16", "element type of the model", tries=("bfloat16", "float16"), fact="dtype"),
            Parameter(
                "kv_dtype",
                "auto",
                "element type of the KV cache; auto is the model's, and TRITON_MLA takes 8-bit floats from 0.18",
                tries=("auto", "float8_e4m3fn"),
            ),
            Parameter(
                "head_size",
                576,
                "elements of a key; 576 is the latent (512) and rotary (64) part of DeepSeek's MLA",
                tries=(576, 288, 128, 64),
                fact="head_size",
            ),
            Parameter("v_head_size", 512, "elements of a value, 0 for those of a key", tries=(512, 256, 0)),
            Parameter("mla", True, "whether values are the first part of the same latent vector"),
            Parameter("q_per_kv", 16, "query heads on the card that share a KV head; 1 is multi-head", tries=(16, 8)),
            Parameter("kv_heads", 1, "KV heads on the card"),
            Parameter("block_size", 16, "tokens a page of the KV cache", tries=(16, 64), fact="block_size"),
            Parameter("num_kv_splits", 4, "parts a sequence is cut into"),
            Parameter("softcap", 0.0, "logit soft cap, 0 for none"),
        ),
        levers={"tile": "BLOCK_N"},
        vary={"num_stages": (1, 2, 3), "BLOCK_N": (16, 32, 64), "num_warps": (2, 4, 8)},
    ),
)
