"""A score as a table and as JSON."""

from __future__ import annotations

import json
import re

from oortriage.scoring.score import Score
from oortriage.scoring.table import as_json, as_text
from tests.scoring._cases import score, verdict

MADE = Score(
    [
        verdict("shared_memory", "shared_memory", folder="cases/a/one"),
        verdict("shared_memory", "device_memory", folder="cases/a/two"),
        verdict("none", "device_memory", 0.6, folder="cases/b/three"),
        verdict("none", "none", 0.9, folder="cases/b/four"),
    ]
)


def row(text: str, label: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.split()[:1] == [label]]
    return line.split()[1:]


def test_the_table_has_cases_precision_and_recall() -> None:
    text = as_text(MADE)
    assert row(text, "shared_memory") == ["2", "1.000", "0.500"]
    assert row(text, "none") == ["2", "1.000", "0.500"]
    assert row(text, "device_memory") == ["0", "0.000", "-"]
    assert "\nresource accuracy 0.500 (must be 0.98)\n" in text
    assert "\nfalse alarms on clean and recovered logs 1 (must be 0)" in text
    assert "\nfalse shared_memory 0 (must be 0)\n" in text


def test_bad_cases_are_listed_and_good_ones_only_when_asked() -> None:
    assert re.findall(r"(?m)^(BAD|ok ) (\S+?):? ?(?:resource.*)?$", as_text(MADE)) == [
        ("BAD", "a/two"),
        ("BAD", "b/three"),
    ]
    listed = re.findall(r"(?m)^(BAD|ok ) (\S+?)(?::.*)?$", as_text(MADE, show_all=True))
    assert [name for _, name in listed] == ["a/one", "a/two", "b/three", "b/four"]


def test_the_table_tells_what_is_wrong() -> None:
    assert "BAD a/two: resource device_memory, should be shared_memory; cause" in as_text(MADE)


def test_confidence_bins_tell_the_share_that_was_right() -> None:
    lines = [line.split() for line in as_text(MADE).splitlines() if re.match(r"  0\.\d\d - ", line)]
    assert [(low, high, count, share) for low, _, high, count, share in lines] == [
        ("0.00", "0.50", "0", "-"),
        ("0.50", "0.70", "1", "0.000"),
        ("0.70", "0.80", "0", "-"),
        ("0.80", "0.90", "0", "-"),
        ("0.90", "1.00", "3", "0.667"),
    ]


def test_json_has_the_same_figures() -> None:
    table = json.loads(as_json(MADE))
    assert (table["cases"], table["resource_accuracy"]) == (4, 0.5)
    assert table["false_alarms"] == ["b/three"]
    assert table["false_shared_memory"] == []
    by_resource = {one["label"]: one for one in table["by_resource"]}
    assert by_resource["shared_memory"] == {
        "label": "shared_memory",
        "cases": 2,
        "precision": 1.0,
        "recall": 0.5,
    }
    assert by_resource["device_memory"]["recall"] is None
    assert table["reliability"][-1] == {"low": 0.9, "high": 1.0, "cases": 3, "right": 2}
    assert set(table["problems"]) == {"a/two", "b/three"}


def test_a_faultless_score_lists_no_problem() -> None:
    made = score(("kv_cache", "kv_cache"))
    assert json.loads(as_json(made))["problems"] == {}
    assert "BAD" not in as_text(made)
    assert "cases 1, without any problem 1" in as_text(made)
