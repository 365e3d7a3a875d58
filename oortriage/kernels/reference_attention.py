"""Paged attention with an online softmax: the embedded reference, in the form serving engines use."""

import triton
import triton.language as tl


@triton.jit
def attention(
    out,
    queries,
    keys,
    values,
    block_table,
    starts,
    lengths,
    scale,
    row_stride,
    page_stride,
    slot_stride,
    table_stride,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    TILE_SIZE: tl.constexpr,
    HEAD_SIZE: tl.constexpr,
    HEAD_PADDED: tl.constexpr,
    PAGE: tl.constexpr,
    WINDOW: tl.constexpr,
):
    # One block: a sequence, a KV head with the GROUP query heads that share it, and a few queries.
    sequence = tl.program_id(0)
    kv_head = tl.program_id(1)
    per_block: tl.constexpr = BLOCK_M // GROUP
    begin = tl.program_id(2) * per_block
    first = tl.load(starts + sequence)
    count = tl.load(starts + sequence + 1) - first
    if begin >= count:
        return
    length = tl.load(lengths + sequence)
    rows = tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_PADDED)
    slots = tl.arange(0, TILE_SIZE)
    in_head = dims < HEAD_SIZE
    query = begin + rows // GROUP
    valid = (query < count) & (rows < per_block * GROUP)
    position = length - count + query
    head = kv_head * GROUP + rows % GROUP
    offsets = (first + query)[:, None].to(tl.int64) * row_stride + head[:, None] * HEAD_SIZE + dims[None, :]
    Q = tl.load(queries + offsets, mask=in_head[None, :] & valid[:, None], other=0.0)
    M = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    L = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_PADDED], dtype=tl.float32)
    seen = tl.minimum(length, length - count + begin + per_block)
    for tile in range(tl.cdiv(seen, TILE_SIZE)):
        key = tile * TILE_SIZE + slots
        in_range = key < seen
        page = tl.load(block_table + sequence * table_stride + key // PAGE, mask=in_range, other=0).to(tl.int64)
        base = page * page_stride + (key % PAGE) * slot_stride + kv_head * HEAD_SIZE
        K = tl.load(keys + base[None, :] + dims[:, None], mask=in_head[:, None] & in_range[None, :], other=0.0)
        V = tl.load(values + base[:, None] + dims[None, :], mask=in_head[None, :] & in_range[:, None], other=0.0)
        S = scale * tl.dot(Q, K)
        visible = valid[:, None] & in_range[None, :] & (key[None, :] <= position[:, None])
        if WINDOW > 0:
            visible = visible & (position[:, None] - key[None, :] < WINDOW)
        S = tl.where(visible, S, float("-inf"))
        m_new = tl.maximum(M, tl.max(S, axis=1))
        # A row that has seen nothing yet keeps a finite maximum, or its weights would not be numbers.
        m_new = tl.where(m_new > float("-inf"), m_new, 0.0)
        P = tl.exp(S - m_new[:, None])
        alpha = tl.exp(M - m_new)
        acc = acc * alpha[:, None]
        L = L * alpha + tl.sum(P, axis=1)
        M = m_new
        acc += tl.dot(P.to(V.dtype), V)
    acc = acc / tl.where(L > 0.0, L, 1.0)[:, None]
    tl.store(out + offsets, acc, mask=in_head[None, :] & valid[:, None])
