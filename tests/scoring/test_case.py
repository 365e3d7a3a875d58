"""Labelled cases on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from oortriage.errors import InputError
from oortriage.scoring.case import load_case, load_cases
from tests.scoring._cases import LABEL


def written(folder: Path, text: str = LABEL) -> Path:
    folder.mkdir(parents=True)
    path = folder / "case.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_case_is_read_with_its_name_and_the_log_s_path(tmp_path: Path) -> None:
    case = load_case(written(tmp_path / "group" / "one"))
    assert (case.title, case.origin, case.note) == ("A gizmo", "public", "figures invented")
    assert case.name == "group/one"
    assert case.path == tmp_path / "group" / "one" / "run.log"
    assert case.expect.resource == "device_memory"
    assert (case.expect.causes, case.expect.numbers) == (["capacity"], {"requested_bytes": 300})


def test_what_a_label_leaves_out_is_not_judged(tmp_path: Path) -> None:
    text = 'title = "x"\nlog = "x"\norigin = "run"\n[expect]\nresource = "none"\n'
    expect = load_case(written(tmp_path / "a", text)).expect
    assert (expect.causes, expect.phases, expect.root_line, expect.numbers, expect.facts) == ([], [], 0, {}, {})
    assert expect.status == "fatal"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"device_memory"', '"vram"'),
        ('"public"', '"heard"'),
        ("root_line = 2", 'root_line = "two"'),
        ("root_line = 2", "line = 2"),
        ('title = "A gizmo"\n', ""),
        ('title = "A gizmo"', "title = "),
        ("root_line = 2", 'phases = ["lunch"]'),
    ],
)
def test_a_label_that_is_none_is_refused_by_its_file(tmp_path: Path, old: str, new: str) -> None:
    assert old in LABEL
    path = written(tmp_path / "one", LABEL.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load_case(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_missing_file_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"case\.toml"):
        load_case(tmp_path / "case.toml")


def test_all_cases_below_a_folder_in_order_of_name(tmp_path: Path) -> None:
    for name in ("b/two", "a/three", "b/one"):
        written(tmp_path / name)
    assert [case.name for case in load_cases(tmp_path)] == ["a/three", "b/one", "b/two"]


def test_a_folder_without_cases_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no case\.toml"):
        load_cases(tmp_path)


def test_one_bad_case_is_not_passed_over(tmp_path: Path) -> None:
    written(tmp_path / "a")
    written(tmp_path / "b", "title = 5\n")
    with pytest.raises(InputError):
        load_cases(tmp_path)
