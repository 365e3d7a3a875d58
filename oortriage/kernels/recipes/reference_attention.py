"""Our own attention kernel: needs neither torch nor a library; its bill is that of vLLM's full attention."""

from __future__ import annotations

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.live import Batch, LiveCase
from oortriage.kernels.mock import Pointer


def _call(_library: Library, shape: Shape) -> None:
    from oortriage.kernels.reference_attention import attention

    head = shape["head_size"]
    padded = 1 << (head - 1).bit_length()
    rows = _rows(shape)
    width, kv_heads = Pointer(shape["dtype"]), 4
    stride = kv_heads * head
    index = Pointer("int32")
    attention[(1, 1, 1)](
        width,
        width,
        width,
        width,
        index,
        index,
        index,
        head**-0.5,
        stride * shape["q_per_kv"],
        stride * shape["block_size"],
        stride,
        4096,
        GROUP=shape["q_per_kv"],
        BLOCK_M=rows,
        TILE_SIZE=shape["tile"],
        HEAD_SIZE=head,
        HEAD_PADDED=padded,
        PAGE=shape["block_size"],
        WINDOW=shape["window"],
    )


def _live(_library: Library, shape: Shape, batch: Batch, device: str, seed: int, copies: int) -> LiveCase:
    import torch

    from oortriage.kernels.paged_attention import PagedBatch
    from oortriage.kernels.reference_attention import attention

    sets = [PagedBatch(shape, batch, device, seed + index) for index in range(copies)]
    outputs = [torch.empty_like(one.query) for one in sets]
    rows = _rows(shape)
    steps = -(-max(sets[0].counts) // (rows // shape["q_per_kv"]))

    def call(index: int) -> None:
        one = sets[index]
        attention[(len(one.counts), one.kv_heads, steps)](
            outputs[index],
            one.query,
            one.keys,
            one.values,
            one.table,
            one.starts,
            one.lengths,
            one.scale,
            one.query.stride(0),
            one.keys.stride(0),
            one.keys.stride(1),
            one.table.stride(0),
            GROUP=shape["q_per_kv"],
            BLOCK_M=rows,
            TILE_SIZE=shape["tile"],
            HEAD_SIZE=one.head,
            HEAD_PADDED=1 << (one.head - 1).bit_length(),
            PAGE=one.page,
            WINDOW=one.window,
        )

    return LiveCase(call, outputs, sets[0].reference, sets[0].bytes_moved, sets[0].flops)


def _rows(shape: Shape) -> int:
    """Return BLOCK_M: at least the 16 rows that a matrix instruction takes, and a whole group of heads."""
    return max(16, 1 << (int(shape["q_per_kv"]) - 1).bit_length())


RECIPES = (
    Recipe(
        name="reference.attention",
        title="paged attention with an online softmax, as small as it can be",
        call=_call,
        live=_live,
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
