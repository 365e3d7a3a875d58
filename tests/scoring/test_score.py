"""Verdicts held against labels, with every rate reckoned by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.scoring.case import load_cases
from oortriage.scoring.score import RESOURCE_ACCURACY, Score, judge, score_cases
from tests.conftest import ROOT
from tests.scoring._cases import labelled, said, score, verdict

resources = st.sampled_from(["shared_memory", "device_memory", "kv_cache", "none", "undetermined"])
pairs = st.lists(st.tuples(resources, resources), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        ({"resource": "kv_cache"}, "resource device_memory, should be kv_cache"),
        ({"causes": ["leak", "fragmentation"]}, "cause capacity, should be leak or fragmentation"),
        ({"status": "recovered"}, "status fatal, should be recovered"),
        ({"phases": ["decode", "prefill"]}, "phase load, should be decode or prefill"),
        ({"root_line": 7}, "root line 2, should be 7"),
        ({"numbers": {"requested_bytes": 301}}, "requested_bytes 300, should be 301"),
        ({"numbers": {"free_bytes": 5}}, "free_bytes None, should be 5"),
        ({"facts": {"dtype": "float32"}}, "fact dtype float16, should be float32"),
        ({"facts": {"gpu": "T4"}}, "fact gpu None, should be T4"),
    ],
)
def test_each_difference_is_told(expect: dict[str, Any], problem: str) -> None:
    assert judge(labelled(**expect), said()).problems == [problem]


@pytest.mark.parametrize(
    "expect",
    [
        {},
        {"causes": ["leak", "capacity"]},
        {"phases": ["decode", "load"]},
        {"root_line": 2},
        {"numbers": {"requested_bytes": 300}},
        {"facts": {"dtype": "float16"}},
        {"facts": {"dtype": "torch.float16"}},
    ],
)
def test_what_agrees_is_no_problem(expect: dict[str, Any]) -> None:
    assert judge(labelled(**expect), said()).problems == []


def test_several_differences_are_all_told() -> None:
    case = labelled(causes=["leak"], phases=["decode"], root_line=9)
    assert len(judge(case, said()).problems) == 3


def test_large_figures_may_differ_by_one_part_in_a_million() -> None:
    label = labelled(numbers={"requested_bytes": 10_000_000})
    assert judge(label, said(numbers={"requested_bytes": 10_000_009})).problems == []
    assert judge(label, said(numbers={"requested_bytes": 10_000_011})).problems != []


def test_a_line_is_judged_only_where_something_was_found() -> None:
    missing = said(resource="none", evidence=[], status="unknown")
    assert judge(labelled(resource="none", status="unknown", root_line=5), missing).problems == []
    found = labelled(root_line=5)
    assert judge(found, said(evidence=[])).problems == ["root line 0, should be 5"]


def test_a_status_is_not_judged_where_nothing_is_determined() -> None:
    label = labelled(resource="undetermined", status="fatal")
    assert judge(label, said(resource="undetermined", status="unknown")).problems == []


@given(pairs)
def test_accuracy_is_the_share_of_right_resources(said_of: list[tuple[str, str]]) -> None:
    right = sum(want == got for want, got in said_of)
    assert score(*said_of).accuracy == pytest.approx(right / len(said_of))


@given(pairs)
def test_precision_and_recall_as_in_the_textbook(said_of: list[tuple[str, str]]) -> None:
    labels, verdicts = Counter(want for want, _ in said_of), Counter(got for _, got in said_of)
    hits = Counter(want for want, got in said_of if want == got)
    rates = {rate.label: rate for rate in score(*said_of).by_resource()}
    assert set(rates) == set(labels) | set(verdicts)
    for name, rate in rates.items():
        precision = hits[name] / verdicts[name] if verdicts[name] else None
        recall = hits[name] / labels[name] if labels[name] else None
        assert (rate.labelled, rate.said, rate.right) == (labels[name], verdicts[name], hits[name])
        assert (rate.precision, rate.recall) == (precision, recall)


def test_rates_of_a_small_table() -> None:
    made = score(
        ("shared_memory", "shared_memory"),
        ("shared_memory", "device_memory"),
        ("device_memory", "device_memory"),
        ("none", "none"),
    )
    rates = {rate.label: (rate.precision, rate.recall) for rate in made.by_resource()}
    assert rates == {"shared_memory": (1.0, 0.5), "device_memory": (0.5, 1.0), "none": (1.0, 1.0)}
    assert made.accuracy == 0.75


def test_an_accepted_cause_counts_as_the_label() -> None:
    case = labelled(causes=["leak", "capacity"])
    made = Score([judge(case, said(cause="capacity")), judge(case, said(cause="absurd_request"))])
    rates = {rate.label: (rate.labelled, rate.said, rate.right) for rate in made.by_cause()}
    assert rates == {"capacity": (1, 1, 1), "leak": (1, 0, 0), "absurd_request": (0, 1, 0)}
    assert made.cause_accuracy == 0.5


def test_causes_that_are_not_judged_do_not_count() -> None:
    made = Score([judge(labelled(), said(cause="whatever"))])
    assert made.by_cause() == []
    assert made.cause_accuracy == 1.0
    assert made.verdicts[0].cause_right is None


@pytest.mark.parametrize(
    ("want", "got", "false_shared", "false_alarm"),
    [
        ("shared_memory", "shared_memory", 0, 0),
        ("shared_memory", "device_memory", 0, 0),
        ("device_memory", "shared_memory", 1, 0),
        ("none", "shared_memory", 1, 1),
        ("none", "device_memory", 0, 1),
        ("none", "undetermined", 0, 0),
        ("none", "none", 0, 0),
        ("undetermined", "kv_cache", 0, 0),
    ],
)
def test_which_mistakes_are_the_bad_ones(want: str, got: str, false_shared: int, false_alarm: int) -> None:
    made = score((want, got))
    assert (len(made.false_shared_memory), len(made.false_alarms)) == (false_shared, false_alarm)


def test_one_bad_mistake_in_a_thousand_is_enough_to_fail() -> None:
    right = [("device_memory", "device_memory")] * 999
    assert score(*right, ("device_memory", "kv_cache")).passed
    assert not score(*right, ("device_memory", "shared_memory")).passed
    assert not score(*right, ("none", "device_memory")).passed


def test_accuracy_must_reach_the_promise() -> None:
    assert RESOURCE_ACCURACY == 0.98
    right, wrong = [("kv_cache", "kv_cache")] * 49, [("kv_cache", "device_memory")]
    assert score(*right, *wrong).passed  # 49 of 50
    assert not score(*right, *wrong, *wrong).passed  # 49 of 51


def test_confidence_is_binned_and_nothing_falls_between() -> None:
    sure = [0.0, 0.3, 0.49, 0.5, 0.69, 0.7, 0.8, 0.89, 0.9, 1.0]
    made = Score([verdict("none", "none" if number % 2 else "kv_cache", one) for number, one in enumerate(sure)])
    assert made.reliability() == [
        (0.0, 0.5, 3, 1),
        (0.5, 0.7, 2, 1),
        (0.7, 0.8, 1, 1),
        (0.8, 0.9, 2, 1),
        (0.9, 1.0, 2, 1),
    ]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_every_confidence_is_in_one_bin(sure: list[float]) -> None:
    made = Score([verdict("none", "none", one) for one in sure])
    assert sum(count for _, _, count, _ in made.reliability()) == len(sure)


def test_cases_are_analyzed_under_their_log_s_name() -> None:
    made = score_cases(load_cases(ROOT / "fixtures" / "triton" / "vllm-36802-t4-fp32-head256"))
    (one,) = made.verdicts
    assert (one.diagnosis.file, one.diagnosis.resource, one.problems) == ("log.txt", "shared_memory", [])
    assert made.passed
