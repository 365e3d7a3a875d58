"""The profile run's peak, against public logs and the engine starts of docs/evidence/kv-starts.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.budget.model import read_model
from oortriage.budget.profile import activation_peak
from oortriage.budget.versions import KNOWN, has_engine
from oortriage.errors import UsageError
from oortriage.evidence.values import GIB
from tests.budget.test_parameters import COUNTS, config

STARTS = Path(__file__).parents[2] / "docs" / "evidence" / "kv-starts.json"
LLAMA, QWEN3 = COUNTS["meta-llama/Meta-Llama-3-8B"][0], COUNTS["Qwen/Qwen3-8B"][0]
QWEN_SMALL = config("qwen2", 1536, 8960, 28, 12, 2, 151936, tie_word_embeddings=True)

#: Shape, release, engine, tokens, sequences, GiB as printed, and the error allowed of the estimate itself.
PRINTED = [
    (QWEN_SMALL, "0.7.3", "V0", 32768, 256, 2.02, 0.02),
    (LLAMA, "0.6.6.post1", "V0", 8192, 256, 1.19, 0.15),
    (LLAMA, "0.6.6.post1", "V0", 8192, 256, 1.26, 0.10),
    (COUNTS["Qwen/Qwen2.5-7B"][0], "0.7.3", "V0", 4200, 256, 1.42, 0.10),
    (QWEN3, "0.15.1", "V1", 2048, 256, 1.40, 0.06),
    # where the release may choose a sampler, only the range is promised
    (LLAMA, "0.30.0", "V1", 2048, 256, 1.44, None),
    (COUNTS["Qwen/Qwen2.5-0.5B"][0], "0.28.0", "V1", 2048, 256, 0.25, None),
    (COUNTS["Qwen/Qwen2.5-0.5B"][0], "0.25.1", "V1", 8192, 256, 1.06, None),
    (COUNTS["meta-llama/Llama-3.2-1B"][0], "0.10.2", "V1", 2048, 256, 0.45, None),
]


@pytest.mark.parametrize(("shape", "version", "engine", "tokens", "seqs", "printed", "error"), PRINTED)
def test_public_figures_lie_in_the_range(
    shape: dict, version: str, engine: str, tokens: int, seqs: int, printed: float, error: float | None
) -> None:
    found = activation_peak(
        read_model(shape),
        version=version,
        engine=engine,
        dtype="auto",
        max_num_batched_tokens=tokens,
        max_num_seqs=seqs,
    ).figure
    assert (found.low or 0) <= printed * GIB <= (found.high or 0)
    assert found.provenance == "estimated"
    if error is not None:
        assert found.value / GIB == pytest.approx(printed, rel=error)


def starts() -> list[dict]:
    rows = json.loads(STARTS.read_text(encoding="utf-8"))["rows"]
    return [row for row in rows if row["measured_bytes"].get("activation")]


@pytest.mark.parametrize("row", starts(), ids=lambda row: row["setting"])
def test_engine_starts_are_met_to_a_few_mib(row: dict) -> None:
    measured, predicted = row["measured_bytes"], row["predicted"]
    within = {"rel": 0.05} if row["held_out"] else {"abs": 4 << 20}
    assert predicted["activation_bytes"] == pytest.approx(measured["activation"], **within)
    # Torch rounds large tensors up, so the weights are never less than computed (docs/evidence/kv-starts.md).
    assert predicted["weights_bytes"] <= measured["weights"]
    assert predicted["weights_bytes"] == pytest.approx(measured["weights"], rel=0.015 if row["held_out"] else 0.01)


def test_the_larger_of_two_moments_counts() -> None:
    model = read_model(LLAMA)
    asked = {"version": "0.15.1", "dtype": "auto", "eager": True}
    many = activation_peak(model, max_num_batched_tokens=16384, max_num_seqs=8, **asked)
    assert many.figure.value == many.layer.value > many.sampler.value
    rows = activation_peak(model, max_num_batched_tokens=2048, max_num_seqs=1024, **asked)
    assert rows.figure.value == rows.sampler.value > rows.layer.value


def test_ranks_divide_the_mlp_but_not_the_logits() -> None:
    model = read_model(LLAMA)
    asked = {"version": "0.15.1", "dtype": "auto", "max_num_batched_tokens": 8192, "max_num_seqs": 256}
    one, four = activation_peak(model, **asked), activation_peak(model, tp=4, **asked)
    assert four.layer.value < one.layer.value
    assert four.sampler.value == one.sampler.value


def test_experts_count_for_each_token() -> None:
    model = read_model(COUNTS["Qwen/Qwen3-30B-A3B"][0])
    asked = {"version": "0.15.1", "dtype": "auto", "max_num_seqs": 1}
    few, many = (activation_peak(model, max_num_batched_tokens=size, **asked).layer.value for size in (1024, 8192))
    assert many > 6 * few * 0.9


@pytest.mark.parametrize("asked", [{"max_num_batched_tokens": 0}, {"max_num_seqs": -1}, {"tp": 0}, {"dtype": "fp3"}])
def test_nonsense_is_refused(asked: dict) -> None:
    with pytest.raises(UsageError):
        activation_peak(
            read_model(LLAMA),
            **{"version": "0.22.1", "dtype": "auto", "max_num_batched_tokens": 8, "max_num_seqs": 8, **asked},
        )


@given(
    st.sampled_from(list(COUNTS)), st.sampled_from(KNOWN), st.sampled_from(["V0", "V1"]), st.integers(1, 65536),
    st.integers(1, 2048), st.sampled_from(["float16", "float32"]),
)  # fmt: skip
def test_a_range_holds_its_value_and_grows_with_tokens(
    name: str, version: str, engine: str, tokens: int, seqs: int, dtype: str
) -> None:
    if not has_engine(version, engine):
        return
    model = read_model(COUNTS[name][0])
    asked = {"version": version, "engine": engine, "dtype": dtype, "max_num_seqs": seqs}
    found = activation_peak(model, max_num_batched_tokens=tokens, **asked).figure
    assert 0 < (found.low or 0) <= found.value <= (found.high or 0)
    assert activation_peak(model, max_num_batched_tokens=tokens + 1000, **asked).figure.value >= found.value
