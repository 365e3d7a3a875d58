"""What the rules cost, measured where there is a card; it plays a T4, unless it is one."""

from __future__ import annotations

import pytest

from oortriage.fix.cost import measure
from oortriage.kernels.source import SourceError, find_source, open_source
from oortriage.replay.compiler_env import compiler_env

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.index,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device"),
]


def test_every_candidate_is_timed_and_right() -> None:
    try:
        source = find_source("vllm", "0.17.1")
        open_source(source).has("vllm/envs.py")
    except SourceError as problem:
        pytest.skip(f"vLLM's source cannot be read here: {problem}")
    found = measure(source, compiler_env(""), "emulated")
    assert found.problems == []
    assert (found.mode, found.target, found.limit_bytes) == ("emulated", "sm_75", 65_536)
    assert found.checks == 27
    assert found.largest_error <= 1e-5
    control = {(row.layer, row.batch): row.status for row in found.rows if row.rule == "control"}
    assert control["full", "prefill 1 x 2048"] == control["full", "decode 160 x 256"] == "out_of_resources"
    assert control["full", "decode 8 x 512"] == control["sliding", "prefill 1 x 2048"] == "ran"
    assert {one.group for one in found.means} == {"all", "full", "sliding", "prefill", "decode", "mixed"}
    assert all(row.median_ms and len(row.turns_ms) == 2 for row in found.rows if row.status == "ran")
    assert found.drift < 1.25  # a shared card wanders; more would make the ratios mean nothing
    assert found.recommended
