"""Formats by name, and what all of them have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

import oortriage.report
from oortriage.errors import UsageError
from oortriage.report._interface import FORMATS, Style, open_report, render_all
from oortriage.triage.diagnosis import Diagnosis
from tests.report._made import made


def test_a_format_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"'yaml'.*text, json, jsonl, markdown"):
        open_report("yaml", Style())


def test_each_format_has_a_file_of_its_name() -> None:
    folder = Path(oortriage.report.__path__[0])
    for name, module in FORMATS.items():
        assert module == f"oortriage.report.{name}"
        assert (folder / f"{name}.py").is_file()


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_rendering_is_repeatable(name: str, chosen: dict[str, Diagnosis]) -> None:
    once, again = (render_all(open_report(name, Style()), chosen.values()) for _ in range(2))
    assert once == again


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_output_ends_with_one_line_break(name: str, chosen: dict[str, Diagnosis]) -> None:
    for diagnosis in chosen.values():
        text = render_all(open_report(name, Style()), [diagnosis])
        assert text.endswith("\n")
        assert not text.endswith("\n\n")


@pytest.mark.parametrize("name", ["text", "markdown", "jsonl"])
def test_diagnoses_are_written_one_by_one(name: str) -> None:
    """A long run over many logs shows each verdict as soon as it is there."""
    report = open_report(name, Style())
    assert report.begin() == ""
    assert "v1-0123456789ab" in report.render(made(), first=True)
    assert "v1-ba9876543210" in report.render(made(fingerprint="v1-ba9876543210"), first=False)
    assert report.end(2) == ""
