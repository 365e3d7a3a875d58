"""Facts that no line states: releases dated by line numbers, capability by card, type by cast."""

from __future__ import annotations

import pytest

from oortriage.api import Analyzer
from tests.triage.messages import SHARED, traceback

COMPILER = "/usr/lib/python3.11/site-packages/triton/compiler/compiler.py"

# Line of ``raise OutOfResources(..., "shared memory")``, read in wheels (knowledge file (a)).
TRITON = [
    (568, "2.1.0"),
    (248, "2.3.1"),
    (374, "3.0.0"),
    (388, "3.2.0"),
    (401, "3.3.1"),
    (483, "3.4.0"),
    (456, "3.6.0"),
]
# Line of the NVML assertion in CUDACachingAllocator.cpp (knowledge file (a1)).
NVML = [
    (830, "2.2.2"),
    (844, "2.3.1"),
    (838, "2.4.0"),
    (995, "2.5.1"),
    (1016, "2.7.0"),
    (1131, "2.8.0"),
    (1123, "2.9.1"),
    (1165, "2.11.0"),
    (1319, "2.12.1"),
]


@pytest.mark.parametrize(("line", "version"), TRITON)
def test_triton_is_dated_by_the_line_that_raises(line: int, version: str, analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(traceback(SHARED, (COMPILER, line, "_init_handles")))
    stated = diagnosis.facts["triton_version"]
    assert stated.value == version
    assert stated.confidence < 0.9, "a line number is a hint, not a statement"
    assert stated.source == "traceback line number"


@pytest.mark.parametrize(
    ("file", "line", "function"),
    [
        (COMPILER, 457, "_init_handles"),
        (COMPILER, 456, "compile"),
        ("/usr/lib/python3.11/site-packages/other/compiler.py", 456, "_init_handles"),
    ],
)
def test_another_line_function_or_file_dates_nothing(file: str, line: int, function: str, analyzer: Analyzer) -> None:
    assert "triton_version" not in analyzer.text(traceback(SHARED, (file, line, function))).facts


def test_a_stated_version_goes_before_a_dated_one(analyzer: Analyzer) -> None:
    log = "triton==3.5.1\n" + traceback(SHARED, (COMPILER, 456, "_init_handles"))
    assert analyzer.text(log).facts["triton_version"].value == "3.5.1"


def nvml(line: int, path: str = "../c10/cuda/") -> str:
    return (
        f'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "{path}CUDACachingAllocator.cpp'
        f'":{line}, please report a bug to PyTorch. \n'
    )


@pytest.mark.parametrize(("line", "version"), NVML)
def test_pytorch_is_dated_by_its_nvml_assertion(line: int, version: str, analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(nvml(line))
    assert diagnosis.resource == "device_memory"
    assert diagnosis.facts["torch_version"].value == version


def test_a_line_that_two_releases_share_dates_none(analyzer: Analyzer) -> None:
    """1154 is 2.1.2 and 2.10.0."""
    assert "torch_version" not in analyzer.text(nvml(1154)).facts


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("/usr/lib/python3.12/site-packages/x.py", "3.12"),
        ("/opt/conda/lib/python3.9/x.py", "3.9"),
        (r"C:\Python\python3.10\lib\x.py", "3.10"),
    ],
)
def test_python_is_read_from_the_paths_of_a_traceback(path: str, version: str, analyzer: Analyzer) -> None:
    stated = analyzer.text(traceback(SHARED, (path, "f"))).facts["python_version"]
    assert stated.value == version


@pytest.mark.parametrize(
    ("card", "capability"),
    [
        ("Tesla T4", "7.5"),
        ("NVIDIA GeForce RTX 4090", "8.9"),
        ("NVIDIA A100-SXM4-80GB", "8.0"),
        ("NVIDIA GB10", "12.1"),
    ],
)
def test_the_capability_follows_from_the_card(card: str, capability: str, analyzer: Analyzer) -> None:
    log = f"start\nGPU 0: {card} (UUID: GPU-5d0c1c8e-77aa-4d1b-9b0e-0d4f6a3e9a11)\n{SHARED}\n"
    stated = analyzer.text(log).facts["compute_capability"]
    assert stated.value == capability
    assert stated.line == 2
    assert card in stated.source


def test_an_unknown_card_gives_no_capability(analyzer: Analyzer) -> None:
    log = f"GPU 0: NVIDIA Graphics Device (UUID: GPU-5d0c1c8e-77aa-4d1b-9b0e-0d4f6a3e9a11)\n{SHARED}"
    assert "compute_capability" not in analyzer.text(log).facts


def test_a_cast_settles_the_type_that_the_kernels_run_in(analyzer: Analyzer) -> None:
    """vllm#36802: the model says bfloat16, a T4 has none, and FP32 is what the kernel gets."""
    log = (
        "INFO 03-11 09:14:12 [model.py:1886] Upcasting torch.bfloat16 to torch.float32.\n"
        "INFO 03-11 09:14:29 [core.py:101] Initializing a V1 LLM engine (v0.17.1) with config: "
        "model='org/m', dtype=torch.bfloat16, max_seq_len=4096, tensor_parallel_size=1\n"
        f"{SHARED}\n"
    )
    facts = analyzer.text(log).facts
    assert facts["dtype"].value == "float32"
    assert facts["dtype"].line == 1
    assert facts["dtype_from"].value == "bfloat16"


def test_the_driver_s_ceiling_is_not_the_runtime(analyzer: Analyzer) -> None:
    """``CUDA Version`` of nvidia-smi is what the driver could serve, not what the program uses."""
    log = (
        "| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4 |\n"
        f"CUDA used to build PyTorch: 12.1\n{SHARED}\n"
    )
    facts = analyzer.text(log).facts
    assert facts["cuda_driver_ceiling"].value in {"12.4", 12.4}
    assert facts["cuda_runtime"].value in {"12.1", 12.1}


def test_the_capability_of_a_check_is_read_as_one_number(analyzer: Analyzer) -> None:
    """vLLM before 0.3 prints a pair: ``compute capability (8, 9)``."""
    diagnosis = analyzer.text(
        "RuntimeError: vLLM cannot currently support max_model_len=32768 with block_size=16 on GPU "
        "with compute capability (8, 9) (required shared memory 133180.0 > available shared memory "
        "101376)."
    )
    assert diagnosis.facts["compute_capability"].value == "8.9"
