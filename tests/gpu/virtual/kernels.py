"""Kernels that tests compile: each kind of operation for which Triton takes shared memory."""

# ruff: noqa: N803 (named as kernels name them)
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, depth, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, depth, BK):
        left = tl.load(a + rows[:, None] * stride_a + (step + inner)[None, :])
        right = tl.load(b + (step + inner)[:, None] * stride_b + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total)


@triton.jit
def transposing(a, b, c, depth, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, depth, BK):
        left = tl.load(a + rows[:, None] * stride_a + (step + inner)[None, :])
        right = tl.load(b + columns[:, None] * stride_b + (step + inner)[None, :])
        total += tl.dot(left, tl.trans(right))
    tl.store(c + rows[None, :] * stride_c + columns[:, None], tl.trans(total))


@triton.jit
def handing_over(x, y, counts, N: tl.constexpr, M: tl.constexpr):
    rows = tl.arange(0, N)
    columns = tl.arange(0, M)
    values = tl.load(x + rows[:, None] * M + columns[None, :])
    summed = tl.sum(values, axis=0)
    _best, where = tl.max(values, axis=1, return_indices=True)
    running = tl.cumsum(values, axis=0)
    picked = tl.gather(values, tl.broadcast_to(where[:, None] % N, (N, M)), axis=0)
    tl.store(y + rows[:, None] * M + columns[None, :], running + picked + summed[None, :])
    bins = tl.histogram(where, M)
    before = tl.atomic_add(counts + columns, bins)
    tl.store(counts + M + tl.arange(0, M), before)
    tl.atomic_add(counts + columns, bins)


@triton.jit
def descriptors(a, b, out, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIALISED: tl.constexpr):
    left_of = tl.make_tensor_descriptor(a, (m, k), (k, 1), (BM, BK))
    right_of = tl.make_tensor_descriptor(b, (n, k), (k, 1), (BN, BK))
    out_of = tl.make_tensor_descriptor(out, (m, n), (n, 1), (BM, BN))
    row = tl.program_id(0) * BM
    column = tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in tl.range(0, k, BK, warp_specialize=SPECIALISED):
        left = left_of.load((row, step))
        right = right_of.load((column, step))
        total = tl.dot(left, right.T, total)
    out_of.store((row, column), total.to(tl.float16))


@triton.jit
def scaled(a, b, c, a_scale, b_scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.arange(0, BM)
    columns = tl.arange(0, BN)
    inner = tl.arange(0, BK)
    groups = tl.arange(0, BK // 32)
    left = tl.load(a + rows[:, None] * BK + inner[None, :])
    right = tl.load(b + inner[:, None] * BN + columns[None, :])
    left_scale = tl.load(a_scale + rows[:, None] * (BK // 32) + groups[None, :])
    right_scale = tl.load(b_scale + columns[:, None] * (BK // 32) + groups[None, :])
    total = tl.dot_scaled(left, left_scale, "e4m3", right, right_scale, "e4m3")
    tl.store(c + rows[:, None] * BN + columns[None, :], total)


@triton.jit(noinline=True)
def summing(x, y):
    index = tl.arange(0, 1024)
    tl.store(y + index, tl.cumsum(tl.load(x + index), axis=0))


@triton.jit
def calling(x, y, rows, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    inner = tl.arange(0, 32)
    summing(x, y)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for row in range(rows):
        left = tl.load(x + row + index[:, None] * 32 + inner[None, :]).to(tl.float16)
        right = tl.load(x + row + inner[:, None] * BLOCK + index[None, :]).to(tl.float16)
        total = tl.dot(left, right, total)
        summing(x + row, y)
    tl.store(y + index[:, None] * BLOCK + index[None, :], total)


@triton.jit
def copying(x, y, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + index, tl.load(x + index, mask=index < n), mask=index < n)
