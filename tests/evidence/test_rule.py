"""A rule's own behaviour: which roles speak of failures, and what a space in a pattern means."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.evidence.rule import Rule, flexible_spaces
from tests.evidence._rules import rule

words = st.lists(st.text("abcXYZ019_:,", min_size=1, max_size=6), min_size=2, max_size=6)
blanks = st.text(" \t\n\r\u00a0", min_size=1, max_size=4)


@given(words=words, data=st.data())
def test_a_space_matches_any_run_of_white_space(words: list[str], data: st.DataObject) -> None:
    text = words[0] + "".join(data.draw(blanks) + word for word in words[1:])
    pattern = flexible_spaces(" ".join(re.escape(word) for word in words))
    assert re.fullmatch(pattern, text)


@given(words=words)
def test_a_space_does_not_match_nothing(words: list[str]) -> None:
    pattern = flexible_spaces(" ".join(re.escape(word) for word in words))
    assert not re.fullmatch(pattern, "".join(words))


@given(st.text("ab.*+?()|^$09_-", max_size=20))
def test_a_pattern_without_spaces_stays_as_it_is(pattern: str) -> None:
    assert flexible_spaces(pattern) == pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "a[ ]b",
        "a[x ]b",
        "a[^ ]b",
        "a[] ]b",
        "a[^] ]b",
        r"a[\] ]b",
        r"a\ b",
        r"\[\d+\]",
    ],
)
def test_spaces_in_classes_and_behind_a_backslash_are_kept(pattern: str) -> None:
    assert flexible_spaces(pattern) == pattern


@pytest.mark.parametrize(
    ("pattern", "hits", "misses"),
    [
        ("a ?b", ["ab", "a b"], ["a  b"]),
        ("a *b", ["ab", "a b", "a   b"], ["axb"]),
        ("a +b", ["a b", "a   b"], ["ab"]),
        ("a {2}b", ["a  b"], ["a b", "a   b"]),
        ("a[ ]b c", ["a b\nc", "a b   c"], ["a\nb c", "a  b c"]),
        (r"\\ b", ["\\ b", "\\\n  b"], ["\\b"]),
        (r"\[ b", ["[ b", "[\nb"], ["[b"]),
        (r"(?P<x>\d+) of (?:the )?card", ["5 of\nthe card", "5  of card"], ["5 ofcard"]),
        (r"(?i:out of) memory", ["OUT\nof memory"], ["OUT of MEMORY"]),
        (r"[^\]] a", ["x a", "x\n\na"], ["] a"]),
    ],
)
def test_what_a_pattern_then_matches(pattern: str, hits: list[str], misses: list[str]) -> None:
    expression = re.compile(flexible_spaces(pattern))
    assert [text for text in hits if not expression.fullmatch(text)] == []
    assert [text for text in misses if expression.fullmatch(text)] == []


def test_groups_keep_their_names_and_numbers() -> None:
    pattern = r"a (?P<one>\d+) (?:b )?(?P<two>[ x]+) (c)"
    assert re.compile(flexible_spaces(pattern)).groupindex == re.compile(pattern).groupindex
    assert re.compile(flexible_spaces(pattern)).groups == 3


@pytest.mark.parametrize(
    ("role", "is_event"),
    [
        ("failure", True),
        ("wrapper", True),
        ("recovered", True),
        ("benign", True),
        ("warning", True),
        ("unrelated", True),
        ("fact", False),
        ("phase", False),
    ],
)
def test_facts_and_phases_are_no_events(role: str, is_event: bool) -> None:
    assert rule("x", anchors=["abcd"], role=role).is_event is is_event


def test_an_unknown_key_is_refused() -> None:
    table = msgspec.to_builtins(rule("x", anchors=["abcd"]))
    with pytest.raises(msgspec.ValidationError, match="colour"):
        msgspec.convert({**table, "colour": "red"}, Rule)


def test_a_rule_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        rule("x", anchors=["abcd"]).code = "ZZ901"  # type: ignore[misc]
