"""The patch verbs as a user has them, and their contract for scripts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import T4, Run, complained
from tests.cli.replaying import cache, replay, table, vllm
from tests.fix.real import real_tree
from tests.fix.test_source_patch import NAME, SMALL, made

__all__ = ["cache", "replay", "vllm"]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return made(tmp_path / "site").root


def said(done: subprocess.CompletedProcess[str], code: int = 0) -> Any:
    return table(done, code)


def test_apply_status_revert_by_script(run: Run, site: Path) -> None:
    where = ("--vllm-source", site, "--format", "json")
    assert said(run("patch", "status", *where))["state"] == "not_applied"
    dry = said(run("patch", "apply", "--rule", "tile16", "--dry-run", *where))
    assert (dry["action"], dry["changed"]) == ("would_apply", False)
    assert "+        return 16" in dry["diff"]
    assert (site / NAME).read_text() == SMALL
    assert said(run("patch", "apply", "--rule", "tile16", *where))["action"] == "applied"
    assert said(run("patch", "apply", "--rule", "tile16", *where))["changed"] is False
    assert said(run("patch", "status", *where))["rule"] == "tile16"
    assert said(run("patch", "revert", *where))["action"] == "reverted"
    assert (site / NAME).read_text() == SMALL


def test_text_says_where_the_original_is(run: Run, site: Path) -> None:
    done = run("patch", "apply", "--vllm-source", site)
    assert done.returncode == 0
    assert "triton_unified_attention.py.oortriage-original" in done.stdout
    assert "Patched with tile16" in run("patch", "status", "--vllm-source", site).stdout
    assert "byte for byte" in run("patch", "revert", "--vllm-source", site).stdout


def test_refusals_are_one_line(run: Run, site: Path, tmp_path: Path) -> None:
    (site / NAME).write_text(SMALL.replace("return 32\n    if", "return 16\n    if"))
    assert "patched by someone else" in complained(run("patch", "apply", "--vllm-source", site))
    status = said(run("patch", "status", "--vllm-source", site, "-f", "json"), 1)
    assert status["state"] == "refused"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no vLLM in there" in complained(run("patch", "status", "--vllm-source", empty))
    assert "no rule" in complained(run("patch", "apply", "--rule", "tile8", "--vllm-source", site))
    both = run("patch", "status", "--vllm-source", site, "--python", "python3")
    assert "give one" in complained(both)
    assert "cannot be run" in complained(run("patch", "status", "--python", tmp_path / "none"))


@pytest.mark.index
def test_a_plan_from_a_crash(vllm: Run) -> None:
    plan = said(vllm("patch", "plan", T4, "--no-table", "-f", "json"))
    assert (plan["matches"], plan["before_bytes"], plan["limit_bytes"]) == (True, 81_920, 65_536)
    assert [one["applies"] for one in plan["remedies"]] == [True, False, False, True, True]


@pytest.mark.index
def test_a_plan_says_which_condition_fails(vllm: Run) -> None:
    asked = ("--gpu", "A10", "--dtype", "float16", "--head-size", "256", "--vllm", "0.17.1", "--no-table")
    plan = said(vllm("patch", "plan", *asked, "-f", "json"), 1)
    assert [one.split(" (")[0] for one in plan["failing"]] == [
        "compute capability 7.5",
        "queries of 4 bytes an element",
        "keys and values of 4 bytes an element",
    ]


def test_a_crash_of_another_kind_is_no_case_for_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "oom.log").write_text(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 14.58 GiB "
        "of which 1.06 GiB is free. Process 1 has 13.52 GiB memory in use.\n"
    )
    plan = said(run("patch", "plan", tmp_path / "oom.log", "-f", "json"), 1)
    assert "not a block's shared memory" in plan["failing"][0]


@pytest.mark.index
def test_verify_before_and_after(vllm: Run, tmp_path: Path) -> None:
    tree = real_tree("0.17.1", tmp_path)
    where = ("--vllm-source", tree, "--gpu", "T4", "--card", "off", "-f", "json")
    before = said(vllm("patch", "verify", *where), 1)
    assert [(one["name"], one["status"]) for one in before["layers"][:2]] == [("policy", "failed"), ("bytes", "failed")]
    assert (before["verified"], before["applied"]) == (False, False)
    assert vllm("patch", "apply", "--vllm-source", tree).returncode == 0
    after = said(vllm("patch", "verify", *where))
    assert [(one["name"], one["status"]) for one in after["layers"]] == [
        ("policy", "passed"),
        ("bytes", "passed"),
        ("kernel", "not_run"),
        ("engine", "not_run"),
        ("cost", "not_run"),
    ]
    assert "81,920 before, 49,152 after" in after["layers"][1]["detail"]
    assert "168 registers" in after["layers"][4]["detail"]
    changed = [row for row in after["impact"] if row["before_bytes"] != row["after_bytes"]]
    assert {(row["dtype"], row["head_size"]) for row in changed} == {("float32", 256)}
    assert json.loads(vllm("patch", "status", "--vllm-source", tree, "-f", "json").stdout)["state"] == "applied"


@pytest.mark.index
@pytest.mark.parametrize("rule", ["tile16", "tile16-full"])
def test_an_export_applies_and_its_test_is_python(run: Run, tmp_path: Path, rule: str) -> None:
    tree = real_tree("0.33.0", tmp_path / "tree")
    done = run("patch", "export", "--vllm-source", tree, "--rule", rule, "--no-verify", "--to", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    diff = (tmp_path / "out" / "tile-policy.diff").read_text()
    assert "oortriage" not in diff
    applied = subprocess.run(["patch", "-p1"], cwd=tree, input=diff, text=True, capture_output=True, check=False)
    assert applied.returncode == 0, applied.stdout
    (test,) = (tmp_path / "out").glob("test_*.py")
    compile(test.read_text(), "test", "exec")
    text = (tmp_path / "out" / "pull-request.md").read_text()
    assert "## Not verified" in text
    assert "accepted" not in text
