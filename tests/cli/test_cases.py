"""``oortriage cases``: new, diff, bless."""

from __future__ import annotations

from pathlib import Path

from oortriage.scoring.case import load_case
from tests.cli.conftest import T4, Run, complained


def test_a_case_is_made_compared_corrected_and_blessed(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "group" / "t4"
    done = run("cases", "new", T4, folder, "--source", "https://example.com/1", "--origin", "run")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{folder / 'case.toml'}\n", "")
    assert (folder / "log.txt").read_bytes() == T4.read_bytes()
    label = folder / "case.toml"
    case = load_case(label)
    assert (case.origin, case.source, case.log) == ("run", "https://example.com/1", "log.txt")
    assert (case.expect.resource, case.expect.root_line) == ("shared_memory", 97)
    assert case.expect.numbers == {"required_bytes": 81920, "limit_bytes": 65536}

    done = run("cases", "diff", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    wrong = label.read_text(encoding="utf-8").replace("root_line = 97", "root_line = 96")
    label.write_text(wrong.replace('note = ""', 'note = "kept"'), encoding="utf-8")
    done = run("cases", "diff", tmp_path)
    assert (done.returncode, done.stdout) == (1, "group/t4\n    root line 97, should be 96\n")

    done = run("cases", "bless", folder)
    assert (done.returncode, done.stdout) == (0, f"{label}\n")
    case = load_case(label)
    assert (case.expect.root_line, case.note, case.source) == (97, "kept", "https://example.com/1")


def test_a_folder_that_is_there_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    assert "exists already" in complained(run("cases", "new", T4, tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_is_missing_leaves_no_folder_behind(run: Run, tmp_path: Path) -> None:
    assert "no such file" in complained(run("cases", "new", tmp_path / "none.log", tmp_path / "case"))
    assert list(tmp_path.iterdir()) == []


def test_only_one_case_is_blessed_at_a_time(run: Run, tmp_path: Path) -> None:
    assert "not a case" in complained(run("cases", "bless", tmp_path))
