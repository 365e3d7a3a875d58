"""All terms of a start together: real engine logs of an H200, and nonsense."""

from __future__ import annotations

import pytest

from oortriage.budget.figure import Figure
from oortriage.budget.memory import Available
from oortriage.budget.model import read_model
from oortriage.budget.plan import Settings, prepare
from oortriage.budget.startup import Start, available_at_start, card_total
from oortriage.budget.sums import high, low
from oortriage.errors import UsageError
from oortriage.evidence.values import GIB
from oortriage.fix.engine.model import CONFIG
from tests.budget.test_parameters import COUNTS

H200 = Figure(150109880320, "bytes", "measured")
#: The model of the engine check, as the logs of its runs have it: vLLM 0.22.1, float32, 16,384 tokens, 8 sequences.
SETTINGS = Settings(
    version="0.22.1", dtype="float32", max_model_len=4096, max_num_seqs=8, usage="llm", card="NVIDIA H200",
    total_bytes=H200.value,
)  # fmt: skip


def at_start(utilization: float, *, eager: bool, **more: object) -> Available:
    return available_at_start(
        prepare(read_model(CONFIG), SETTINGS), Start(total=H200, utilization=utilization, eager=eager, **more)
    )


@pytest.mark.parametrize(
    ("utilization", "eager", "printed"),
    # native_eager.log, kv_none.log, native_compiled_mp_ok.log: "Available KV cache memory: ... GiB"
    [(0.05, True, 6.09), (0.004, True, -0.34), (0.05, False, 6.18)],
)
def test_what_real_engines_printed_lies_in_the_range(utilization: float, eager: bool, printed: float) -> None:
    found = at_start(utilization, eager=eager)
    assert low(found.available) <= printed * GIB <= high(found.available)
    assert found.available.value / GIB == pytest.approx(printed, abs=0.25)
    assert found.weights.value / GIB == pytest.approx(0.1, abs=0.01)  # "Model loading took 0.1 GiB memory"


def test_gpt_oss_on_one_h100_is_foretold() -> None:
    """vllm issue 23278: gpt-oss-120b, 0.10, a server on an H100 printed "Available KV cache memory: -2.14 GiB"."""
    shape = {
        **COUNTS["openai/gpt-oss-20b"][0],
        "num_hidden_layers": 36,
        "num_local_experts": 128,
        "max_position_embeddings": 131072,
        "quantization_config": {"quant_method": "mxfp4"},
    }
    total, _ = card_total("NVIDIA H100 80GB HBM3")
    settings = Settings(version="0.10.2", card="NVIDIA H100 80GB HBM3", total_bytes=total.value)
    found = available_at_start(prepare(read_model(shape), settings), Start(total=total))
    assert found.available.value / GIB == pytest.approx(-2.14, abs=0.3)
    assert low(found.available) <= -2.14 * GIB <= high(found.available)


def test_graphs_are_there_unless_eager() -> None:
    compiled, eager = at_start(0.05, eager=False), at_start(0.05, eager=True)
    assert compiled.graphs is not None
    assert 0 < low(compiled.graphs) <= 0.05 * GIB <= high(compiled.graphs)  # "Estimated CUDA graph memory: 0.05 GiB"
    assert eager.graphs is not None
    assert eager.graphs.value == 0


def test_figures_that_are_given_take_the_place_of_estimates() -> None:
    known = {
        name: Figure(size * GIB, "bytes", "measured")
        for name, size in (("weights", 0.1), ("activation", 0.58), ("non_torch", 0.22), ("graphs", 0.0))
    }
    found = at_start(0.05, eager=True, **known)
    assert found.available.provenance == "derived"
    assert found.available.value / GIB == pytest.approx(6.09, abs=0.01)


def test_offloaded_weights_leave_the_card() -> None:
    whole, less = at_start(0.05, eager=True), at_start(0.05, eager=True, cpu_offload=50e6)
    assert less.available.value - whole.available.value == pytest.approx(50e6, rel=1e-6)
    with pytest.raises(UsageError, match="cpu-offload"):
        at_start(0.05, eager=True, cpu_offload=float("nan"))


def test_pictures_widen_the_range_and_are_noted() -> None:
    shape = {"model_type": "gemma3", "text_config": CONFIG, "vision_config": {}}
    planned = prepare(read_model(shape), SETTINGS)
    found = available_at_start(planned, Start(total=H200, utilization=0.5, eager=True))
    assert high(found.available) - low(found.available) > 8 * GIB
    assert any("pictures" in note for note in found.notes)


def test_a_card_by_name() -> None:
    total, unified = card_total("NVIDIA H200")
    assert total.value / GIB == pytest.approx(139.8)
    assert low(total) <= H200.value <= high(total)
    assert "https://" in total.how
    assert not unified
    assert card_total("NVIDIA GB10")[1]


@pytest.mark.parametrize(
    ("name", "words"), [("Voodoo 2", "is not known here"), ("A100", "write 'A100 80GB' or 'A100 40GB'")]
)
def test_a_card_that_cannot_be_told_is_asked_for(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        card_total(name)
