"""Facts and cases: which of several readings speaks, and what an expert may ask."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.evidence.matcher import Matcher
from oortriage.triage.case import Facts, Finding
from tests.triage.messages import PLAIN, SHARED, traceback
from tests.triage.reading import case_of, fact


def test_the_surer_of_two_readings_speaks_in_any_order() -> None:
    sure, unsure = fact("gpu", "Tesla T4", 9, 0.97), fact("gpu", "T4?", 2, 0.5)
    for order in ([sure, unsure], [unsure, sure]):
        assert Facts(order).value("gpu") == "Tesla T4"


def test_of_equally_sure_readings_the_last_one_speaks() -> None:
    facts = Facts([fact("max_model_len", 4096, 1), fact("max_model_len", 8192, 5)])
    assert facts.value("max_model_len") == 8192


def test_a_later_run_does_not_replace_what_was_so_at_the_failure() -> None:
    stated = [fact("gpu_memory_utilization", 0.9, 3), fact("gpu_memory_utilization", 0.5, 80)]
    assert Facts(stated, before_line=40).value("gpu_memory_utilization") == 0.9
    assert Facts(stated, before_line=90).value("gpu_memory_utilization") == 0.5


def test_what_only_stands_after_the_failure_is_a_fact_all_the_same() -> None:
    """An environment dump is often pasted below the traceback."""
    facts = Facts([fact("torch_version", "2.4.0", 200)], before_line=40)
    assert facts.value("torch_version") == "2.4.0"


def test_a_derived_fact_fills_a_gap_and_yields_to_what_is_stated() -> None:
    facts = Facts([fact("compute_capability", "8.6", 3, 0.97)])
    facts.add(fact("compute_capability", "7.5", 3, 0.95))
    facts.add(fact("triton_version", "3.6.0", 3, 0.6))
    assert facts.value("compute_capability") == "8.6"
    assert facts.value("triton_version") == "3.6.0"


def test_a_derived_fact_of_the_same_confidence_does_not_replace() -> None:
    facts = Facts([fact("dtype", "bfloat16", 3, 0.97)])
    facts.add(fact("dtype", "float32", 4, 0.97))
    assert facts.value("dtype") == "bfloat16"


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.9, 0.9),
        (4, 4),
        ("0.80", 0.8),
        (" 256 ", 256.0),
        ("-1", -1.0),
        ("True", None),
        ("8, 9", None),
        ("gfx942", None),
        ("1e5", None),
        ("", None),
    ],
)
def test_a_number_is_read_and_nothing_is_guessed(value, number: float | None) -> None:
    assert Facts([fact("x", value)]).number("x") == number


def test_an_absent_fact_is_nothing() -> None:
    facts = Facts([])
    assert facts.fact("gpu") is None
    assert facts.value("gpu") is None
    assert facts.number("gpu") is None
    assert facts.text("gpu") == ""


def test_a_fact_of_zero_is_no_absent_fact() -> None:
    facts = Facts([fact("cpu_offload_gb", 0)])
    assert facts.number("cpu_offload_gb") == 0
    assert facts.text("cpu_offload_gb") == "0"


def test_facts_come_in_order_of_their_names() -> None:
    names = ["vllm_version", "gpu", "dtype"]
    assert [one.name for one in Facts(fact(name, "x") for name in names)] == sorted(names)


def test_a_remedy_for_some_releases_is_let_pass_where_the_version_is_unknown() -> None:
    assert Facts([]).allows("vllm", "0.13.0", "") is True
    known = Facts([fact("vllm_version", "0.12.0")])
    assert known.allows("vllm", "0.13.0", "") is False
    assert known.allows("vllm", "0.11.2", "0.14.1") is True
    assert known.allows("torch", "2.2", "") is True


_FACTS = st.lists(
    st.builds(
        fact,
        st.sampled_from(["a", "b"]),
        st.integers(0, 9),
        st.integers(1, 50),
        st.sampled_from([0.5, 0.7, 0.97]),
    ),
    max_size=10,
)


@given(_FACTS)
def test_no_surer_reading_is_ever_passed_over(stated: list) -> None:
    facts = Facts(stated)
    for name in {one.name for one in stated}:
        readings = [one for one in stated if one.name == name]
        best = max(one.confidence for one in readings)
        assert facts.fact(name) == [one for one in readings if one.confidence == best][-1]


def test_a_figure_of_the_message_goes_before_a_fact_of_the_same_name(matcher: Matcher) -> None:
    case = case_of(PLAIN, matcher, capacity_bytes=1, kv_tokens=12)
    assert case.number("capacity_bytes") == round(79.14 * 1024**3)
    assert case.number("kv_tokens") == 12
    assert case.number("limit_bytes") is None


def test_events_are_asked_for_by_the_beginning_of_their_codes(matcher: Matcher) -> None:
    case = case_of(f"WorkerProc hit an exception.\n{SHARED}\n", matcher)
    assert case.has("SM101")
    assert case.has("SM1")
    assert case.has("XX", "WR")
    assert not case.has("KV")


def test_text_is_looked_for_in_messages_of_every_process(matcher: Matcher) -> None:
    case = case_of(f"(APIServer pid=1) INFO sleep_mode=True\n(Worker pid=2) {SHARED}", matcher)
    assert len(case.log.streams) == 2
    assert case.text_has(r"sleep_mode=\w+")
    assert not case.text_has("kv_transfer")


def test_a_case_knows_the_frames_of_its_traceback(matcher: Matcher) -> None:
    case = case_of(traceback(SHARED, ("/app/a.py", "outer"), ("/app/b.py", "inner")), matcher)
    assert case.raised
    assert [frame.function for frame in case.raised.frames] == ["outer", "inner"]


def test_findings_do_not_share_their_lists() -> None:
    one, other = Finding(), Finding()
    one.notes.append("x")
    one.numbers["n"] = 1
    assert other.notes == []
    assert other.numbers == {}
