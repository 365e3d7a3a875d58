"""Resources whose rule says all there is: the figures are stated, the card is ruled out."""

from __future__ import annotations

import pytest

from oortriage.api import Analyzer
from oortriage.evidence.loader import built_in_rules
from tests.triage.reading import documented_causes

CAUSES = documented_causes()

CASES = [
    (
        (
            "triton.runtime.errors.OutOfResources: out of resource: threads, Required: 2048, Hardware "
            "limit: 1024. Reducing block sizes or `num_stages` may help."
        ),
        "threads",
        "block_too_large",
        "2,048 of 1,024 threads",
    ),
    (
        (
            "triton.runtime.errors.OutOfResources: out of resource: tensor memory, Required: 640, "
            "Hardware limit: 512. Reducing block sizes or `num_stages` may help."
        ),
        "tensor_memory",
        "tile_too_large",
        "640 of 512 columns",
    ),
    (
        (
            "ptxas fatal   : (C7600) Register allocation failed with register count of '255'. Compile "
            "the program with a higher register target"
        ),
        "registers",
        "register_bound",
        "",
    ),
    (
        (
            "RuntimeError: [enforce fail at alloc_cpu.cpp:73] . DefaultCPUAllocator: can't allocate "
            "memory: you tried to allocate 116813856768 bytes. Error code 12 (Cannot allocate memory)"
        ),
        "host_memory",
        "allocation_failed",
        "108.79 GiB requested",  # 116,813,856,768 / 2**30
    ),
    (
        "model requires more system memory (30.0 GiB) than is available (12.5 GiB)",
        "host_memory",
        "weights_do_not_fit",
        "30.00 GiB requested, 12.50 GiB available",
    ),
    ("RuntimeError: No CUDA GPUs are available", "device_context", "no_device", ""),
    (
        (
            "RuntimeError: DataLoader worker (pid 123) is killed by signal: Bus error. It is possible "
            "that dataloader's workers are out of shared memory."
        ),
        "host_shm",
        "dataloader",
        "",
    ),
    (
        "Error while creating shared memory segment /dev/shm/nccl-abc (size 9637888)",
        "host_shm",
        "nccl_segment",
        "9.19 MiB requested",  # 9,637,888 / 2**20
    ),
]


@pytest.mark.parametrize(("text", "resource", "cause", "figures"), CASES, ids=lambda one: one[:24])
def test_the_message_alone_gives_resource_cause_and_figures(
    text: str, resource: str, cause: str, figures: str, analyzer: Analyzer
) -> None:
    diagnosis = analyzer.text(text)
    assert (diagnosis.resource, diagnosis.cause) == (resource, cause)
    assert diagnosis.exit_code == 1
    assert figures in diagnosis.summary
    assert diagnosis.summary.startswith(diagnosis.title)


def test_every_cause_that_a_rule_names_is_a_documented_one() -> None:
    undocumented = {
        rule.code: (rule.resource, rule.cause)
        for rule in built_in_rules()
        if rule.cause and rule.cause not in CAUSES.get(rule.resource, set())
    }
    assert undocumented == {}


@pytest.mark.parametrize("text", [one[0] for one in CASES], ids=[one[1] for one in CASES])
def test_the_card_is_ruled_out_with_the_line_that_does_it(text: str, analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(f"starting\n{text}\n")
    (ruled_out,) = [one for one in diagnosis.ruled_out if one.resource == "device_memory"]
    assert ruled_out.line == 2
    assert ruled_out.reason


def test_tensor_memory_is_no_shared_memory(analyzer: Analyzer) -> None:
    ruled_out = {one.resource for one in analyzer.text(CASES[1][0]).ruled_out}
    assert ruled_out == {"device_memory", "shared_memory"}


@pytest.mark.parametrize("text", [CASES[0][0], CASES[1][0]], ids=["threads", "tensor_memory"])
def test_the_message_s_own_hint_at_pipeline_stages_is_not_repeated(text: str, analyzer: Analyzer) -> None:
    """Triton prints the same hint for every resource; stages move neither threads nor columns."""
    for one in analyzer.text(text).prescriptions:
        assert "num_stages" not in one.change
