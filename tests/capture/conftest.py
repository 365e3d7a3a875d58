"""Small programs that launch real kernels through Triton's own launch path, on a card that is not there.

Triton compiles them to machine code; ``CompiledKernel._init_handles`` then compares with the card's limit
and raises the real exception.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oortriage.capture.environment import capture_variables
from tests.conftest import ROOT

CARD = """
import triton
from oortriage.gpu.virtual.adapter import Target
from oortriage.gpu.virtual.driver import Card, VirtualDriver
from oortriage.kernels.mock import Pointer

class Driver(VirtualDriver):
    launcher_cls = staticmethod(lambda source, metadata: lambda *a, **k: None)

    def __init__(self, limit):
        super().__init__(Card(Target("cuda", 75, 32), limit), 0)
        self.utils.load_binary = lambda *a: (1, 2, 32, 0, 1024)

def install(limit=1000):
    triton.runtime.driver.set_active(Driver(limit))
"""
HELPER = """
import triton
import triton.language as tl

@triton.jit
def larger(a, b):
    return tl.maximum(a, b)

@triton.jit
def settle(x):
    return x - tl.reduce(x, 1, larger)[:, None]
"""
KERNELS = """
import triton
import triton.language as tl
from triton.language.extra import libdevice

import helper

SCALE: tl.constexpr = tl.constexpr(2.0)
PASSWORD = "planted-in-a-global"

@triton.jit
def product(X, Y, n, one, flag, KIND: tl.constexpr, B: tl.constexpr, DT: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(X + i[:, None] * n + i[None, :])
    acc = tl.dot(a, a, out_dtype=DT) * SCALE + one
    if KIND == "settle":
        acc = helper.settle(acc)
    if flag:
        acc = libdevice.exp(acc)
    tl.store(Y + i[:, None] * n + i[None, :], acc)

def launch(kernel=product, B=32, **more):
    from card import Pointer
    arguments = {"KIND": "settle", "B": B, "DT": tl.float32, **more}
    return kernel[(1,)](Pointer("float16"), Pointer("float32"), 512, 1, True, **arguments)

CONFIGS = [triton.Config({"B": size}, num_warps=4) for size in (16, 32, 64)]

def tuned(limit):
    import triton.runtime.autotuner as autotuner
    from oortriage.gpu.virtual.driver import call_once
    kernel = triton.autotune(CONFIGS, key=["n"], do_bench=call_once)(product)
    return kernel
"""
FAIL = """
import card; card.install()
import kernels
kernels.launch()
"""


class Programs:
    """Runs a program under the hook, as ``oortriage run`` does."""

    def __init__(self, folder: Path, triton_cache: Path) -> None:
        self.folder, self.capsules = folder, folder / "capsules"
        self._cache = triton_cache
        for name, text in (("card", CARD), ("helper", HELPER), ("kernels", KERNELS)):
            (folder / f"{name}.py").write_text(text, encoding="utf-8")

    def environment(self, *, hooked: bool = True, triton: str = "", paths: tuple[Path, ...] = ()) -> dict[str, str]:
        own = [*map(str, paths), str(self.folder), str(ROOT), *([triton] if triton else [])]
        base = {**os.environ, "PYTHONPATH": os.pathsep.join(own), "TRITON_CACHE_DIR": str(self._cache)}
        base |= {"TRITON_DEFAULT_FP_FUSION": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        base.pop("OORTRIAGE_CAPTURE", None)
        return {**base, **capture_variables(self.capsules, base)} if hooked else base

    def run(
        self, text: str, *arguments: str, env: dict[str, str] | None = None, **how: Any
    ) -> subprocess.CompletedProcess[str]:
        program = self.folder / "program.py"
        program.write_text(text, encoding="utf-8")
        return subprocess.run(
            [sys.executable, str(program), *arguments],
            capture_output=True,
            text=True,
            env={**self.environment(**how), **(env or {})},
            cwd=self.folder,
            timeout=300,
            check=False,
        )

    def found(self) -> list[dict[str, Any]]:
        files = sorted(self.capsules.glob("*")) if self.capsules.is_dir() else []
        assert all(file.suffix == ".json" for file in files), files
        return [json.loads(file.read_text(encoding="utf-8")) for file in files]


@pytest.fixture(scope="session")
def triton_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("triton")


@pytest.fixture
def programs(tmp_path: Path, triton_cache: Path) -> Programs:
    pytest.importorskip("triton", reason="needs Triton (no GPU)")
    return Programs(tmp_path, triton_cache)


@pytest.fixture(scope="session")
def captured(tmp_path_factory: pytest.TempPathFactory, triton_cache: Path) -> Callable[[], Path]:
    """A capsule of the installed Triton, made once."""
    made: list[Path] = []

    def get() -> Path:
        if not made:
            pytest.importorskip("triton", reason="needs Triton (no GPU)")
            programs = Programs(tmp_path_factory.mktemp("captured"), triton_cache)
            done = programs.run(FAIL)
            assert done.returncode == 1, done.stderr
            made.extend(programs.capsules.glob("*.json"))
        return made[0]

    return get
