"""vLLM's real files for tests: read from the package index by range, laid out as an unpacked tree; never kept here."""

from __future__ import annotations

import shutil
from functools import lru_cache
from pathlib import Path

import pytest

from oortriage.fix.tree import materialise
from oortriage.gpu.virtual.adapter import Target
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.source import SourceError, SourceSpec

VERSIONS = ("0.11.0", "0.12.0", "0.13.0", "0.14.1", "0.17.1", "0.20.2", "0.24.0", "0.28.0", "0.33.0")
T4 = Card(Target("cuda", 75, 32), 65_536, "Tesla T4")
A10 = Card(Target("cuda", 86, 32), 101_376, "A10")
A100 = Card(Target("cuda", 80, 32), 166_912, "A100")
FP32 = {"dtype": "float32", "head_size": 256}


@lru_cache(maxsize=16)
def _kept(version: str) -> Path | str:
    try:
        return materialise(version)
    except SourceError as problem:
        return str(problem)


def real_tree(version: str, folder: Path) -> Path:
    """Copy a release's files into a folder of the test's own; skips where they cannot be had."""
    kept = _kept(version)
    if isinstance(kept, str):
        pytest.skip(f"vLLM {version} cannot be read from the package index: {kept}")
    shutil.copytree(kept / "vllm", folder / "vllm")
    return folder


def spec_of(tree: Path, version: str) -> SourceSpec:
    return SourceSpec("vllm", version, "folder", str(tree))
