"""Facts from the matches of fact rules: names, values, lines and how sure they are."""

from __future__ import annotations

import pytest

from oortriage.evidence.event import find_events
from oortriage.evidence.fact import Fact, facts_of
from oortriage.evidence.matcher import Matcher
from oortriage.evidence.rule import Pattern, Rule
from oortriage.intake.line import Piece
from oortriage.intake.log import build_log
from tests.evidence._rules import pattern, rule


def facts(rules: list[Rule], *lines: str) -> list[Fact]:
    pieces = [Piece(number, 0, text) for number, text in enumerate(lines, 1)]
    log = build_log("run.log", pieces, complete=True, notes=[])
    return facts_of(find_events(log, Matcher(rules)), "run.log")


def fact_rule(*patterns: Pattern, code: str = "FA901", **fields: str) -> Rule:
    base = {"role": "fact", "resource": "none", "code": code}
    return rule(*patterns, anchors=["gizmo"], **{**base, **fields})


MODEL = fact_rule(pattern(r"gizmo model=(?P<model>\S+)", captures={"model": "text"}))


def test_a_fact_names_value_file_line_and_rule() -> None:
    assert facts([MODEL], "start", "gizmo model=tiny") == [Fact("model", "tiny", "run.log", 2, 0.97, "FA901")]


def test_several_groups_are_several_facts_and_numbers_stay_numbers() -> None:
    one = fact_rule(
        pattern(
            r"gizmo (?P<gpu>\w+) (?P<capacity_bytes>\d+ GiB)",
            captures={"gpu": "text", "capacity_bytes": "size"},
        )
    )
    found = {fact.name: fact.value for fact in facts([one], "gizmo T4 16 GiB")}
    assert found == {"gpu": "T4", "capacity_bytes": 17_179_869_184}


@pytest.mark.parametrize(
    ("written", "value"),
    [("'tiny'", "tiny"), ('"tiny",', "tiny"), ("`tiny`;", "tiny"), ("org/tiny", "org/tiny")],
)
def test_quotes_and_separators_are_no_part_of_a_value(written: str, value: str) -> None:
    assert [fact.value for fact in facts([MODEL], f"gizmo model={written}")] == [value]


@pytest.mark.parametrize("written", ["None", "auto", "null", "'auto'", "''", '"",'])
def test_a_setting_left_open_is_no_fact(written: str) -> None:
    assert facts([MODEL], f"gizmo model={written}") == []


@pytest.mark.parametrize(("quality", "sure"), [("exact", 0.97), ("partial", 0.7), ("paraphrase", 0.5)])
def test_a_looser_wording_makes_a_less_sure_fact(quality: str, sure: float) -> None:
    one = fact_rule(pattern(r"gizmo model=(?P<model>\S+)", captures={"model": "text"}, quality=quality))
    assert [fact.confidence for fact in facts([one], "gizmo model=tiny")] == [sure]


def test_facts_come_in_reading_order() -> None:
    other = fact_rule(pattern(r"gizmo dtype=(?P<dtype>\S+)", captures={"dtype": "text"}), code="FA900")
    found = facts([MODEL, other], "gizmo model=a", "gizmo dtype=b", "gizmo model=c")
    assert [(fact.name, fact.value, fact.line) for fact in found] == [
        ("model", "a", 1),
        ("dtype", "b", 2),
        ("model", "c", 3),
    ]


def test_a_failure_rule_gives_no_facts() -> None:
    one = rule(pattern(r"gizmo model=(?P<kernel>\S+)", captures={"kernel": "text"}), anchors=["gizmo"])
    assert facts([one], "gizmo model=tiny") == []
