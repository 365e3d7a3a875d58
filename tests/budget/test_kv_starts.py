"""The driver of the engine starts, with a program that plays vLLM: one starts, one is refused, one hangs."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kv_starts.py"
FAKE = """
import json, pathlib, sys, time
job = json.loads(pathlib.Path(sys.argv[1]).read_text())
pathlib.Path(job["notes"]).write_text(json.dumps({"stage": "start", "worker": {"total": 1}}))
while not pathlib.Path(job["go"]).exists():
    time.sleep(0.01)
arguments = job["arguments"]
assert pathlib.Path(arguments["model"], "config.json").is_file()
if arguments.get("gpu_memory_utilization") == 0.999:
    print("DEBUG worker init memory snapshot: torch_peak=0.0GiB, free_memory=139.2GiB, total_memory=139.8GiB, x")
    print("ValueError: Free memory on device cuda:0 (139.2/139.8 GiB) on startup is less than desired")
    sys.exit(1)
if "kv_cache_memory_bytes" in arguments:
    print("INFO Available KV cache memory: 1.0 GiB")
    time.sleep(60)
print("INFO 11-29 [gpu_model_runner.py:5132] Model loading took 14.99 GiB memory and 0.1 seconds")
print("DEBUG Memory profiling takes 1.00 seconds. Total non KV cache memory: 18.0GiB; torch peak memory increase: "
      "2.5GiB; non-torch forward increase memory: 0.51GiB; weights memory: 14.99GiB.")
print("INFO Available KV cache memory: 107.82 GiB")
print("INFO GPU KV cache size: 883,264 tokens")
print("INFO Maximum concurrency for 8,192 tokens per request: 107.82x")
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, Path]:
    tmp_path = tmp_path_factory.mktemp("starts")
    fake = tmp_path / "fake.py"
    fake.write_text(FAKE, encoding="utf-8")
    command = [sys.executable, str(SCRIPT), "measure", "--out", str(tmp_path / "out"), "--client", str(fake)]
    wanted = ["--only", "llama-0.9", "--only", "llama-gate", "--only", "llama-5-gib", "--each", "1.5"]
    done = subprocess.run([*command, *wanted], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8")), tmp_path / "out"


def test_every_engine_leaves_its_figures_and_its_log(measured: tuple[dict, Path]) -> None:
    found, out = measured
    results = {one["setting"]: one for one in found["results"]}
    assert found["not_run"] == []
    assert results["llama-0.9"]["status"] == "started"
    assert results["llama-0.9"]["printed"] == {
        "loading_gib": 14.99,
        "weights_gib": 14.99,
        "peak_gib": 2.5,
        "non_torch_gib": 0.51,
        "non_kv_gib": 18.0,
        "available_gib": 107.82,
        "kv_tokens": 883264,
        "concurrency": 107.82,
    }
    assert results["llama-0.9"]["noted"]["worker"] == {"total": 1}
    with tarfile.open(out / "logs.tar.gz") as packed:
        assert sorted(packed.getnames()) == [f"logs/{name}.log" for name in sorted(results)]


def test_one_that_is_refused_and_one_that_hangs_do_not_end_the_run(measured: tuple[dict, Path]) -> None:
    results = {one["setting"]: one for one in measured[0]["results"]}
    assert results["llama-gate"]["status"] == "refused or failed"
    assert results["llama-gate"]["error"].startswith("ValueError: Free memory on device cuda:0")
    assert results["llama-gate"]["printed"] == {"total_gib": 139.8, "gate_free_gib": 139.2}
    assert results["llama-5-gib"]["status"] == "timed out"
    assert results["llama-5-gib"]["printed"] == {"available_gib": 1.0}


def test_none_is_begun_once_the_time_is_over(tmp_path: Path) -> None:
    fake = tmp_path / "fake.py"
    fake.write_text(FAKE, encoding="utf-8")
    command = [sys.executable, str(SCRIPT), "measure", "--out", str(tmp_path), "--client", str(fake)]
    command += ["--only", "llama-0.9", "--only", "llama-0.3", "--seconds", "0.000001", "--alone"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert not (tmp_path / "results.json").exists()
