"""What a reviewer would ask of a rule file, told with the file and the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from oortriage.errors import RuleError
from oortriage.evidence.lint import lint_folder
from tests.evidence._rules import VALID


def problems(folder: Path, text: str, name: str = "ZZ900.toml") -> list[str]:
    (folder / name).write_text(text, encoding="utf-8")
    return [one.removeprefix(f"{folder / name}:") for one in lint_folder(folder)]


def line_of(text: str, start: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith(start))


def without(text: str, header: str) -> str:
    """Take one table out of a rule file."""
    blocks = text.split("\n\n")
    return "\n\n".join(block for block in blocks if not block.startswith(header))


def test_a_faultless_rule_has_no_problem(tmp_path: Path) -> None:
    assert problems(tmp_path, VALID) == []


@pytest.mark.parametrize(
    ("old", "new", "line_start", "words"),
    [
        ("The gizmo asked for more than it has.", " ", "meaning", "meaning is empty"),
        ('"The gizmo is full"', '"The gizmo is full."', "title", "full stop"),
        ('sources = ["gizmo 1.0: gizmo.py"]\n', "", "code", "no sources"),
        ('"gizmo overflow"]', '"gizmo  overflow"]', "anchors", "single spaces"),
        ('"gizmo overflow"]', '"gizmo overflow", "gizmo\\nfull"]', "anchors", "single spaces"),
        (r"of (?P", r"(?:of+)+ (?P", "regex", "nested quantifiers"),
        (r"of (?P", r"(of*)* (?P", "regex", "nested quantifiers"),
        ("'''gizmo", "'''.*gizmo", "regex", "leading .*"),
        ("'''gizmo", "'''.+gizmo", "regex", "leading .*"),
        (
            '"gizmo overflow: 300 of 200 bytes"',
            '"gizmo overflow: 300 of 200 bytes in /home/ann/x.py"',
            "text",
            "path of somebody's machine",
        ),
        (
            '"gizmo overflow: 300 of 200 bytes"',
            '"gizmo overflow: 300 of 200 bytes in /Users/ann"',
            "text",
            "path of somebody's machine",
        ),
    ],
)
def test_each_problem_is_told_with_its_line(tmp_path: Path, old: str, new: str, line_start: str, words: str) -> None:
    text = VALID.replace(old, new, 1)
    assert text != VALID
    (said,) = problems(tmp_path, text)
    assert said.startswith(f"{line_of(text, line_start)}: ")
    assert words in said


def test_a_rule_without_a_sample_is_told(tmp_path: Path) -> None:
    assert problems(tmp_path, without(VALID, "[[sample]]")) == ["1: no [[sample]]"]


def test_a_fact_needs_no_sample_and_no_source(tmp_path: Path) -> None:
    text = without(VALID, "[[sample]]").replace('role = "failure"', 'role = "fact"')
    assert problems(tmp_path, text.replace('sources = ["gizmo 1.0: gizmo.py"]\n', "")) == []


def test_a_file_is_named_by_its_code(tmp_path: Path) -> None:
    assert problems(tmp_path, VALID, "gizmo.toml") == ["1: the file should be named ZZ900.toml"]


def test_a_code_taken_twice_is_told_with_the_other_file(tmp_path: Path) -> None:
    for family in ("a", "b"):
        (tmp_path / family).mkdir()
        (tmp_path / family / "ZZ900.toml").write_text(VALID, encoding="utf-8")
    (said,) = lint_folder(tmp_path)
    assert said.startswith(f"{tmp_path / 'b' / 'ZZ900.toml'}:1: ")
    assert str(tmp_path / "a" / "ZZ900.toml") in said


def test_one_broken_file_does_not_hide_the_problems_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "AA900.toml").write_text("code = \n", encoding="utf-8")
    (tmp_path / "ZZ900.toml").write_text(VALID.replace("is full", "is full."), encoding="utf-8")
    first, second = lint_folder(tmp_path)
    assert first.startswith(f"{tmp_path / 'AA900.toml'}:1: not TOML")
    assert "full stop" in second


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="no such folder"):
        list(lint_folder(tmp_path / "nowhere"))


def test_an_empty_folder_has_no_problem(tmp_path: Path) -> None:
    assert list(lint_folder(tmp_path)) == []
