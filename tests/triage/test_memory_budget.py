"""A verdict on a vLLM log comes with the budget rebuilt, and with flags solved from it instead of "higher"."""

from __future__ import annotations

import pytest

from oortriage.api import Analyzer
from oortriage.triage.diagnosis import Diagnosis
from tests.budget._logs import available, banner, gate, pool_v1, profile_v0, refused_v1, usage
from tests.conftest import ROOT
from tests.triage.messages import NO_BLOCKS

FIXTURES = ROOT / "fixtures"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24.00 GiB of "
    "which 512.00 MiB is free. Process 7 has 23.40 GiB memory in use. Of the allocated memory 22.00 GiB is allocated by "
    "PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.\n"
)


def by_flag(diagnosis: Diagnosis, flag: str) -> list[str]:
    return [one.change for one in diagnosis.prescriptions if one.change.split()[0] == flag]


def test_a_refused_length_has_an_exact_share(analyzer: Analyzer) -> None:
    """2.0 GiB are missing of 24: 0.80 becomes 0.89; before, the advice was a number without the bounds of rounding."""
    diagnosis = analyzer.text(
        banner("0.9.2", 65536)
        + "DEBUG Initial free memory: 23.5 GiB; Requested memory: 0.8 (util), 19.2 GiB\n"
        + available("3.0")
        + refused_v1(65536, "5.0", "3.0", 39312)
    )
    assert diagnosis.budget is not None
    assert by_flag(diagnosis, "--max-model-len") == ["--max-model-len 39312"]
    assert any(one.kind == "utilization" and one.value == 0.89 for one in diagnosis.budget.solutions)


def test_v0_tokens_alone_no_longer_say_higher(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(
        banner("0.7.3", 32768, "V0")
        + profile_v0(24.0, 0.8, 15.0, 0.2, 1.0, 3.0)
        + "INFO 02-26 09:54:05 executor_base.py:111] # cuda blocks: 1536, # CPU blocks: 2048\n"
        + "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV "
        "cache (24576). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
    )
    # 32,768 tokens are 2,048 blocks of 2 MiB: 4 GiB, one more than there is; 0.80 + 1 / 24, and the printed bounds.
    assert by_flag(diagnosis, "--gpu-memory-utilization") == ["--gpu-memory-utilization 0.85"]
    assert not any("higher" in one.change for one in diagnosis.prescriptions)


def test_a_share_that_holds_no_full_request_gives_way_to_one_that_does(analyzer: Analyzer) -> None:
    """Half a GiB is not enough for 32,768 tokens of 128 KiB: 4 GiB and the missing 1.05 of 24 are 0.7 + 0.21."""
    diagnosis = analyzer.text(
        profile_v0(24.0, 0.70, 16.0, 0.5, 1.35, -1.05)
        + "INFO 02-26 09:54:05 executor_base.py:111] # cuda blocks: 0, # CPU blocks: 2048\n"
        + "INFO 02-26 09:54:05 executor_base.py:116] Maximum concurrency for 32768 tokens per request: 0.00x\n"
        + NO_BLOCKS
    )
    (share,) = by_flag(diagnosis, "--gpu-memory-utilization")
    assert share == "--gpu-memory-utilization 0.92"


def test_where_no_share_works_it_is_said(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(profile_v0(8.0, 0.7, 8.2, 0.2, 1.2, -4.0) + NO_BLOCKS)
    assert by_flag(diagnosis, "--gpu-memory-utilization") == []
    assert any("no --gpu-memory-utilization works" in one.why for one in diagnosis.will_not_help)


def test_an_allocation_beside_the_pool_has_a_number(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(
        banner("0.17.1")
        + "DEBUG Initial free memory: 23.5 GiB; Requested memory: 0.9 (util), 21.6 GiB\n"
        + available("10.0")
        + pool_v1(81920, 8192, 10.0)
        + "(EngineCore pid=7) INFO 08-20 18:04:30 [gpu_model_runner.py:5000] Capturing CUDA graphs (decode, FULL)\n"
        + "Capturing CUDA graphs (decode, FULL):   0%|          | 0/4 [00:00<?, ?it/s]\n"
        + "Traceback (most recent call last):\n"
        + '  File "/x/vllm/v1/worker/gpu_model_runner.py", line 5100, in capture_model\n    self._capture_cudagraphs()\n'
        + OOM
    )
    assert diagnosis.resource == "device_memory"
    assert diagnosis.phase == "graph_capture"
    assert by_flag(diagnosis, "--gpu-memory-utilization") == ["--gpu-memory-utilization 0.83"]  # 0.9 - 1.5 / 24


def test_a_refused_start_takes_only_its_own_figures(analyzer: Analyzer) -> None:
    """vllm-omni#1842: another stage's engine prints its own KV memory in the same log."""
    diagnosis = analyzer.file(FIXTURES / "vllm" / "gate-omni-1842-two-stages" / "log.txt")
    assert diagnosis.budget is not None
    assert {one.kind for one in diagnosis.budget.parts} == {"others", "other", "missing"}
    assert "kv_available_bytes" not in diagnosis.budget.figures


def test_the_pool_in_use_is_told_beside_what_was_set_aside(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(
        banner("0.4.2", 4096, "V0")
        + "INFO 05-20 13:20:31 gpu_executor.py:81] # GPU blocks: 1201, # CPU blocks: 512\n"
        + usage(98.9, 96)
        + "ValueError: Out of memory! No free blocks are available.\n"
    )
    assert diagnosis.budget is not None
    assert diagnosis.budget.use is not None
    assert diagnosis.budget.use.peak_share == pytest.approx(0.989)
    assert by_flag(diagnosis, "--max-num-seqs") == ["--max-num-seqs 97"]
    assert by_flag(diagnosis, "--max-model-len") == []  # 4,096 fit already


@pytest.mark.parametrize(
    "text",
    [
        "python train.py\n" + OOM,
        gate(3.22, 4.0, 0.9).replace("Free memory on device cuda:0 (3.22/4.0 GiB)", "Free memory"),
    ],
)
def test_other_programs_and_logs_without_figures_have_none(text: str, analyzer: Analyzer) -> None:
    assert analyzer.text(text).budget is None


def test_verdicts_carry_a_budget_for_every_public_vllm_case_that_prints_one(analyzer: Analyzer) -> None:
    """Of the labelled KV cases only those without any figure have none."""
    without = set()
    for folder in sorted((FIXTURES / "vllm").glob("kv-*")):
        log = next(one for one in folder.iterdir() if one.name != "case.toml")
        if analyzer.file(log).budget is None:
            without.add(folder.name)
    assert without == set()
