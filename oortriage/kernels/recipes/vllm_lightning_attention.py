"""vLLM's lightning attention (0.9 to 0.33): the linear attention of MiniMax and Ling."""

from __future__ import annotations

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.rearrange import provide_einops


def _call(library: Library, shape: Shape) -> None:
    import torch

    provide_einops()
    module = library.module("vllm.model_executor.layers.lightning_attn")
    dtype = getattr(torch, shape["dtype"])
    heads, head = shape["heads"], shape["head_size"]
    slopes = torch.ones(heads, 1, 1, dtype=torch.float32)
    if shape["phase"] == "prefill":
        query, keys, values = (torch.empty(1, heads, shape["tokens"], head, dtype=dtype) for _ in range(3))
        state = torch.empty(1, heads, head, head, dtype=torch.float32)
        # The state goes in as the layer gives it: one sequence at a time.
        module.lightning_attention(query, keys, values, slopes.view(-1), block_size=256, kv_history=state)
        return
    sequences = 4
    query, keys, values = (torch.empty(sequences, heads, 1, head, dtype=dtype) for _ in range(3))
    states = torch.empty(sequences, heads, head, head, dtype=torch.float32)
    slots = torch.arange(sequences, dtype=torch.int64)
    module.linear_decode_forward_triton(query, keys, values, states, slopes, slots, 32)


RECIPES = (
    Recipe(
        name="vllm.lightning_attention",
        title="vLLM's lightning (linear) attention of MiniMax and Ling",
        call=_call,
        library="vllm",
        since="0.9.0",
        real=(r"vllm\.model_executor\.layers\.lightning_attn",),
        kernels=(
            "_fwd_diag_kernel",
            "_fwd_kv_parallel",
            "_fwd_kv_reduce",
            "_fwd_none_diag_kernel",
            "_linear_attn_decode_kernel",
        ),
        files=("layers/lightning_attn.py",),
        parameters=(
            # No fact: the layer casts its activations to 32 bits before the call, whatever the model's type.
            Parameter("dtype", "float32", "element type at the call; the layer casts to float32 first"),
            Parameter("head_size", 128, "elements a head", tries=(128, 64, 96, 256), fact="head_size"),
            Parameter("heads", 8, "heads on the card"),
            Parameter("tokens", 1024, "tokens of the prompt"),
            Parameter(
                "phase", "prefill", "what the batch does", tries=("prefill", "decode"), choices=("prefill", "decode")
            ),
        ),
        # A patch must keep CBLOCK times NUM_CBLOCK at 256; the number of tiles changes no figure.
        levers={"tile": "CBLOCK"},
        vary={"num_stages": (1, 2, 3), "CBLOCK": (16, 32, 64), "num_warps": (2, 4, 8)},
    ),
)
