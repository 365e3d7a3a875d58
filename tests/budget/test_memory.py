"""What is left for the KV cache, by each release's formula, against what public logs print."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.budget.figure import Figure
from oortriage.budget.memory import Available, available_for_kv, non_torch_memory, start_gate
from oortriage.budget.sums import high, low, sum_of
from oortriage.budget.versions import KNOWN
from oortriage.errors import UsageError
from oortriage.evidence.values import GIB


def gib(size: float, **more: float) -> Figure:
    return Figure(size * GIB, "bytes", "measured", **{name: value * GIB for name, value in more.items()})


def left(version: str, total: float, weights: float, activation: float, non_torch: float, **more: object) -> Available:
    return available_for_kv(
        version=version,
        total=gib(total),
        weights=gib(weights),
        activation=gib(activation),
        non_torch=gib(non_torch),
        **more,
    )


#: release, engine, total, utilization, weights, outside torch, activation, graphs that are charged, left: as printed.
PRINTED = [
    ("0.7.3", "V0", 14.56, 0.50, 2.89, 0.01, 2.02, 0.0, 2.36),  # Qwen2.5-1.5B on a T4
    ("0.6.6.post1", "V0", 79.14, 0.90, 14.99, 0.12, 1.19, 0.0, 54.93),  # Llama-3.1-8B
    ("0.7.3", "V0", 8.00, 0.70, 5.20, 0.03, 1.42, 0.0, -1.05),  # vllm issue 13882
    ("0.8.5", "V0", 23.58, 0.99, 21.21, 0.20, 0.37, 0.0, 1.57),  # vllm pull request 14447
    ("0.7.3", "V0", 44.42, 0.90, 30.71, 0.30, 1.26, 0.0, 7.71),  # vllm issue 15815
    ("0.8.5", "V0", 31.37, 0.85, 10.80, 0.33, 1.01, 0.0, 14.52),  # vllm issue 14452
    ("0.6.6.post1", "V0", 79.22, 0.90, 19.86, 0.16, 36.63, 0.0, 14.65),  # vllm pull request 12126
    ("0.10.2", "V1", 44.31, 0.90, 2.32, 0.02, 0.45, 0.0, 37.10),  # Llama-3.2-1B on an L40S
    ("0.10.2", "V1", 79.19, 0.90, 14.08, 0.07, 1.97, 0.0, 55.15),
    ("0.15.1", "V1", 47.37, 0.90, 15.27, 0.03, 1.40, 0.0, 25.94),  # Qwen3-8B
    ("0.22.1", "V1", 139.80, 0.90, 14.96, 0.22, 2.16, 0.0, 108.48),  # docs/evidence/kv-starts.md
    ("0.22.1", "V1", 139.80, 0.10, 14.96, 0.22, 1.84, 0.0, -3.05),
    ("0.30.0", "V1", 79.25, 0.92, 15.0, 0.26, 1.44, 0.0, 56.21),  # Llama-3.1-8B on an A100
]


@pytest.mark.parametrize(
    ("version", "engine", "total", "share", "weights", "outside", "activation", "graphs", "printed"), PRINTED
)
def test_the_sum_is_what_vllm_printed(
    version: str, engine: str, total: float, share: float, weights: float, outside: float, activation: float,
    graphs: float, printed: float,
) -> None:  # fmt: skip
    found = left(version, total, weights, activation, outside, utilization=share, engine=engine, graphs=gib(graphs))
    # each of five figures was rounded to 0.01
    assert found.available.value / GIB == pytest.approx(printed, abs=0.025)
    assert found.available.provenance == "derived"


@pytest.mark.parametrize(
    ("version", "engine", "formula"),
    [
        ("0.5.4", "V0", "free_before_after"),
        ("0.6.3.post1", "V0", "free_before_after"),
        ("0.6.4.post1", "V0", "device_peak"),
        ("0.6.4.post1", "V1", "free_before_after"),
        ("0.6.6.post1", "V0", "instance_increase"),
        ("0.6.6.post1", "V1", "device_peak"),
        ("0.8.5", "V1", "device_peak"),
        ("0.9.0", "V1", "device_peak"),
        ("0.9.2", "V1", "instance_increase"),
        ("0.10.2", "V0", "instance_increase"),
        ("0.25.1", "V1", "instance_increase"),
        ("0.28.0", "V1", "free_consumed"),
        ("0.33.0", "V1", "free_consumed"),
    ],
)
def test_which_formula_a_release_has(version: str, engine: str, formula: str) -> None:
    found = left(version, 24, 10, 1, 0.1, engine=engine)
    assert found.formula == formula
    assert "vLLM" in found.source


@pytest.mark.parametrize(
    ("version", "charged"), [("0.8.5", True), ("0.9.0", True), ("0.9.2", False), ("0.28.0", False)]
)
def test_other_processes_count_in_some_releases_only(version: str, charged: bool) -> None:
    alone = left(version, 80, 15, 2, 0.5, engine="V1").available.value
    shared = left(version, 80, 15, 2, 0.5, engine="V1", others=gib(20)).available.value
    assert alone - shared == (20 * GIB if charged else 0)


@pytest.mark.parametrize(
    ("version", "wish", "charged"),
    [
        ("0.17.1", None, False), ("0.17.1", True, False), ("0.18.0", None, False), ("0.18.0", True, True),
        ("0.19.1", None, False), ("0.20.0", None, True), ("0.22.1", False, False), ("0.33.0", None, True),
    ],
)  # fmt: skip
def test_graphs_are_charged_from_0_20(version: str, wish: bool | None, charged: bool) -> None:
    found = left(version, 24, 10, 1, 0.1, graphs=gib(1.5), charge_graphs=wish)
    without = left(version, 24, 10, 1, 0.1, graphs=gib(0), charge_graphs=wish)
    assert found.graphs_charged is charged
    assert without.available.value - found.available.value == (1.5 * GIB if charged else 0)
    assert any("not in the budget" in note for note in found.notes) is not charged


@pytest.mark.parametrize(("version", "share"), [("0.19.1", 0.9), ("0.20.0", 0.92), ("0.33.0", 0.92)])
def test_the_default_utilization(version: str, share: float) -> None:
    assert left(version, 100, 1, 1, 0).requested.value == pytest.approx(share * 100 * GIB, abs=1)


def test_requested_is_rounded_up_from_0_14_1() -> None:
    total = Figure(1001.0, "bytes", "measured")
    terms = {"weights": gib(0), "activation": gib(0), "non_torch": gib(0), "utilization": 0.5}
    assert available_for_kv(version="0.13.0", total=total, **terms).requested.value == 500
    assert available_for_kv(version="0.14.1", total=total, **terms).requested.value == 501


def test_bytes_given_are_taken_as_they_are() -> None:
    found = left("0.22.1", 24, 100, 100, 100, kv_cache_memory=5 * GIB)
    assert (found.available.value, found.available.provenance, found.formula) == (5 * GIB, "given", "given")
    assert found.gate is None
    with pytest.raises(UsageError, match=r"came with 0\.10\.2"):
        left("0.10.0", 24, 1, 1, 0, kv_cache_memory=5 * GIB)
    with pytest.raises(UsageError, match="not a size"):
        left("0.22.1", 24, 1, 1, 0, kv_cache_memory=0)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("0.9.2", "Free memory on device (38.77/139.80 GiB) on startup is less than desired GPU memory utilization (0.9, 125.82 GiB). "),
        ("0.22.1", "Free memory on device cuda:0 (38.77/139.8 GiB) on startup is less than desired GPU memory utilization (0.9, 125.82 GiB). "),
    ],
)  # fmt: skip
def test_the_start_gate_says_what_vllm_says(version: str, words: str) -> None:
    # free_memory_mp.log of an H200 has the second one
    found = left(version, 139.8, 1, 1, 0, utilization=0.9, free=gib(38.77))
    assert found.gate is not None
    assert not found.gate.passes
    assert found.gate.message.startswith(words)


@pytest.mark.parametrize(("version", "engine"), [("0.8.5", "V1"), ("0.9.0", "V1"), ("0.10.2", "V0")])
def test_older_releases_and_v0_have_no_gate(version: str, engine: str) -> None:
    assert left(version, 80, 1, 1, 0, free=gib(1), engine=engine).gate is None


def test_the_gate_lets_equal_memory_pass() -> None:
    total, share = gib(100), Figure(0.9, "share", "given")
    for free, passes in ((90.0, True), (89.999, False)):
        found = start_gate("0.22.1", total, gib(90), share, gib(free))
        assert found is not None
        assert found.passes is passes


def test_a_gpu_that_shares_memory_is_noted() -> None:
    assert any("reads its free memory too low" in note for note in left("0.16.0", 121, 1, 1, 0, unified=True).notes)
    assert any("has available" in note for note in left("0.22.1", 121, 1, 1, 0, unified=True).notes)


@pytest.mark.parametrize("share", [0, -0.1, 1.01, math.nan, math.inf])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(UsageError, match="takes more than 0"):
        left("0.22.1", 24, 1, 1, 0, utilization=share)


@pytest.mark.parametrize("total", [0, -1, math.nan, math.inf])
def test_a_card_without_memory_is_refused(total: float) -> None:
    with pytest.raises(UsageError, match="memory"):
        left("0.22.1", total, 1, 1, 0)


def test_an_engine_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="has no engine V0"):
        left("0.22.1", 24, 1, 1, 0, engine="V0")
    with pytest.raises(UsageError, match="known from"):
        left("0.4.0", 24, 1, 1, 0)


@pytest.mark.parametrize("version", KNOWN)
def test_memory_outside_torch_has_a_range_in_every_release(version: str) -> None:
    alone, several = non_torch_memory(version), non_torch_memory(version, tp=2)
    assert low(alone) <= alone.value <= high(alone)
    assert high(several) > high(alone)
    assert alone.provenance == "estimated"


sizes = st.floats(0, 1e12)


@given(sizes, sizes, sizes, st.floats(0.01, 1), st.sampled_from(KNOWN))
def test_what_is_left_falls_with_every_term_and_grows_with_the_card(
    weights: float, activation: float, outside: float, share: float, version: str
) -> None:
    def at(total: float, more: float = 0) -> float:
        return available_for_kv(
            version=version,
            total=Figure(total, "bytes", "given"),
            weights=Figure(weights + more, "bytes", "given"),
            activation=Figure(activation, "bytes", "given"),
            non_torch=Figure(outside, "bytes", "given"),
            utilization=share,
        ).available.value

    assert at(8e10, 1e9) < at(8e10) <= at(1.6e11)


whole = st.integers(0, 10**12)


@given(st.lists(st.tuples(whole, whole, whole), max_size=4), st.lists(st.tuples(whole, whole, whole), max_size=4))
def test_a_sum_s_range_holds_every_sum_of_its_terms(plus: list, minus: list) -> None:
    def figure(three: tuple[float, float, float]) -> Figure:
        least, value, most = sorted(three)
        return Figure(value, "bytes", "estimated", low=least, high=most)

    found = sum_of(map(figure, plus), map(figure, minus))
    assert low(found) <= found.value <= high(found)
