"""Kernels behind decorators: autotuned, with heuristics, with parameters of every kind."""

# ruff: noqa: N803, ARG001 (named as kernels name them)
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

from oortriage.kernels.mock import Pointer

HALF, SINGLE = Pointer("float16"), Pointer("float32")


@triton.jit
def product(a, b, c, depth, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.arange(0, BM)
    columns = tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, depth, BK):
        left = tl.load(a + rows[:, None] * 1024 + (step + inner)[None, :])
        right = tl.load(b + (step + inner)[:, None] * 1024 + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * 1024 + columns[None, :], total)


def config(block: int, stages: int) -> triton.Config:
    return triton.Config({"BM": block, "BN": block, "BK": 64}, num_stages=stages, num_warps=4)


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("measured, cleared or copied on a card that is not there")


def tuned(configs: list[triton.Config], **named: Any) -> Any:
    """Autotune the product over configurations."""
    return triton.autotune(configs=configs, key=["depth"], **named)(product)


#: 128 x 128 with 4 stages takes 98,304 bytes on sm_80, 64 x 64 with 3 stages 32,768.
LARGE, SMALL, SMALLEST = config(128, 4), config(64, 3), config(32, 2)


@triton.heuristics({"EVEN": lambda given: given["depth"] % given["BLOCK"] == 0})
@triton.jit
def guessed(x, y, depth, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    index = tl.arange(0, BLOCK)
    mask = index < depth
    values = tl.load(x + index) if EVEN else tl.load(x + index, mask=mask)
    tl.store(y + index, tl.cumsum(values, axis=0), mask=mask)


@triton.jit
def refusing(x, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK == 3, "three it must be")


def launch(kernel: Any, *, depth: int = 4096, **constants: Any) -> None:
    kernel[(1,)](HALF, HALF, SINGLE, depth, **constants)


def grid_of(seen: dict[str, Any]) -> Callable[[dict[str, Any]], tuple[int]]:
    """Return a grid that keeps what it is asked with."""

    def grid(meta: dict[str, Any]) -> tuple[int]:
        seen.update(meta)
        return (1,)

    return grid
