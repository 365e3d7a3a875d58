"""New cases and blessed labels."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.errors import InputError, UsageError
from oortriage.scoring import make
from oortriage.scoring.case import load_case
from oortriage.scoring.make import bless_case, new_case
from oortriage.scoring.score import score_folder
from tests.scoring._cases import said

MESSAGE = (
    "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 81920, "
    "Hardware limit: 65536. Reducing block sizes or `num_stages` may help."
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "crash.log"
    path.write_text(f"start\n{MESSAGE}\n", encoding="utf-8")
    return path


def test_a_new_case_has_the_log_and_the_verdict(log: Path, tmp_path: Path) -> None:
    path = new_case(log, tmp_path / "group" / "one", source="https://example.com/1", origin="public")
    assert path == tmp_path / "group" / "one" / "case.toml"
    case = load_case(path)
    assert case.path.read_bytes() == log.read_bytes()
    assert (case.name, case.log, case.origin, case.source) == (
        "group/one",
        "crash.log",
        "public",
        "https://example.com/1",
    )
    assert (case.expect.resource, case.expect.status, case.expect.root_line) == ("shared_memory", "fatal", 2)
    assert case.expect.numbers == {"required_bytes": 81920, "limit_bytes": 65536}
    assert score_folder(tmp_path / "group").passed


def test_blessing_replaces_the_verdict_and_keeps_the_words(log: Path, tmp_path: Path) -> None:
    path = new_case(log, tmp_path / "one", source="here", origin="run")
    text = path.read_text(encoding="utf-8")
    text = text.replace('note = ""', 'note = "by hand"').replace("root_line = 2", "root_line = 1")
    path.write_text(text.replace('title = "', 'title = "My '), encoding="utf-8")
    assert bless_case(path) == path
    case = load_case(path)
    assert case.title.startswith("My ")
    assert (case.note, case.source, case.origin) == ("by hand", "here", "run")
    assert case.expect.root_line == 2


def test_blessing_twice_changes_nothing(log: Path, tmp_path: Path) -> None:
    path = new_case(log, tmp_path / "one", source="", origin="run")
    once = bless_case(path).read_bytes()
    assert bless_case(path).read_bytes() == once


def test_a_folder_that_is_there_is_left_alone(log: Path, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        new_case(log, tmp_path / "one", source="", origin="run")
    assert list((tmp_path / "one").iterdir()) == []


def test_an_origin_that_is_none_is_refused_before_anything_is_made(log: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="heard"):
        new_case(log, tmp_path / "one", source="", origin="heard")
    assert not (tmp_path / "one").exists()


def test_a_missing_log_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        new_case(tmp_path / "none.log", tmp_path / "one", source="", origin="run")
    assert not (tmp_path / "one").exists()


@given(title=st.text(st.characters(exclude_categories=["Cs"])), note=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_words_survive_in_a_label(title: str, note: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "words" / "case.toml"
    path.parent.mkdir(exist_ok=True)
    text = make._head(title, "run.log", "public", "", note) + make._label(said())
    path.write_text(text, encoding="utf-8", newline="")
    case = load_case(path)
    assert (case.title, case.note) == (title, note)


@given(
    numbers=st.dictionaries(
        st.sampled_from(["requested_bytes", "utilization", "pid"]),
        st.integers(-(2**63), 2**63 - 1) | st.floats(-1e18, 1e18),
    )
)
def test_any_figures_survive_in_a_label(
    numbers: dict[str, int | float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "figures" / "case.toml"
    path.parent.mkdir(exist_ok=True)
    text = make._head("t", "run.log", "public", "", "") + make._label(said(numbers=numbers))
    path.write_text(text, encoding="utf-8")
    assert load_case(path).expect.numbers == numbers
