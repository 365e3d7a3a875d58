"""Samples and counter-samples held against their rule, and what is said when they disagree."""

from __future__ import annotations

from typing import Any

import pytest

from oortriage.evidence.check import Finding, check_all, check_samples
from oortriage.evidence.matcher import Matcher
from oortriage.evidence.rule import CounterSample, Rule, Sample
from tests.evidence._rules import pattern, rule


def gizmo(**fields: Any) -> Rule:
    return rule(
        pattern(
            r"gizmo (?P<kernel>\w+) over: (?P<required_bytes>\d+)",
            captures={"kernel": "text", "required_bytes": "bytes"},
        ),
        anchors=["over:"],
        **fields,
    )


def problems(one: Rule) -> list[str]:
    return [finding.problem for finding in check_samples(one, Matcher([one]))]


def test_a_rule_that_does_what_it_says_has_no_finding() -> None:
    one = gizmo(
        sample=[
            Sample(
                "a gizmo left over: 300",
                numbers={"required_bytes": 300},
                details={"kernel": "left"},
            )
        ],
        counter=[CounterSample("gizmo over")],
    )
    assert problems(one) == []


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        (Sample("gizmo left over 300"), ["sample 1", "anchors"]),
        (Sample("over: gizmo left"), ["sample 1", "does not match", "over: gizmo left"]),
        (
            Sample("gizmo left over: 300", numbers={"required_bytes": 301}),
            ["sample 1", "required_bytes", "300", "301"],
        ),
        (
            Sample("gizmo left over: 300", numbers={"limit_bytes": 1}),
            ["sample 1", "limit_bytes", "None", "1"],
        ),
        (
            Sample("gizmo left over: 300", details={"kernel": "right"}),
            ["sample 1", "kernel", "left", "right"],
        ),
    ],
)
def test_each_way_a_sample_can_fail_is_told(sample: Sample, words: list[str]) -> None:
    said = " | ".join(problems(gizmo(sample=[sample])))
    assert [word for word in words if word not in said] == []


def test_a_counter_sample_that_matches_is_told() -> None:
    one = gizmo(
        sample=[Sample("gizmo left over: 300")],
        counter=[CounterSample("gizmo"), CounterSample("gizmo right over: 5")],
    )
    (said,) = problems(one)
    assert "counter-sample 2" in said
    assert "gizmo right over: 5" in said


@pytest.mark.parametrize(("role", "count"), [("failure", 1), ("wrapper", 1), ("fact", 0), ("phase", 0)])
def test_only_event_rules_must_have_a_sample(role: str, count: int) -> None:
    assert len(problems(gizmo(role=role))) == count


def test_a_match_of_another_rule_does_not_help() -> None:
    mine = gizmo(sample=[Sample("gizmo over: x")])
    other = rule("gizmo over: x", anchors=["over: x"], code="ZZ901")
    findings = list(check_samples(mine, Matcher([mine, other])))
    assert [finding.code for finding in findings] == ["ZZ900"]


def test_all_rules_are_checked_together() -> None:
    good = gizmo(sample=[Sample("gizmo left over: 300")])
    bad = rule("never", anchors=["never"], code="ZZ901", sample=[Sample("never mind"), Sample("ever")])
    findings = check_all([good, bad])
    assert {finding.code for finding in findings} == {"ZZ901"}
    assert all(isinstance(finding, Finding) and "sample 2" in finding.problem for finding in findings)


def test_a_guarded_expression_that_takes_too_long_is_told_once_and_where() -> None:
    """Of its own samples nothing more is said; another rule's sample may be what sets it off."""
    fuse = "a" * 60 + "!"
    bomb = rule("(?:a|aa)+$", anchors=["aaaa"], code="ZZ901", sample=[Sample(fuse), Sample("aaaa")])
    other = rule("fuse: a", anchors=["fuse: a"], code="ZZ900", sample=[Sample(f"fuse: {fuse}")])
    for rules, where in (([bomb], "ZZ901"), ([other, bomb], "ZZ900")):
        (finding,) = check_all(rules, guarded=frozenset({"ZZ901"}))
        assert finding.code == "ZZ901"
        assert finding.problem == f"the expression took too long on a sample of {where} and was given up"
