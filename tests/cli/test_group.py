"""``oortriage group``: folders in, groups out, in every format; exit codes; Ctrl-C."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import jsonschema
import pytest

from oortriage.report.groups import groups_schema
from tests.cli.conftest import CLEAN, MASKED, T4, Run, command, complained


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three of one failure, one of a doubt, one clean."""
    folder = tmp_path_factory.mktemp("logs")
    for name, source in (("a", T4), ("b", T4), ("c", T4), ("d", MASKED), ("e", CLEAN)):
        (folder / f"{name}.log").write_bytes(source.read_bytes())
    return folder


def test_text_says_how_many_and_shows_the_proof(run: Run, logs: Path) -> None:
    done = run("group", logs)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("5 logs, 2 groups of failures; 1 without a resource failure\n")
    assert "1. 3 logs  shared memory of one block (on the chip): dtype width [SM101]" in done.stdout
    assert f"{logs}/a.log:97" in done.stdout
    assert "required 81,920 B" in done.stdout
    assert "Tesla T4 (3)" in done.stdout
    assert "v1-4179a256e6a5" in done.stdout


def test_json_keeps_its_schema_and_names_every_log(run: Run, logs: Path) -> None:
    table = json.loads(run("group", logs, "--format", "json").stdout)
    jsonschema.validate(table, groups_schema())
    assert (table["logs"], table["failed"], table["interrupted"]) == (5, [], False)
    assert [(one["logs"], one["exit_code"]) for one in table["groups"]] == [(3, 1), (1, 3), (1, 0)]
    assert table["groups"][0]["files"] == [f"{logs}/{name}.log" for name in "abc"]
    assert table["groups"][0]["first_seen"]["basis"] == "log_without_year"


def test_jsonl_has_one_object_a_line(run: Run, logs: Path) -> None:
    done = run("group", logs, logs / "missing.log", "--format", "jsonl")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["kind"] for row in rows] == ["run", "group", "group", "group", "failed"]
    assert done.returncode == 2
    assert done.stderr == f"oortriage: {logs}/missing.log: no such file\n"


def test_csv_has_one_row_a_group(run: Run, logs: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run("group", logs, "-f", "csv").stdout)))
    assert [row["logs"] for row in rows] == ["3", "1", "1"]
    assert (rows[0]["required_bytes_least"], rows[0]["limit_bytes_most"]) == ("81920", "65536")
    assert rows[0]["gpus"] == "Tesla T4 (3)"


def test_markdown_and_reports(run: Run, logs: Path, tmp_path: Path) -> None:
    """A report a group of failures; what is no failure has none."""
    done = run("group", logs, "-f", "markdown", "-o", tmp_path / "groups.md", "--reports", tmp_path / "reports")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    assert "| 1 | 3 | shared memory" in (tmp_path / "groups.md").read_text(encoding="utf-8")
    names = sorted(path.name for path in (tmp_path / "reports").iterdir())
    assert len(names) == 2
    assert "shared_memory-dtype_width-v1-4179a256e6a5.md" in names
    text = (tmp_path / "reports" / "shared_memory-dtype_width-v1-4179a256e6a5.md").read_text(encoding="utf-8")
    assert "- logs: 3" in text
    assert "81,920" in text


@pytest.mark.parametrize(("by", "groups"), [("cause", 3), ("resource", 3), ("code", 3)])
def test_groups_by_less(run: Run, logs: Path, by: str, groups: int) -> None:
    table = json.loads(run("group", logs, "--by", by, "-f", "json").stdout)
    assert (table["by"], len(table["groups"])) == (by, groups)


def test_exit_codes(run: Run, logs: Path, tmp_path: Path) -> None:
    assert run("group", logs / "e.log").returncode == 0
    assert run("group", logs / "d.log").returncode == 3
    assert run("group", logs, "--exit-zero").returncode == 0
    assert run("group", logs, tmp_path / "missing.log", "--exit-zero").returncode == 2
    assert "no logs" in complained(run("group", tmp_path))


def test_standard_input_is_one_log(run: Run) -> None:
    done = run("group", "-", stdin=T4.read_bytes())
    assert done.returncode == 1
    assert "<stdin>:97" in done.stdout


def test_nothing_of_a_log_acts(run: Run, tmp_path: Path) -> None:
    """Neither a terminal, a spreadsheet nor a page takes orders from a log or from a file's name."""
    name = "=cmd()\x1b[31m|@team.log"
    (tmp_path / name).write_text(
        "\x1b[2J=1+1 CUDA out of memory. Tried to allocate 2.00 GiB @team #1", encoding="utf-8"
    )
    for kind in ("text", "csv", "markdown"):
        shown = run("group", name, "-f", kind, cwd=tmp_path).stdout
        assert "\x1b" not in shown
        assert not re.search(r"(?:^|,|\")=", shown, re.MULTILINE)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupt_prints_what_is_there(environment: dict[str, str], tmp_path: Path) -> None:
    """A pipe that nobody fills stalls a reader; the other log is there when Ctrl-C comes."""
    (tmp_path / "a.log").write_bytes(T4.read_bytes())
    os.mkfifo(tmp_path / "b.fifo")
    asked = command(["group", tmp_path / "a.log", tmp_path / "b.fifo", "-f", "json", "--jobs", "2"])
    with subprocess.Popen(
        asked, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as going:
        time.sleep(8)
        going.send_signal(signal.SIGINT)
        out, err = going.communicate(timeout=30)
    assert going.returncode == 130
    assert err.decode() == "oortriage: interrupted: not all logs were read\n"
    table = json.loads(out)
    assert table["interrupted"]
    assert [one["resource"] for one in table["groups"]] == ["shared_memory"]


@pytest.mark.skipif(os.name == "nt", reason="pipes with names")
def test_a_log_that_stalls_is_listed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(T4.read_bytes())
    os.mkfifo(tmp_path / "b.fifo")
    done = run("group", tmp_path / "a.log", tmp_path / "b.fifo", "--timeout", "3", "--jobs", "1")
    assert done.returncode == 2
    assert "b.fifo: reading it took longer than 3 seconds" in done.stderr
    assert "1. 1 log  shared memory" in done.stdout
