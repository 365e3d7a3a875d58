"""Diagnoses to report on: of every labelled log, and of a few chosen over the resources."""

from __future__ import annotations

from pathlib import Path

import pytest

from oortriage.api import Analyzer
from oortriage.scoring.case import load_case, load_cases
from oortriage.triage.diagnosis import Diagnosis

#: One log for each thing that can be said of a log.
CHOSEN = {
    "shared_memory": "triton/vllm-36802-t4-fp32-head256",
    "tensor_memory": "launch/mamba-904-tmem-fatal",
    "registers": "launch/triton-8488-ptxas-255",
    "threads": "launch/flagtree-714-threads-256",
    "device_memory": "pytorch/p2-35901-fragmentation",
    "kv_cache": "vllm/kv-2418-229-blocks",
    "host_shm": "shm/protenix-2-dataloader-bus-error",
    "none": "triton/zimage-52-sage-fallback-recovered",
    "undetermined": "clean/vllm-only-wrapper-lines",
}
#: More of them, for whole reports.
REPORTED = {
    "host_memory": "host/k8s-28923-oomkilled",
    "device_context": "context/init-802-fabric-manager",
    "compile_time": "compilers/vllm-45871-hipcc-lds",
}


@pytest.fixture(scope="session")
def every(analyzer: Analyzer, fixtures: Path) -> list[Diagnosis]:
    return [analyzer.file(case.path, name=case.log) for case in load_cases(fixtures)]


@pytest.fixture(scope="session")
def chosen(analyzer: Analyzer, fixtures: Path) -> dict[str, Diagnosis]:
    cases = {name: load_case(fixtures / folder / "case.toml") for name, folder in CHOSEN.items()}
    return {name: analyzer.file(case.path, name=case.log) for name, case in cases.items()}


@pytest.fixture(scope="session")
def reported(chosen: dict[str, Diagnosis], analyzer: Analyzer, fixtures: Path) -> dict[str, Diagnosis]:
    cases = {name: load_case(fixtures / folder / "case.toml") for name, folder in REPORTED.items()}
    return chosen | {name: analyzer.file(case.path, name=case.log) for name, case in cases.items()}
