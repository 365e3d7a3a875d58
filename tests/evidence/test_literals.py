"""Literals found in one pass, against a search that looks at every position."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from oortriage.evidence.literals import LiteralSet, fold

texts = st.text("abAB \n\r-é\u0130\U0001f600", max_size=60)
literals = st.lists(st.text("abAB -é", min_size=1, max_size=4), max_size=6)


def lowered(text: str) -> str:
    """Lower ASCII letters and turn line breaks to spaces, one character at a time."""
    return "".join(" " if one in "\n\r" else chr(ord(one) + 32) if "A" <= one <= "Z" else one for one in text)


@given(st.text(st.characters(exclude_categories=[])))
@example("\u0130\u212a\u03a3 É\u1e9e")
@example("\ud83d\ude00 A\udc80")
def test_fold_moves_no_character_and_touches_only_ascii(text: str) -> None:
    assert fold(text) == lowered(text)


@given(texts)
def test_fold_twice_is_fold_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


def test_a_letter_whose_lower_form_is_two_moves_nothing() -> None:
    """The Turkish dotted capital I."""
    assert list(LiteralSet(["memory"]).find(fold("\u0130\u0130 MEMORY"))) == [("memory", 3, 9)]


@given(text=texts, literals=literals)
def test_every_occurrence_is_found_with_its_place(text: str, literals: list[str]) -> None:
    folded = lowered(text)
    wanted = {
        (literal, start, start + len(literal))
        for literal in map(lowered, literals)
        for start in range(len(folded))
        if folded.startswith(literal, start)
    }
    found = list(LiteralSet(literals).find(fold(text)))
    assert set(found) == wanted
    assert len(found) == len(wanted)


def test_places_count_characters_and_not_bytes() -> None:
    assert list(LiteralSet(["memory"]).find(fold("显存 Memory"))) == [("memory", 3, 9)]


def test_a_literal_is_found_over_a_line_break() -> None:
    assert list(LiteralSet(["Out of memory"]).find(fold("OUT OF\nMEMORY"))) == [("out of memory", 0, 13)]


def test_spellings_of_one_literal_count_once() -> None:
    assert LiteralSet(["Memory", "MEMORY", "memory"]).literals == ["memory"]
