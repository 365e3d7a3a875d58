"""Where output goes and what code several logs come to."""

from __future__ import annotations

import io
from itertools import product
from pathlib import Path

import pytest

from oortriage.cli.output import Color, exit_code, style_for, write
from oortriage.errors import UsageError
from oortriage.report._interface import Style
from oortriage.triage.diagnosis import Diagnosis
from tests.report._made import made

CLEAN, FOUND, DOUBT = (made(resource=name) for name in ("none", "kv_cache", "undetermined"))


@pytest.mark.parametrize(
    ("diagnoses", "code"),
    [
        ([], 0),
        ([CLEAN], 0),
        ([FOUND], 1),
        ([DOUBT], 3),
        ([CLEAN, DOUBT, CLEAN], 3),
        ([DOUBT, FOUND], 1),
        ([FOUND, CLEAN], 1),
    ],
)
def test_a_found_failure_goes_before_a_doubt(diagnoses: list[Diagnosis], code: int) -> None:
    assert exit_code(diagnoses, failed_inputs=0, exit_zero=False) == code


def test_an_unreadable_input_goes_before_everything() -> None:
    for diagnoses, exit_zero in product(([], [CLEAN], [FOUND], [DOUBT]), (False, True)):
        assert exit_code(diagnoses, failed_inputs=1, exit_zero=exit_zero) == 2


def test_exit_zero_is_zero_whatever_was_found() -> None:
    assert exit_code([FOUND, DOUBT, CLEAN], failed_inputs=0, exit_zero=True) == 0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(("columns", "width"), [("60", 60), ("100", 100), ("400", 120)])
def test_a_terminal_s_own_width_up_to_120(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setenv("COLUMNS", columns)
    style = style_for(Color.auto, None)
    assert (style.width, style.color) == (width, True)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("name", ["NO_COLOR", "TERM"])
def test_a_terminal_may_ask_for_none(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setenv(name, "dumb")
    assert style_for(Color.auto, None).color is False


@pytest.mark.usefixtures("plain")
def test_a_file_is_80_wide_and_plain_also_when_a_terminal_looks_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "200")
    style = style_for(Color.auto, tmp_path / "x")
    assert (style.width, style.color) == (80, False)


def test_diagnoses_are_written_as_they_come_and_given_back(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    seen: list[int] = []

    def coming():
        for diagnosis in (CLEAN, FOUND):
            seen.append(len(target.read_text(encoding="utf-8").splitlines()))
            yield diagnosis

    assert write(coming(), "jsonl", Style(), target) == [CLEAN, FOUND]
    assert seen == [0, 1]
    assert len(target.read_text(encoding="utf-8").splitlines()) == 2


def test_a_folder_is_no_output_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        write([CLEAN], "text", Style(), tmp_path)
