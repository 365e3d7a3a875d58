"""Paged attention for one query block: the embedded reference, in the form serving engines use."""

import triton
import triton.language as tl


@triton.jit
def attention(
    out,
    queries,
    keys,
    values,
    block_table,
    lengths,
    scale,
    heads_per_group: tl.constexpr,
    row_stride,
    page_stride,
    slot_stride,
    table_stride,
    BLOCK_M: tl.constexpr,
    TILE_SIZE: tl.constexpr,
    HEAD_SIZE: tl.constexpr,
    HEAD_PADDED: tl.constexpr,
    PAGE: tl.constexpr,
    WINDOW: tl.constexpr,
):
    sequence = tl.program_id(0)
    group = tl.program_id(1)
    step = tl.program_id(2)
    rows = tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_PADDED)
    slots = tl.arange(0, TILE_SIZE)
    in_head = dims < HEAD_SIZE
    length = tl.load(lengths + sequence)
    position = step * (BLOCK_M // heads_per_group) + rows // heads_per_group
    head = group * heads_per_group + rows % heads_per_group
    valid_row = position < length
    q_offset = sequence * row_stride + position[:, None] * row_stride + head[:, None] * HEAD_SIZE + dims[None, :]
    Q = tl.load(queries + q_offset, mask=in_head[None, :] & valid_row[:, None], other=0.0)
    M = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    L = tl.full([BLOCK_M], 1.0, dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_PADDED], dtype=tl.float32)
    for tile in range(tl.cdiv(length, TILE_SIZE)):
        key_position = tile * TILE_SIZE + slots
        in_range = key_position < length
        page = tl.load(block_table + sequence * table_stride + key_position // PAGE, mask=in_range, other=0).to(
            tl.int64
        )
        base = page * page_stride + (key_position % PAGE) * slot_stride + group * HEAD_SIZE
        K = tl.load(keys + base[None, :] + dims[:, None], mask=in_head[:, None] & in_range[None, :], other=0.0)
        V = tl.load(values + base[:, None] + dims[None, :], mask=in_head[None, :] & in_range[:, None], other=0.0)
        S = scale * tl.dot(Q, K)
        visible = key_position[None, :] <= position[:, None]
        if WINDOW > 0:
            visible = visible & (position[:, None] - key_position[None, :] < WINDOW)
        S = tl.where(visible & valid_row[:, None], S, float("-inf"))
        m_new = tl.maximum(M, tl.max(S, axis=1))
        m_new = tl.where(m_new > float("-inf"), m_new, 0.0)
        P = tl.exp(S - m_new[:, None])
        alpha = tl.exp(M - m_new)
        acc = acc * alpha[:, None]
        L = L * alpha + tl.sum(P, axis=1)
        M = m_new
        acc += tl.dot(P.to(V.dtype), V)
    acc = acc / L[:, None]
    tl.store(out + q_offset, acc, mask=in_head[None, :] & valid_row[:, None])
