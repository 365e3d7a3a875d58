"""Starts the child that compiles cells both ways, and names the cells."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from oortriage.errors import OortriageError
from oortriage.gpu.virtual.adapter import Target
from oortriage.replay.compiler_env import CompilerEnv, compiler_env
from tests.gpu.virtual.both_ways import Answer, Twice

ROOT = Path(__file__).resolve().parents[3]


def nvidia(arch: int) -> Target:
    return Target("cuda", arch, 32)


def amd(arch: str) -> Target:
    return Target("hip", arch, 64 if arch.startswith("gfx9") else 32)


def attention(target: Target, dtype: str, head: int, tile: int = 32, *, window: int = 0, **options: Any) -> Twice:
    constants = {
        "GROUP": 2,
        "BLOCK_M": 16,
        "TILE_SIZE": tile,
        "HEAD_SIZE": head,
        "HEAD_PADDED": head,
        "PAGE": 16,
        "WINDOW": window,
    }
    name = f"attention {target.name} {dtype} head {head} tile {tile}"
    return Twice(_named(name, options), "attention", target, dtype, constants, options)


def product(kernel: str, target: Target, block: tuple[int, int, int], dtype: str = "fp16", **options: Any) -> Twice:
    constants = dict(zip(("BM", "BN", "BK"), block, strict=True))
    return Twice(_named(f"{kernel} {target.name} {dtype} {block}", options), kernel, target, dtype, constants, options)


def descriptors(target: Target, *, specialised: bool, **options: Any) -> Twice:
    constants = {"BM": 128, "BN": 128, "BK": 64, "SPECIALISED": specialised}
    name = f"descriptors {target.name}{' specialised' if specialised else ''}"
    return Twice(_named(name, options), "descriptors", target, "fp16", constants, options)


def other(kernel: str, target: Target, **constants: int) -> Twice:
    return Twice(f"{kernel} {target.name}", kernel, target, "fp32", constants)


def _named(name: str, options: dict[str, Any]) -> str:
    return " ".join([name, *(f"{key}={value}" for key, value in options.items())])


def environment(version: str) -> CompilerEnv:
    """Return a Triton release, or skip: it comes from the package index."""
    try:
        return compiler_env(version)
    except OortriageError as problem:
        pytest.skip(str(problem))


def both_ways(cells: Sequence[Twice], env: CompilerEnv) -> dict[str, Answer]:
    """Compile cells in one child process."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.gpu.virtual.both_ways"],
        input=msgspec.json.encode(list(cells)),
        capture_output=True,
        check=False,
        env=env.variables(),
        cwd=ROOT,
    )
    answers = [msgspec.json.decode(line, type=Answer) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert len(answers) == len(cells)
    return {answer.name: answer for answer in answers}


@lru_cache(maxsize=1)
def _installed() -> dict[str, Answer]:
    return both_ways(CELLS, compiler_env())


def installed() -> dict[str, Answer]:
    """Compile all cells with the installed Triton, once a test run."""
    pytest.importorskip("triton")
    return _installed()


T4, A100, A10, H100, B200, RTX50 = (nvidia(arch) for arch in (75, 80, 86, 90, 100, 120))
MI250, MI300, MI350, RX7900, RX9070 = (amd(arch) for arch in ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"))

FP32_HEAD_256 = attention(T4, "fp32", 256, num_stages=3)

CELLS = (
    FP32_HEAD_256,
    attention(T4, "fp32", 256, 16),
    attention(T4, "fp16", 128, num_warps=2),
    attention(A10, "fp16", 128, num_stages=3),
    attention(A10, "bf16", 64, 64, window=256, num_stages=2, num_warps=8),
    attention(H100, "bf16", 128, 64, num_stages=3),
    attention(RTX50, "fp32", 128, num_stages=2),
    attention(MI300, "fp16", 128, num_stages=2),
    attention(MI350, "bf16", 256, num_stages=2),
    attention(RX7900, "fp16", 64, num_stages=1),
    product("matmul", T4, (64, 64, 32), num_stages=3),
    product("matmul", A100, (128, 128, 32), num_stages=4, num_warps=8),
    product("matmul", A100, (64, 64, 32), "bf16", num_stages=2),
    product("matmul", H100, (128, 128, 32), num_stages=3, num_warps=8),
    product("matmul", H100, (128, 128, 64), "fp8e4nv", num_stages=3),
    product("matmul", H100, (64, 64, 32), num_ctas=2),
    product("matmul", B200, (128, 128, 32), num_stages=3, num_warps=8),
    product("matmul", B200, (128, 128, 64), "fp8e4nv", num_stages=3),
    product("matmul", RTX50, (64, 128, 64), "fp8e4nv", num_stages=2),
    product("matmul", MI250, (128, 128, 32), num_stages=2, num_warps=8),
    product("matmul", MI300, (64, 64, 64), "fp8e4b8", num_stages=2),
    product("matmul", RX9070, (64, 64, 32), num_stages=2),
    product("transposing", T4, (64, 64, 32)),
    product("transposing", A10, (64, 64, 32), num_stages=3),
    product("transposing", B200, (64, 64, 32)),
    product("transposing", RX7900, (64, 64, 32)),
    product("scaled", B200, (128, 128, 128), "fp8e4nv"),
    product("scaled", MI350, (128, 128, 128), "fp8e4nv"),
    other("handing_over", T4, N=32, M=32),
    other("handing_over", H100, N=64, M=32),
    other("handing_over", MI300, N=32, M=32),
    descriptors(H100, specialised=False, num_stages=3),
    descriptors(H100, specialised=True, num_stages=3),
    descriptors(B200, specialised=True, num_stages=3),
    descriptors(B200, specialised=True, num_stages=2, num_warps=8),
    descriptors(RTX50, specialised=False, num_stages=2),
    other("calling", A100, BLOCK=64),
    other("calling", MI300, BLOCK=32),
    other("copying", T4, BLOCK=1024),
)
