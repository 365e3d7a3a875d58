"""Our own attention kernel: needs neither torch nor a library; its bill is that of vLLM's full attention."""

from __future__ import annotations

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.mock import Pointer


def _call(_library: Library, shape: Shape) -> None:
    from oortriage.kernels.reference_attention import attention

    head = shape["head_size"]
    padded = 1 << (head - 1).bit_length()
    rows = max(16, 1 << (shape["q_per_kv"] - 1).bit_length())
    width, kv_heads = Pointer(shape["dtype"]), 4
    stride = kv_heads * head
    attention[(1, 1, 1)](
        width,
        width,
        width,
        width,
        Pointer("int32"),
        Pointer("int32"),
        head**-0.5,
        shape["q_per_kv"],
        stride * shape["q_per_kv"],
        stride * shape["block_size"],
        stride,
        4096,
        BLOCK_M=rows,
        TILE_SIZE=shape["tile"],
        HEAD_SIZE=head,
        HEAD_PADDED=padded,
        PAGE=shape["block_size"],
        WINDOW=shape["window"],
    )


RECIPES = (
    Recipe(
        name="reference.attention",
        title="paged attention with an online softmax, as small as it can be",
        call=_call,
        parameters=(
            Parameter("dtype", "float16", "element type of Q, K and V", fact="dtype"),
            Parameter("head_size", 128, "elements a head", tries=(64, 128, 256, 512), fact="head_size"),
            Parameter(
                "window", 0, "sliding window in tokens, 0 for full attention", tries=(0, 1024), fact="sliding_window"
            ),
            Parameter("tile", 32, "keys and values of one step", tries=(16, 32, 64)),
            Parameter("q_per_kv", 2, "query heads that share a KV head"),
            Parameter("block_size", 16, "tokens a page of the KV cache", fact="block_size"),
        ),
        levers={"tile": "TILE_SIZE"},
        vary={"num_stages": (1, 2, 3), "TILE_SIZE": (16, 32, 64), "num_warps": (1, 2, 4, 8)},
        needs_torch=False,
    ),
)
