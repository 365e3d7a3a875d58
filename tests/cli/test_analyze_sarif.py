"""``analyze --format sarif`` as a user has it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import RULE, T4, Run


def test_a_log_s_sarif_names_it_relative_to_the_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "my logs").mkdir()
    (tmp_path / "my logs" / "run.log").write_bytes(T4.read_bytes())
    done = run("analyze", "my logs", "--format", "sarif", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    (result,) = json.loads(done.stdout)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "my%20logs/run.log", "uriBaseId": "%SRCROOT%"}


def test_a_missing_log_is_an_unsuccessful_run_with_the_others_results(run: Run, tmp_path: Path) -> None:
    done = run("analyze", T4, "gone.log", "--format", "sarif", "--output", tmp_path / "all.sarif")
    assert done.returncode == 2
    (table,) = json.loads((tmp_path / "all.sarif").read_text())["runs"]
    assert len(table["results"]) == 1
    assert table["invocations"][0]["executionSuccessful"] is False
    assert "gone.log" in table["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_rules_of_a_folder_are_described(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "ZZ900.toml").write_text(RULE, encoding="utf-8")
    done = run("analyze", "-", "--format", "sarif", "--rules", tmp_path / "rules", stdin="gizmo overflow: 5 bytes\n")
    (rule,) = json.loads(done.stdout)["runs"][0]["tool"]["driver"]["rules"]
    assert (rule["id"], rule["name"]) == ("ZZ900", "gizmo-full")
