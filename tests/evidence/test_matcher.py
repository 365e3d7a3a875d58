"""Rules against text: an anchor first, then the expression, with places that hold for the text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.errors import RuleError
from oortriage.evidence.loader import built_in_rules
from oortriage.evidence.matcher import MATCHES_KEPT, WINDOW_AFTER, WINDOW_BEFORE, Match, Matcher
from tests.evidence._rules import pattern, rule

SIZE = {"size": "size"}


def texts_of(matches: list[Match]) -> list[str]:
    return [match.text for match in matches]


def test_no_rules_find_nothing() -> None:
    assert Matcher([]).find("out of memory") == []


def test_a_match_tells_rule_place_text_and_figures() -> None:
    one = rule(
        pattern(
            r"gizmo (?P<kernel>\w+) needs (?P<size>[\d.]+ GiB)",
            captures={"kernel": "text", "size": "size"},
        ),
        anchors=["gizmo"],
    )
    (match,) = Matcher([one]).find("显存: gizmo left needs 1.50 GiB now")
    assert (match.start, match.end) == (4, 29)
    assert match.text == "gizmo left needs 1.50 GiB"
    assert match.numbers == {"size": 1_610_612_736}
    assert match.details == {"kernel": "left"}
    assert match.rule is one


@given(
    text=st.text("aB b", max_size=40),
    anchors=st.lists(st.text("ab", min_size=2, max_size=6), min_size=1, max_size=4),
    expression=st.sampled_from(["ab", "a+b", "ba{1,3}", "abab?", "a.b", "[ab]{3}", "b", "a(?:ba)+"]),
)
@settings(max_examples=400)
def test_found_is_what_holds_an_anchor(text: str, anchors: list[str], expression: str) -> None:
    """Against a search without anchors. Hits that only begin an anchor may go either way."""
    found = {(match.start, match.end) for match in Matcher([rule(pattern(expression), anchors=anchors)]).find(text)}
    folded = text.lower()
    places = [
        (start, start + len(anchor))
        for anchor in anchors
        for start in range(len(text))
        if folded.startswith(anchor, start)
    ]
    for hit in re.finditer(expression, text):
        inside = any(hit.start() <= low and high <= hit.end() for low, high in places)
        touched = any(low < hit.end() and hit.start() < high for low, high in places)
        if inside:
            assert hit.span() in found
        elif not touched:
            assert hit.span() not in found


def test_an_anchor_within_another_anchor_hides_no_match() -> None:
    """The shorter anchor ends first though it begins later."""
    one = rule("bcde", anchors=["bcde", "abcdefgh"])
    assert texts_of(Matcher([one]).find("abcdefgh")) == ["bcde"]


def test_matches_come_in_order_of_place() -> None:
    first = rule("first word", anchors=["first word"], code="ZZ902")
    second = rule("other word", anchors=["other word"], code="ZZ901")
    found = Matcher([first, second]).find("other word, first word, other word")
    assert [(match.rule.code, match.start) for match in found] == [
        ("ZZ901", 0),
        ("ZZ902", 12),
        ("ZZ901", 24),
    ]


def test_of_patterns_on_the_same_text_the_first_stands() -> None:
    one = rule(
        pattern(r"gizmo full: (?P<size>\d+ MiB)", captures=SIZE),
        pattern("gizmo full", quality="partial"),
        anchors=["gizmo full"],
    )
    found = Matcher([one]).find("gizmo full: 2 MiB, then gizmo full")
    assert [(match.pattern.quality, match.numbers) for match in found] == [
        ("exact", {"size": 2_097_152}),
        ("partial", {}),
    ]


def test_a_figure_that_is_none_spoils_the_match_and_lets_the_next_pattern_try() -> None:
    one = rule(
        pattern(r"gizmo full: (?P<size>\S+)", captures=SIZE),
        pattern("gizmo full", quality="partial"),
        anchors=["gizmo full"],
    )
    (match,) = Matcher([one]).find("gizmo full: 1.2.3MB")
    assert match.pattern.quality == "partial"


def test_a_group_that_took_no_part_gives_no_figure() -> None:
    one = rule(
        pattern(
            r"gizmo full(?: at (?P<pid>\d+))?(?:, (?P<size>\d+ MiB))?",
            captures={"pid": "int", "size": "size"},
        ),
        anchors=["gizmo full"],
    )
    assert [match.numbers for match in Matcher([one]).find("gizmo full, 3 MiB")] == [{"size": 3_145_728}]


def test_case_of_anchors_never_counts_and_case_of_patterns_does() -> None:
    strict = rule("Gizmo Full", anchors=["gizmo full"])
    lax = rule(pattern("Gizmo Full", ignore_case=True), anchors=["GIZMO FULL"])
    text = "gizmo full Gizmo Full GIZMO FULL"
    assert texts_of(Matcher([strict]).find(text)) == ["Gizmo Full"]
    assert texts_of(Matcher([lax]).find(text)) == ["gizmo full", "Gizmo Full", "GIZMO FULL"]


def test_the_message_begins_where_the_match_does() -> None:
    (match,) = Matcher([rule("gizmo full", anchors=["gizmo full"])]).find("so: gizmo full")
    assert (match.start, match.at) == (4, 4)


def test_a_group_named_at_marks_where_the_message_begins() -> None:
    one = rule("worker died: (?P<at>gizmo full)", anchors=["gizmo full"])
    (match,) = Matcher([one]).find("so: worker died: gizmo full")
    assert (match.start, match.at, match.numbers, match.details) == (4, 17, {}, {})


def test_a_mark_that_took_no_part_marks_nothing() -> None:
    one = rule("gizmo full(?:, (?P<at>twice))?", anchors=["gizmo full"])
    (match,) = Matcher([one]).find("so: gizmo full")
    assert match.at == 4


def test_lines_that_only_announce_come_before_the_message() -> None:
    one = rule("GizmoError: raised: gizmo full", anchors=["gizmo full"])
    (match,) = Matcher([one]).find("so: GizmoError:\nraised:\ngizmo full")
    assert (match.start, match.at) == (4, 24)


def test_of_an_endless_repetition_the_first_and_the_last_are_kept() -> None:
    found = Matcher([rule("gizmo full", anchors=["gizmo full"])]).find("gizmo full. " * 1000)
    half = MATCHES_KEPT // 2
    assert [match.start for match in found] == [12 * index for index in (*range(half), *range(1000 - half, 1000))]


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=20))
@settings(deadline=None, max_examples=50)
def test_distance_between_messages_neither_loses_nor_doubles_one(gaps: list[int]) -> None:
    text, wanted = "", []
    for gap in gaps:
        text += "." * gap
        wanted.append(len(text))
        text += "gizmo full"
    found = Matcher([rule("gizmo full", anchors=["gizmo full"])]).find(text)
    assert [match.start for match in found] == wanted


@pytest.mark.parametrize(("before", "after"), [(WINDOW_BEFORE - 10, 0), (0, WINDOW_AFTER - 10)])
def test_a_message_may_reach_as_far_as_the_window(before: int, after: int) -> None:
    one = rule("<[.]*gizmo full[.]*>", anchors=["gizmo full"])
    text = "x" * 10_000 + "<" + "." * before + "gizmo full" + "." * after + ">" + "x" * 10_000
    assert [match.end - match.start for match in Matcher([one]).find(text)] == [before + after + 12]


@given(st.data())
@settings(deadline=None)
def test_the_triton_message_may_be_wrapped_between_any_words(data: st.DataObject) -> None:
    message = (
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, "
        "Required: 81920, Hardware limit: 65536. Reducing block sizes or `num_stages` may help."
    )
    words = message.split(" ")
    text = words[0] + "".join(data.draw(st.sampled_from([" ", "\n"])) + word for word in words[1:])
    matcher = Matcher([one for one in built_in_rules() if one.code == "SM101"])
    assert [match.numbers for match in matcher.find(text)] == [{"required_bytes": 81920, "limit_bytes": 65536}]


#: Two ways to read every pair of letters, and a text on which both fail in the end.
BOMB = rule("(?:a|aa)+$", anchors=["aaaa"], code="ZZ901")
FUSE = "a" * 60 + "!"


def test_a_guarded_expression_that_never_ends_is_given_up_and_named() -> None:
    other = rule("gizmo full", anchors=["gizmo full"], code="ZZ902")
    matcher = Matcher([BOMB, other], guarded=frozenset({"ZZ901"}))
    assert texts_of(matcher.find(f"{FUSE} gizmo full")) == ["gizmo full"]
    assert matcher.timed_out == {"ZZ901"}


def test_a_rule_that_was_given_up_is_not_tried_again() -> None:
    matcher = Matcher([BOMB], guarded=frozenset({"ZZ901"}))
    matcher.find(FUSE)
    assert matcher.find("aaaa") == []


def test_an_expression_that_only_the_unguarded_engine_knows_is_told() -> None:
    """``regex`` knows classes by name, ``re`` takes the same text for a set and a bracket."""
    one = rule("[^{[:alpha:]gizmo full", anchors=["gizmo full"], code="ZZ902", path="mine/ZZ902.toml")
    with pytest.raises(RuleError, match=r"^mine/ZZ902\.toml: .*time limit"):
        Matcher([one], guarded=frozenset({"ZZ902"})).find("gizmo full")


def test_a_copy_of_a_shipped_rule_under_a_new_code_works_beside_it() -> None:
    """The usual way to begin a rule: both have the same expression, one of them is guarded."""
    shipped = rule("gizmo full", anchors=["gizmo full"], code="ZZ901")
    copied = rule("gizmo full", anchors=["gizmo full"], code="ZZ902")
    for rules in ([shipped, copied], [copied, shipped]):
        found = Matcher(rules, guarded=frozenset({"ZZ902"})).find("the gizmo full")
        assert [match.rule.code for match in found] == ["ZZ901", "ZZ902"]


def test_a_guarded_rule_finds_what_an_unguarded_one_does() -> None:
    shipped = [one for one in built_in_rules() if one.is_event][::8]
    codes = frozenset(one.code for one in shipped)
    free, guarded = Matcher(shipped), Matcher(shipped, guarded=codes)
    samples = [sample.text for one in shipped for sample in one.sample]
    assert samples
    for text in samples:
        plain = [(match.rule.code, match.start, match.end, match.numbers) for match in free.find(text)]
        under = [(match.rule.code, match.start, match.end, match.numbers) for match in guarded.find(text)]
        assert plain == under
    assert guarded.timed_out == set()
