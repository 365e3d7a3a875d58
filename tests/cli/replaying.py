"""What the tests of reproduce, experiment and fit share: one cache for the run, and skips that say what is missing."""

from __future__ import annotations

import json
import os
import subprocess
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from oortriage.kernels.source import SourceError, find_source, open_source
from tests.cli.conftest import Run

#: The selectors of the contract; each is also found from the log.
CONTRACT = ("--gpu", "T4", "--dtype", "float32", "--head-size", "256", "--window", "0", "--tile", "32")
REFERENCE = ("--kernel", "reference.attention")
VLLM = ("--kernel", "vllm.unified_attention", "--vllm", "0.17.1")

#: A matrix product that says aloud that it is imported, moves away, and leaves a thread behind.
KERNEL = '''\
"""A kernel of somebody's own."""
import os, sys, threading, time
import triton
import triton.language as tl

print("imported aloud")
print("and on the other side", file=sys.stderr)
os.chdir("/")
threading.Thread(target=time.sleep, args=(600,)).start()


@triton.jit
def product(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns, depth = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros([BM, BN], dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + k + depth[None, :])
        right = tl.load(b + (k + depth)[:, None] * N + columns[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@triton.jit
def broken(x, N: tl.constexpr):
    tl.store(x + tl.arange(0, N), tl.arange(0, 2 * N))


def plain(x):
    return x
'''
ARGUMENTS = tuple(
    word
    for text in ("a=*fp16", "b=*fp16", "c=*fp32", "N=i32", "K=i32", "BM=64", "BN=64", "BK=32")
    for word in ("--arg", text)
)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all workers of a run."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "cells"


@pytest.fixture(scope="session")
def replay(run: Run, cache: Path) -> Run:
    """Run the command with the shared cache: what one test compiled, the next has at once."""
    pytest.importorskip("triton", reason="compiling needs Triton (the extra [triton], Linux)")
    return partial(run, env={"OORTRIAGE_CACHE": str(cache)}, timeout=600)


@pytest.fixture(scope="session")
def vllm(replay: Run, cache: Path) -> Run:
    """The same, where vLLM's source can be read and its wrapper can run."""
    if find_spec("torch") is None:
        pytest.skip("vLLM's wrappers work on torch tensors, and torch is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OORTRIAGE_CACHE", str(cache))
        try:
            open_source(find_source("vllm", "0.17.1")).has("vllm/envs.py")
        except SourceError as problem:
            pytest.skip(f"vLLM's source cannot be read here: {problem}")
    return replay


def table(done: subprocess.CompletedProcess[str], code: int = 0) -> Any:
    """Check the exit code and that nothing but JSON was printed; return it."""
    assert done.returncode == code, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)
