"""Settings: which file is read, and what a bad one says."""

from __future__ import annotations

from pathlib import Path

import pytest

from oortriage.config import Config, find_config
from oortriage.errors import UsageError


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_nothing_is_set(tmp_path: Path) -> None:
    config = find_config(tmp_path)
    assert (config.rules, config.exit_zero, config.rule_folders) == ([], False, [])


def test_folders_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    written(tmp_path / "oortriage.toml", 'rules = ["mine", "more/rules"]\nexit_zero = true\n')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    config = find_config(below)
    assert config.rule_folders == [tmp_path.resolve() / "mine", tmp_path.resolve() / "more" / "rules"]
    assert config.exit_zero is True


def test_an_absolute_folder_stays_where_it_is(tmp_path: Path) -> None:
    away = (tmp_path / "away").resolve()
    written(tmp_path / "here" / "oortriage.toml", f"rules = ['{away}']\n")
    assert find_config(tmp_path / "here").rule_folders == [away]


def test_the_working_folder_is_where_the_search_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "oortriage.toml", "exit_zero = true\n")
    monkeypatch.chdir(tmp_path)
    assert find_config().exit_zero is True


def test_the_nearest_file_wins(tmp_path: Path) -> None:
    written(tmp_path / "oortriage.toml", 'rules = ["far"]\n')
    written(tmp_path / "a" / "oortriage.toml", 'rules = ["near"]\n')
    assert find_config(tmp_path / "a").rules == ["near"]


def test_pyproject_settings_stand_in_their_table(tmp_path: Path) -> None:
    written(tmp_path / "pyproject.toml", '[project]\nname = "x"\n[tool.oortriage]\nrules = ["mine"]\n')
    config = find_config(tmp_path)
    assert config.rule_folders == [tmp_path.resolve() / "mine"]


def test_the_own_file_goes_before_pyproject(tmp_path: Path) -> None:
    written(tmp_path / "pyproject.toml", '[tool.oortriage]\nrules = ["project"]\n')
    written(tmp_path / "oortriage.toml", 'rules = ["own"]\n')
    assert find_config(tmp_path).rules == ["own"]


@pytest.mark.parametrize(
    "text",
    ['[project]\nname = "x"\n', "", "[tool.other]\nx = 1\n", "not toml at all", "tool = 1\n", "[[tool]]\nx = 1\n"],
    ids=["plain", "empty", "other", "broken", "number", "array"],
)
def test_somebody_else_s_pyproject_is_passed_by(tmp_path: Path, text: str) -> None:
    written(tmp_path / "oortriage.toml", 'rules = ["mine"]\n')
    written(tmp_path / "a" / "pyproject.toml", text)
    (tmp_path / "a" / "b").mkdir()
    assert find_config(tmp_path / "a" / "b").rules == ["mine"]


def test_a_pyproject_without_settings_does_not_hide_those_above(tmp_path: Path) -> None:
    written(tmp_path / "oortriage.toml", 'rules = ["mine"]\n')
    written(tmp_path / "a" / "pyproject.toml", '[project]\nname = "x"\n')
    assert find_config(tmp_path / "a").rules == ["mine"]


def test_a_pyproject_with_settings_hides_those_above_also_when_they_say_no(tmp_path: Path) -> None:
    """``exit_zero = false`` is a setting: the nearest word counts."""
    written(tmp_path / "oortriage.toml", "exit_zero = true\n")
    written(tmp_path / "a" / "pyproject.toml", "[tool.oortriage]\nexit_zero = false\n")
    assert find_config(tmp_path / "a").exit_zero is False


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("oortriage.toml", "rule = []\n", "rule"),
        ("oortriage.toml", 'rules = "mine"\n', "rules"),
        ("oortriage.toml", "exit_zero = 1\n", "exit_zero"),
        ("oortriage.toml", "rules = yes\n", "line 1"),
        ("pyproject.toml", "[tool.oortriage]\nrule = []\n", "rule"),
        ("pyproject.toml", '[tool.oortriage]\nrules = "mine"\n', "rules"),
    ],
)
def test_bad_settings_name_their_file(tmp_path: Path, name: str, text: str, words: str) -> None:
    path = written(tmp_path.resolve() / name, text)
    with pytest.raises(UsageError) as caught:
        find_config(tmp_path)
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)
    assert caught.value.exit_code == 2


def test_settings_that_are_no_text_name_their_file(tmp_path: Path) -> None:
    (tmp_path / "oortriage.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"oortriage\.toml"):
        find_config(tmp_path)


def test_where_settings_lie_is_found_and_not_set(tmp_path: Path) -> None:
    written(tmp_path / "oortriage.toml", 'folder = "/elsewhere"\nrules = ["mine"]\n')
    try:
        config = find_config(tmp_path)
    except UsageError:
        return
    assert config.rule_folders == [tmp_path.resolve() / "mine"]


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Config().exit_zero = True  # type: ignore[misc]
