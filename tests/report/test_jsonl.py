"""JSON lines: one complete object a line, whatever is in it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from oortriage.report.json import encode
from oortriage.triage.diagnosis import Diagnosis
from tests.report._made import filled, hostile, made, rendered


def test_every_log_is_one_line(every: list[Diagnosis]) -> None:
    text = rendered("jsonl", *every)
    assert text.endswith("\n")
    assert [json.loads(line) for line in text[:-1].split("\n")] == [json.loads(encode(one)) for one in every]


def test_a_single_log_is_a_line_too() -> None:
    assert json.loads(rendered("jsonl", made()))["code"] == "SM101"


def test_no_log_is_no_line() -> None:
    assert rendered("jsonl") == ""


@given(st.lists(hostile | st.text(), min_size=1, max_size=3))
def test_no_text_breaks_a_line_in_two(texts: list[str]) -> None:
    """Also where a reader splits at U+2028, form feeds and the like."""
    text = rendered("jsonl", *map(filled, texts))
    assert len(text.splitlines()) == len(texts)
