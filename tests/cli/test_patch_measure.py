"""``patch measure`` as a T4 owner has it: one command, a file to send, and exit codes for scripts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from oortriage import __version__
from oortriage.cli.app import app
from oortriage.kernels.source import SourceSpec
from oortriage.replay import compiler_env, live
from tests.cli.conftest import Run, complained
from tests.fix.costing import ENV, SOURCE, T4, StubCard, stub_card
from tests.fix.test_source_patch import NAME, SMALL, made

__all__ = ["stub_card"]
Put = Callable[..., StubCard]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Answer for the package index, and note what it was asked for."""
    from oortriage.kernels import source

    noted: list[tuple[str, str]] = []

    def find(library: str, version: str) -> SourceSpec:
        noted.append((library, version))
        return SOURCE

    monkeypatch.setattr(source, "find_source", find)
    monkeypatch.setattr(compiler_env, "compiler_env", lambda _version: ENV)
    return noted


def call(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["patch", "measure", *map(str, arguments)], catch_exceptions=False)


def test_one_command_for_a_t4_owner(stub_card: Put, asked: list[tuple[str, str]], tmp_path: Path) -> None:
    stub_card(T4)
    done = call("--vllm", "0.17.1", "--output", tmp_path / "t4.json", "--format", "json")
    assert done.exit_code == 0, done.output
    assert asked == [("vllm", "0.17.1")]
    text = (tmp_path / "t4.json").read_text()
    found = json.loads(text)
    assert (found["schema_version"], found["oortriage"], found["vllm"]) == (1, __version__, "0.17.1")
    assert (found["device"], found["mode"], found["open"]) == ("Tesla T4", "native", [])
    assert (len(found["rows"]), found["recommended"]) == (36 * 4, "tile16")
    assert str(tmp_path) not in text
    assert "attach t4.json to an issue" in done.stdout
    assert str(tmp_path) not in done.stdout


def test_text_by_default_and_json_alone_in_a_pipe(stub_card: Put, asked: list[tuple[str, str]]) -> None:
    stub_card()
    text = call("--vllm", "0.17.1")
    assert (text.exit_code, len(asked)) == (0, 1)
    assert "playing sm_75" in text.stdout
    assert "Geometric means" in text.stdout
    assert json.loads(call("--vllm", "0.17.1", "-f", "json").stdout)["mode"] == "emulated"


def test_a_candidate_that_fails_ends_with_1(stub_card: Put, asked: list[tuple[str, str]]) -> None:
    stub_card().change = lambda cell, result: (
        msgspec.structs.replace(result, status="failed") if cell.overrides == {"num_warps": 2} else result
    )
    done = call("--vllm", "0.17.1")
    assert (done.exit_code, len(asked)) == (1, 1)
    assert "PROBLEM: warps2" in done.stdout


@pytest.mark.usefixtures("asked")
def test_a_patched_tree_is_measured_as_it_was(stub_card: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from oortriage.fix.rules import find_rule
    from oortriage.fix.source_patch import apply

    monkeypatch.setenv("OORTRIAGE_CACHE", str(tmp_path / "cache"))
    stub = stub_card()
    tree = made(tmp_path / "site")
    apply(tree, find_rule("tile16"))
    assert (tree.root / NAME).read_text() != SMALL
    done = call("--vllm-source", tree.root, "-f", "json")
    assert done.exit_code == 0, done.output
    (job,) = stub.jobs
    assert job.source
    assert (Path(job.source.location) / NAME).read_text() == SMALL
    assert str(tmp_path) not in done.stdout


def test_two_places_are_one_too_many(run: Run, tmp_path: Path) -> None:
    line = complained(run("patch", "measure", "--vllm", "0.17.1", "--vllm-source", tmp_path))
    assert "leave out --vllm-source" in line


def test_without_a_card_it_is_one_line_and_2(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("triton")
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a card")
    site = made(tmp_path / "site").root
    out = tmp_path / "t4.json"
    line = complained(run("patch", "measure", "--vllm-source", site, "-o", out, timeout=live.CELL_SECONDS))
    assert "no device 0" in line
    assert not out.exists()
