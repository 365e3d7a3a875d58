"""Events: one for each piece of text, at the line that says it, and no talk about messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.evidence.event import Event, find_events
from oortriage.evidence.matcher import Matcher
from oortriage.evidence.rule import Rule
from oortriage.intake.line import Piece
from oortriage.intake.log import Log, build_log
from tests.evidence._rules import pattern, rule


def log_of(*lines: str) -> Log:
    pieces = [Piece(number, 0, text) for number, text in enumerate(lines, 1)]
    return build_log("run.log", pieces, complete=True, notes=[])


def events(rules: list[Rule], *lines: str) -> list[Event]:
    return find_events(log_of(*lines), Matcher(rules))


def overflow(**fields: Any) -> Rule:
    """A failure with an exact form that has a figure, and a partial one without."""
    return rule(
        pattern(r"gizmo overflow: (?P<required_bytes>\d+)", captures={"required_bytes": "bytes"}),
        pattern("gizmo overflow", quality="partial"),
        anchors=["gizmo overflow"],
        **{"code": "ZZ900", **fields},
    )


def test_an_event_stands_at_its_line_and_column() -> None:
    (event,) = events([overflow()], "start", "    then gizmo overflow: 5 came", "end")
    assert (event.code, event.line.number, event.offset) == ("ZZ900", 2, 9)
    assert (event.order, event.last_order) == (1, 1)
    assert event.match.numbers == {"required_bytes": 5}


def test_a_message_over_two_lines_ends_on_the_second() -> None:
    (event,) = events([overflow()], "start", "Error: gizmo", "overflow: 5", "end")
    assert (event.line.number, event.order, event.last_order) == (2, 1, 2)


def test_a_line_that_only_announces_is_skipped() -> None:
    one = rule("GizmoError:(?:[ ]|\n)gizmo overflow", anchors=["gizmo overflow"])
    (event,) = events([one], "start", "GizmoError:", "gizmo overflow")
    assert event.line.number == 3


def test_events_of_several_streams_come_in_reading_order() -> None:
    found = events(
        [overflow()],
        "(Worker pid=1) gizmo overflow: 1",
        "(Worker pid=2) gizmo overflow: 2",
        "(Worker pid=1) gizmo overflow: 3",
    )
    assert [event.match.numbers["required_bytes"] for event in found] == [1, 2, 3]
    assert [event.line.number for event in found] == [1, 2, 3]
    assert found[0].stream == found[2].stream != found[1].stream


@given(st.permutations([1, 2, 3, 4, 5, 6]))
@settings(deadline=None, max_examples=40)
def test_order_of_processes_changes_no_event(ranks: list[int]) -> None:
    lines = [f"(Worker pid={rank}) gizmo overflow: {rank}" for rank in ranks]
    found = events([overflow()], *lines)
    assert [event.match.numbers["required_bytes"] for event in found] == ranks


@pytest.mark.parametrize("role", ["benign", "recovered"])
def test_a_harmless_wording_takes_out_the_failure_inside_it(role: str) -> None:
    harmless = rule("ignored: gizmo overflow", anchors=["ignored: gizmo"], role=role, code="ZZ901")
    found = events([overflow(), harmless], "ignored: gizmo overflow: 5", "gizmo overflow: 6")
    assert [(event.code, event.line.number) for event in found] == [("ZZ901", 1), ("ZZ900", 2)]
    assert found[0].also == ("ZZ900",)


def test_benign_goes_before_recovered() -> None:
    benign = rule("gizmo overflow", anchors=["gizmo overflow"], role="benign", code="ZZ901")
    recovered = rule("gizmo overflow: 5, went on", anchors=["gizmo overflow"], role="recovered", code="ZZ902")
    found = events([recovered, benign], "gizmo overflow: 5, went on")
    assert [event.code for event in found] == ["ZZ901"]


def test_the_exact_wording_stands_for_a_loose_one_on_the_same_text() -> None:
    loose = rule(
        pattern("the gizmo overflow: 5 bytes", quality="paraphrase"),
        anchors=["gizmo overflow"],
        code="ZZ901",
    )
    (event,) = events([loose, overflow()], "the gizmo overflow: 5 bytes")
    assert (event.code, event.also) == ("ZZ900", ("ZZ901",))


def test_of_two_exact_wordings_the_one_with_more_figures_stands() -> None:
    plain = rule("the gizmo overflow: 5 bytes", anchors=["gizmo overflow"], code="ZZ901")
    (event,) = events([plain, overflow()], "the gizmo overflow: 5 bytes")
    assert event.code == "ZZ900"


def test_texts_that_do_not_touch_are_two_events_though_a_third_joins_them() -> None:
    joining = rule(pattern("overflow: 5 and gizmo", quality="paraphrase"), anchors=["5 and gizmo"], code="ZZ901")
    found = events([overflow(), joining], "gizmo overflow: 5 and gizmo overflow: 6")
    assert [event.match.numbers.get("required_bytes") for event in found] == [5, 6]


@pytest.mark.parametrize("role", ["wrapper", "fact", "phase"])
def test_wrappers_and_facts_stay_beside_the_failure(role: str) -> None:
    beside = rule("worker died: gizmo overflow", anchors=["worker died"], role=role, code="ZZ901")
    found = events([overflow(), beside], "worker died: gizmo overflow: 5")
    assert {event.code for event in found} == {"ZZ900", "ZZ901"}


def test_a_covered_wording_lends_its_phase() -> None:
    sure = overflow()
    loose = rule(
        pattern("capture: gizmo overflow", quality="paraphrase"),
        anchors=["gizmo overflow"],
        code="ZZ901",
        phase="graph_capture",
    )
    (event,) = events([sure, loose], "capture: gizmo overflow: 5")
    assert (event.code, event.phase) == ("ZZ900", "graph_capture")


def test_a_rules_own_phase_goes_first() -> None:
    loose = rule(
        pattern("capture: gizmo overflow", quality="paraphrase"),
        anchors=["gizmo overflow"],
        code="ZZ901",
        phase="graph_capture",
    )
    (event,) = events([overflow(phase="load"), loose], "capture: gizmo overflow: 5")
    assert event.phase == "load"


@pytest.mark.parametrize(
    "line",
    [
        "gizmo overflow: 5",
        "RuntimeError: gizmo overflow: 5",
        "ERROR 03-11 09:18:55 [core.py:1] gizmo overflow: 5",
        "ERROR worker 3 terminated: gizmo overflow: 5",
        "gizmo.errors.OutOfResources: gizmo overflow: 5. Reducing block sizes may help to avoid it",
        '{"message": "gizmo overflow: 5"}',
    ],
)
def test_a_printed_message_is_no_mention(line: str) -> None:
    assert [event.mentioned for event in events([overflow()], line)] == [False]


@pytest.mark.parametrize(
    "line",
    [
        "If you see gizmo overflow: 5, lower the setting",
        "Set --small to avoid gizmo overflow: 5",
        "a known issue is gizmo overflow: 5",
        "this fixes the gizmo overflow: 5",
        "for example gizmo overflow: 5",
        'he wrote "gizmo overflow: 5" somewhere',
        "retry on gizmo overflow: 5",
    ],
)
def test_a_sentence_about_a_message_is_a_mention(line: str) -> None:
    assert [event.mentioned for event in events([overflow()], line)] == [True]


def test_a_command_s_help_only_mentions_messages() -> None:
    found = events(
        [overflow()],
        "usage: gizmo [-h] [--small]",
        "  --small  ERROR: gizmo overflow: 5 is what this cures",
        "$ gizmo",
        "ERROR: gizmo overflow: 6",
    )
    assert [(event.line.number, event.mentioned) for event in found] == [(2, True), (4, False)]


def test_an_exception_at_the_end_of_a_traceback_is_never_a_mention() -> None:
    found = events(
        [overflow()],
        "Traceback (most recent call last):",
        '  File "run.py", line 3, in go',
        "    step()",
        "GizmoError: this might be due to gizmo overflow: 5",
    )
    assert [(event.line.number, event.mentioned) for event in found] == [(4, False)]


def test_a_fact_is_never_a_mention() -> None:
    one = rule(
        pattern("gizmo dtype=(?P<dtype>[^ ]+)", captures={"dtype": "text"}),
        anchors=["gizmo dtype"],
        role="fact",
    )
    found = events([one], "if you see gizmo dtype=half")
    assert [event.mentioned for event in found] == [False]


def test_source_code_in_a_traceback_is_not_read() -> None:
    found = events(
        [overflow()],
        "Traceback (most recent call last):",
        '  File "run.py", line 3, in go',
        '    raise GizmoError("gizmo overflow: 5")',
        "GizmoError: gizmo overflow: 6",
    )
    assert [event.match.numbers["required_bytes"] for event in found] == [6]
