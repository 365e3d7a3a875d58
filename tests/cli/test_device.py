"""``oortriage device`` as a process of its own, with a module named pynvml that a test writes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run

CARD = """
from types import SimpleNamespace

class NVMLError(Exception):
    value = 3

def nvmlInit(): pass
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): return 1
def nvmlDeviceGetHandleByIndex(i): return i
def nvmlSystemGetDriverVersion(): return "570.1"
def nvmlSystemGetCudaDriverVersion_v2(): return 12040
def nvmlDeviceGetUUID(h): return "GPU-1234"
def nvmlDeviceGetName(h): return "Tesla T4"
def nvmlDeviceGetCudaComputeCapability(h): return (7, 5)
def nvmlDeviceGetMemoryInfo(h): return SimpleNamespace(total=16 << 30, used=1 << 30, free=15 << 30)
def nvmlDeviceGetComputeRunningProcesses(h): return []
def nvmlDeviceGetGraphicsRunningProcesses(h): return []
def nvmlDeviceGetMigMode(h): raise NVMLError
"""
NONE = (
    "def nvmlInit():\n    error = Exception('NVML Shared Library Not Found')\n    error.value = 12\n    raise error\n"
)


@pytest.fixture
def module(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    own = os.pathsep.join(part for part in (str(tmp_path), environment.get("PYTHONPATH", "")) if part)
    return {"PYTHONPATH": own, "CUDA_VISIBLE_DEVICES": "0"}


def test_a_card(run: Run, module: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text(CARD)
    done = run("device", env=module)
    assert (done.returncode, done.stderr) == (0, "")
    assert "GPU 0: Tesla T4, compute 7.5, CUDA device 0" in done.stdout
    assert "memory: 16.00 GiB, 1.00 GiB used, 15.00 GiB free" in done.stdout
    assert "CUDA_VISIBLE_DEVICES=0; seen by CUDA: 1 of 1" in done.stdout


def test_a_card_as_json(run: Run, module: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text(CARD)
    done = run("device", "--format", "json", env=module)
    (one,) = json.loads(done.stdout)["devices"]
    assert (one["name"], one["capability"], one["cuda"], one["mig"]) == ("Tesla T4", [7, 5], "12.4", None)


def test_none_ends_with_three_and_says_what_helps(run: Run, module: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text(NONE)
    done = run("device", env=module)
    assert (done.returncode, done.stderr) == (3, "")
    assert "remedy: " in done.stdout
    done = run("device", "-f", "json", env=module)
    assert done.returncode == 3
    assert json.loads(done.stdout)["unavailable"]["kind"] == "no_library"
