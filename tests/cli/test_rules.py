"""``oortriage rules``: list, show, lint, test, score."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from oortriage.evidence.loader import built_in_rules
from oortriage.evidence.reference import reference
from tests.cli.conftest import BOMB, CLEAN, MASKED, RULE, T4, Run, complained


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "my-rules"
    made.mkdir()
    (made / "ZZ900.toml").write_text(RULE, encoding="utf-8")
    return made


def test_the_list_has_every_rule_in_order_of_code(run: Run) -> None:
    done = run("rules", "list")
    assert (done.returncode, done.stderr) == (0, "")
    codes = [line.split()[0] for line in done.stdout.splitlines()]
    assert codes == sorted(rule.code for rule in built_in_rules())


def test_the_list_as_json_has_the_settings_rules_too(run: Run, folder: Path) -> None:
    (folder.parent / "oortriage.toml").write_text('rules = ["my-rules"]\n', encoding="utf-8")
    done = run("rules", "list", "--format", "json", cwd=folder.parent)
    by_code = {one["code"]: one for one in json.loads(done.stdout)}
    assert len(by_code) == len(built_in_rules()) + 1
    assert by_code["ZZ900"] == {
        "code": "ZZ900",
        "name": "gizmo-full",
        "role": "failure",
        "resource": "device_memory",
        "software": "gizmo",
        "title": "The gizmo is full",
    }


@pytest.mark.parametrize("verb", ["list", "score"])
def test_a_format_that_is_none_is_refused(run: Run, verb: str) -> None:
    where = [CLEAN.parent] if verb == "score" else []
    done = run("rules", verb, *where, "--format", "yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "yaml" in done.stderr


def test_a_rule_s_file_is_shown_as_it_is(run: Run, tmp_path: Path) -> None:
    """Also where the working folder has a file of that path."""
    (original,) = (Path(rule.path) for rule in built_in_rules() if rule.code == "SM101")
    look_alike = tmp_path / "rules" / original.parent.name / "SM101.toml"
    look_alike.parent.mkdir(parents=True)
    look_alike.write_text(RULE, encoding="utf-8")
    done = run("rules", "show", "SM101", cwd=tmp_path)
    assert done.returncode == 0
    assert 'code = "SM101"' in done.stdout
    assert "[[sample]]" in done.stdout


def test_the_reference_has_every_rule_in_a_table(run: Run) -> None:
    done = run("rules", "reference")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == reference(built_in_rules())
    codes = re.findall(r"(?m)^\| ([A-Z]{2,4}\d{3}) \|", done.stdout)
    assert sorted(codes) == sorted(rule.code for rule in built_in_rules())


def test_an_unknown_code_is_one_line_and_two(run: Run) -> None:
    assert "'ZZ999'" in complained(run("rules", "show", "ZZ999"))


def test_lint_passes_a_good_rule_and_tells_each_fault_of_a_bad_one(run: Run, folder: Path) -> None:
    done = run("rules", "lint", folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "no problems\n", "")
    path = folder / "ZZ900.toml"
    path.write_text(RULE.replace("is full", "is full.").replace('sources = ["gizmo 1.0: gizmo.py"]\n', ""), "utf-8")
    done = run("rules", "lint", folder)
    assert done.returncode == 2
    assert [line.split(": ")[0] for line in done.stdout.splitlines()] == [f"{path}:3", f"{path}:1"]
    assert done.stderr == "oortriage: 2 problem(s)\n"


def test_test_runs_the_samples_of_a_folder(run: Run, folder: Path) -> None:
    done = run("rules", "test", folder)
    assert (done.returncode, done.stdout) == (0, "1 samples of 1 rules passed\n")
    (folder / "ZZ900.toml").write_text(RULE.replace("requested_bytes = 300", "requested_bytes = 301"), "utf-8")
    done = run("rules", "test", folder)
    assert done.returncode == 2
    assert re.match(r"ZZ900: sample 1: requested_bytes is 300, should be 301\n", done.stdout)
    assert "Traceback" not in done.stderr


def test_test_ends_also_on_a_rule_that_never_would(run: Run, folder: Path) -> None:
    """Whoever writes a rule meets its bomb here first."""
    (folder / "ZZ901.toml").write_text(BOMB, encoding="utf-8")
    done = run("rules", "test", folder, timeout=20)
    assert done.returncode == 2
    assert "ZZ901: the expression took too long" in done.stdout


def test_test_tells_an_expression_that_cannot_be_used(run: Run, folder: Path) -> None:
    """A space in a look-behind: either it works, or one line says that it cannot."""
    (folder / "ZZ900.toml").write_text(RULE.replace("'''gizmo", "'''(?<!not )gizmo"), encoding="utf-8")
    done = run("rules", "test", folder)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 2)
    assert (done.returncode == 0) == done.stdout.endswith("passed\n")


def test_score_tells_right_from_wrong(run: Run, tmp_path: Path) -> None:
    for name, log, resource in (
        ("a", T4, "shared_memory"),
        ("b", CLEAN, "none"),
        ("c", MASKED, "kv_cache"),
    ):
        case = tmp_path / "cases" / name
        case.mkdir(parents=True)
        (case / "log.txt").write_bytes(log.read_bytes())
        status = "unknown" if resource == "none" else "fatal"
        (case / "case.toml").write_text(
            f'title = "x"\nlog = "log.txt"\norigin = "public"\n[expect]\nresource = "{resource}"\nstatus = "{status}"\n',
            encoding="utf-8",
        )
    done = run("rules", "score", tmp_path / "cases", "--format", "json")
    table = json.loads(done.stdout)
    assert done.returncode == 1
    assert table["cases"] == 3
    assert table["resource_accuracy"] == pytest.approx(2 / 3)
    assert table["false_shared_memory"] == table["false_alarms"] == []
    assert table["problems"] == {"cases/c": ["resource undetermined, should be kv_cache"]}
