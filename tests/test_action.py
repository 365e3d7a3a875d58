"""The GitHub Action: every script of ``action.yml``, run as the runner would, on friendly and hostile input."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.cli.conftest import CLEAN, MASKED, T4, environment  # noqa: F401 (a fixture)
from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(shutil.which("bash") is None or sys.platform == "win32", reason="needs bash")

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
SCRIPTS = sorted((ROOT / "action").glob("*.sh"))
PAGE = ROOT / "docs" / "github-action.md"

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
HOSTILE = (
    "\"; touch pwned; \"\n`touch pwned`\n$(touch pwned)\n'; touch pwned; '\n"
    "::add-path::/evil\n::set-output name=resource::evil\n##[add-path]/evil\n$((a[$(touch pwned)]))\n"
    "${{ github.token }}\n%0A::error::x\n"
)

GH = """\
#!/usr/bin/env python3
import json, os, pathlib, sys
with open(os.environ["GH_CALLS"], "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
answers = json.loads(pathlib.Path(os.environ["GH_ANSWERS"]).read_text())
line = " ".join(sys.argv[1:])
for needle, answer in answers.items():
    if needle in line:
        sys.stdout.write(answer)
        sys.exit(0)
sys.stderr.write("HTTP 404\\n::add-path::/evil\\n")
sys.exit(1)
"""


class Runner:
    """As much of GitHub's runner as the action needs: expressions, files of outputs, a ``gh``."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.temp = folder / "temp"
        self.workspace = folder / "workspace"
        tools = folder / "tools"
        for one in (self.temp, self.workspace, tools):
            one.mkdir()
        (tools / "gh").write_text(GH)
        (tools / "gh").chmod(0o755)
        self.calls = folder / "calls"
        self.calls.touch()
        self.answers: dict[str, str] = {}
        self.outputs: dict[str, dict[str, str]] = {"install": {"bin": str(Path(sys.executable).parent)}}
        self.summary = folder / "summary"
        self.summary.touch()
        self.folder = folder
        self.env = {
            **env,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GH_CALLS": str(self.calls),
            "GH_ANSWERS": str(folder / "answers"),
        }
        self.inputs = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
        self.inputs |= {"repository": "octo/repo", "token": "s3cret", "comment-on": "7"}
        self.said = ""

    def value(self, text: str) -> str:
        return EXPRESSION.sub(lambda found: self._look_up(found.group(1)), text)

    def _look_up(self, name: str) -> str:
        if name == "github.action_path":
            return str(ROOT)
        kind, _, rest = name.partition(".")
        if kind == "inputs":
            return self.inputs[rest]
        step, _, output = rest.partition(".outputs.")
        assert kind == "steps", name
        return self.outputs.get(step, {}).get(output, "")

    def wants(self, step: dict[str, Any]) -> bool:
        checks = [check.split(" == ") for check in step.get("if", "").split(" && ") if check]
        return all(self._look_up(name) == value.strip("'") for name, value in checks)

    def step(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run one step as ``shell: bash`` does, and take its outputs."""
        (step,) = [one for one in STEPS if one["name"] == name]
        (self.folder / "answers").write_text(json.dumps(self.answers))
        script, output = self.folder / "script.sh", self.folder / "output"
        script.write_text(step["run"], encoding="utf-8")
        output.write_text("")
        env = {key: self.value(text) for key, text in step["env"].items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            env={**self.env, **env, "GITHUB_OUTPUT": str(output)},
            cwd=self.workspace, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        self.said += done.stdout + done.stderr
        if "id" in step:
            lines = output.read_text().splitlines()
            self.outputs[step["id"]] = dict(line.split("=", 1) for line in lines)
        return done

    def through(self, **inputs: str) -> dict[str, str]:
        """Gather and analyze; return the outputs of the action."""
        self.inputs |= {name.replace("_", "-"): value for name, value in inputs.items()}
        for name in ("Gather logs", "Analyze"):
            done = self.step(name)
            assert done.returncode == 0, done.stdout + done.stderr
        return {name: self.value(one["value"]) for name, one in ACTION["outputs"].items()}

    def files(self) -> set[str]:
        return {path.name for path in self.folder.rglob("*")}

    def fake_bin(self, name: str, code: int = 0, says: str = "") -> Path:
        """Put a program into ``bin`` that writes down its arguments."""
        folder = self.folder / "fake"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(
            f"#!{sys.executable}\nimport json, os, sys\n"
            f"open({str(folder / 'asked')!r}, 'a').write(json.dumps([*sys.argv[1:], os.getcwd()]) + '\\n')\n"
            f"print({says!r})\nsys.exit({code})\n"
        )
        (folder / name).chmod(0o755)
        return folder


@pytest.fixture
def runner(tmp_path: Path, environment: dict[str, str]) -> Runner:  # noqa: F811
    return Runner(tmp_path, environment)


def listed(runner: Runner) -> list[str]:
    return Path(runner.outputs["gather"]["list"]).read_text().split("\0")[:-1]


# What stands in the files


def test_it_is_an_action() -> None:
    folder = importlib.util.find_spec("check_jsonschema").submodule_search_locations[0]
    schemas = Path(folder) / "builtin_schemas" / "vendor"
    schema = json.loads((schemas / "github-actions.json").read_text(encoding="utf-8"))
    problems = jsonschema.Draft7Validator(schema).iter_errors(ACTION)
    assert [problem.message for problem in problems] == []


@pytest.mark.parametrize("step", [one for one in STEPS if "run" in one], ids=lambda one: one["name"])
def test_no_expression_stands_in_a_script(step: dict[str, Any]) -> None:
    assert "${{" not in step["run"]
    assert step["shell"] == "bash"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_neither_evaluate_nor_expect_expressions(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "${{" not in text
    assert not re.search(r"\beval\b|\bset -x\b|\bbash -c\b", text)
    assert "set -euo pipefail" in text
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0


def test_every_name_that_is_used_is_declared() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) <= set(ACTION["inputs"])
    assert set(re.findall(r"steps\.(\w+)\.", text)) <= {one["id"] for one in STEPS if "id" in one}


def test_every_script_s_variables_are_in_its_step() -> None:
    for step in STEPS:
        for name in re.findall(r"action/(\w+\.sh)", step.get("run", "")):
            head = (ROOT / "action" / name).read_text().split("set -euo")[0]
            wanted = set(re.findall(r"\b[A-Z][A-Z_]+\b", head.split("In:")[1].split("Out:")[0])) - {"GH_TOKEN"}
            assert wanted <= set(step["env"]), name


def test_the_page_shows_workflows_that_are_valid_and_inputs_that_exist() -> None:
    page = PAGE.read_text(encoding="utf-8")
    folder = importlib.util.find_spec("check_jsonschema").submodule_search_locations[0]
    path = Path(folder) / "builtin_schemas" / "vendor" / "github-workflows.json"
    validator = jsonschema.Draft7Validator(json.loads(path.read_text(encoding="utf-8")))
    examples = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert len(examples) >= 3
    for example in examples:
        workflow = yaml.safe_load(example)
        workflow = {"on" if key is True else key: value for key, value in workflow.items()}  # YAML 1.1 reads on as true
        assert [problem.message for problem in validator.iter_errors(workflow)] == []
        for job in workflow["jobs"].values():
            for step in job["steps"]:
                assert "${{" not in step.get("run", "")
                if "oortriage@" in step.get("uses", ""):
                    assert set(step["with"]) <= set(ACTION["inputs"])
    for name in (*ACTION["inputs"], *ACTION["outputs"]):
        assert f"`{name}`" in page


# The steps


def test_install_takes_the_action_s_own_files(runner: Runner) -> None:
    python = runner.fake_bin("python") / "python"
    runner.inputs["python"] = str(runner.folder / "maker")
    (runner.folder / "maker").write_text(
        f'#!/bin/sh\n[ "$1 $2" = "-m venv" ] && mkdir -p "$3/bin" && cp {python} "$3/bin"\n'
    )
    (runner.folder / "maker").chmod(0o755)
    done = runner.step("Install oortriage")
    assert done.returncode == 0, done.stderr
    assert runner.outputs["install"]["bin"] == str(runner.temp / "oortriage" / "venv" / "bin")
    (asked,) = (runner.folder / "fake" / "asked").read_text().splitlines()
    assert json.loads(asked)[:3] == ["-m", "pip", "install"]
    assert str(ROOT) in json.loads(asked)


def test_logs_by_path_glob_and_folder(runner: Runner) -> None:
    for name in ("a.log", "b c.log", "-f.log", "sub/d.log"):
        (runner.workspace / name).parent.mkdir(exist_ok=True)
        (runner.workspace / name).write_text("x\n")
    runner.inputs["logs"] = "*.log\r\n\nsub\nb c.log"
    assert runner.step("Gather logs").returncode == 0
    assert sorted(listed(runner)) == ["./-f.log", "a.log", "b c.log", "b c.log", "sub"]
    assert runner.outputs["gather"]["folder"] == str(runner.workspace)


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"logs": "a", "text": "b"},
        {"logs": "*.nothing"},
        {"job-id": "1; touch pwned"},
        {"issue": "$(touch pwned)"},
        {"run-id": "1\n2"},
        {"logs": "$(touch pwned)\n`touch pwned`\n; touch pwned"},
    ],
)
def test_input_that_makes_no_sense_is_refused(runner: Runner, inputs: dict[str, str]) -> None:
    runner.inputs |= inputs
    done = runner.step("Gather logs")
    assert done.returncode == 2
    assert done.stdout.startswith("::error::")
    assert len(done.stdout.splitlines()) == 1
    assert "pwned" not in runner.files()
    assert runner.calls.read_text() == ""


def test_a_log_of_the_workspace(runner: Runner) -> None:
    shutil.copyfile(T4, runner.workspace / "server run.log")
    outputs = runner.through(logs="*.log")
    assert (outputs["resource"], outputs["code"], outputs["status"]) == ("shared_memory", "SM101", "fatal")
    assert outputs["exit-code"] == "1"
    assert re.fullmatch(r"v1-[0-9a-f]{12}", outputs["fingerprint"])
    assert "81,920" in Path(outputs["report"]).read_text()
    assert "81,920" in runner.summary.read_text()
    assert json.loads(Path(outputs["diagnoses"]).read_text())["code"] == "SM101"
    (result,) = json.loads(Path(outputs["sarif"]).read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "server%20run.log"
    assert runner.said == ""


def test_what_others_can_read_is_redacted(runner: Runner) -> None:
    secret = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ12345678"
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77"
    (runner.workspace / "a.log").write_text(f"{line} GiB of which 1.00 GiB is free. HF_TOKEN={secret}\n")
    outputs = runner.through(logs="a.log")
    assert outputs["code"].startswith("DM")
    for path in (outputs["report"], outputs["sarif"], outputs["diagnoses"], runner.summary):
        text = Path(path).read_text()
        assert "token-1" in text
        assert secret not in text


def test_the_worst_of_several_logs_is_told_about_and_a_report_s_format_chosen(runner: Runner) -> None:
    for name, path in (("1.log", CLEAN), ("2.log", MASKED), ("3.log", T4)):
        shutil.copyfile(path, runner.workspace / name)
    outputs = runner.through(logs="?.log", format="jsonl", summary="false")
    assert (outputs["code"], outputs["exit-code"]) == ("SM101", "1")
    assert len(Path(outputs["report"]).read_text().splitlines()) == 3
    assert runner.summary.read_text() == ""
    assert Path(runner.outputs["analyze"]["worst"]).read_text() == "3.log"


def test_a_hostile_text_is_data(runner: Runner) -> None:
    """Nothing in it runs, none of it reaches the runner's eyes, and the verdict still stands."""
    line = (
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 81920, Hardware limit: 65536."
    )
    outputs = runner.through(text=f"{HOSTILE}{line} Reducing block sizes or `num_stages` may help.\n{HOSTILE}")
    assert (outputs["resource"], outputs["code"]) == ("shared_memory", "SM101")
    assert "pwned" not in runner.files()
    assert runner.said == ""
    assert set(runner.outputs["analyze"]) == {"resource", "code", "status", "fingerprint", "exit-code", "report",
                                              "diagnoses", "sarif", "worst"}  # fmt: skip


def test_an_issue_s_body_is_data(runner: Runner) -> None:
    runner.answers["issue view 12"] = HOSTILE + T4.read_text()
    outputs = runner.through(issue="12")
    assert outputs["code"] == "SM101"
    assert "pwned" not in runner.files()
    assert runner.said == ""
    (call,) = runner.calls.read_text().splitlines()
    assert json.loads(call)[:5] == ["issue", "view", "12", "--repo", "octo/repo"]


def test_the_failed_jobs_of_a_run_are_fetched(runner: Runner) -> None:
    prefixed = "".join(
        f"gpu (3.12)\tRun tests\t2026-01-02T03:04:05.1234567Z {line}\n" for line in T4.read_text().splitlines()
    )
    runner.answers = {"view 99 ": "11\n22\n", "--job 11 ": "a\tb\tnothing happened\n", "--job 22 ": prefixed}
    outputs = runner.through(run_id="99")
    assert listed(runner) == ["job-11.log", "job-22.log"]
    assert outputs["code"] == "SM101"
    facts = [json.loads(line) for line in Path(outputs["diagnoses"]).read_text().splitlines()][1]["facts"]
    assert facts["triton_version"]["value"] == "3.6.0"  # lost when the names of job and step stay
    assert runner.said == ""


def test_a_job_that_cannot_be_fetched_is_told_in_one_line(runner: Runner) -> None:
    runner.inputs["job-id"] = "5"
    done = runner.step("Gather logs")
    assert done.returncode == 2
    assert done.stdout == "::error::the log of job 5 cannot be fetched: HTTP 404\n"
    assert done.stderr == ""


def test_a_log_that_cannot_be_read_is_told_without_its_odd_characters(runner: Runner) -> None:
    (runner.workspace / "##[add-path]x").write_text("x")
    runner.inputs["logs"] = "##*"
    assert runner.step("Gather logs").returncode == 0
    (runner.workspace / "##[add-path]x").unlink()
    done = runner.step("Analyze")
    assert done.returncode == 2
    assert done.stdout.startswith("::error::")
    assert "##[" not in done.stdout + done.stderr


def test_a_format_that_is_none_is_refused(runner: Runner) -> None:
    runner.inputs |= {"text": "x", "format": "../x"}
    assert runner.step("Gather logs").returncode == 0
    assert runner.step("Analyze").returncode == 2


def test_the_comment_is_the_report_of_the_worst_log(runner: Runner) -> None:
    (runner.folder / "worst").write_text("job 22.log")
    runner.outputs |= {
        "install": {"bin": str(runner.fake_bin("oortriage", 1, "::add-path::/evil"))},
        "gather": {"folder": str(runner.workspace)},
        "analyze": {"worst": str(runner.folder / "worst")},
    }
    done = runner.step("Comment")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (asked,) = (runner.folder / "fake" / "asked").read_text().splitlines()
    wanted = ["report", "--post", "octo/repo#7", "--yes", "--", "job 22.log", str(runner.workspace)]
    assert json.loads(asked) == wanted
    runner.fake_bin("oortriage", 2, "::add-path::/evil ##[x]")
    assert runner.step("Comment").stdout == "::error::the comment was not posted: ::add-path::/evil x\n"
    runner.inputs["comment-on"] = "1 --yes"
    assert runner.step("Comment").returncode == 2


@pytest.mark.parametrize(
    ("comment", "code", "wanted"),
    [("true", "1", True), ("true", "0", False), ("true", "3", False), ("false", "1", False)],
)
def test_a_comment_is_made_only_where_it_was_asked_for_and_something_was_found(
    runner: Runner, comment: str, code: str, wanted: bool
) -> None:
    (step,) = [one for one in STEPS if one["name"] == "Comment"]
    runner.inputs["comment"] = comment
    runner.outputs["analyze"] = {"exit-code": code}
    assert runner.wants(step) is wanted


@pytest.mark.parametrize(
    ("fail_on", "code", "ends"),
    [
        ("never", "1", 0), ("never", "3", 0), ("found", "0", 0), ("found", "1", 1), ("found", "3", 0),
        ("undetermined", "0", 0), ("undetermined", "1", 1), ("undetermined", "3", 1), ("often", "1", 2),
    ],
)  # fmt: skip
def test_the_judge(runner: Runner, fail_on: str, code: str, ends: int) -> None:
    runner.inputs["fail-on"] = fail_on
    runner.outputs["analyze"] = {"exit-code": code, "resource": "shared_memory"}
    assert runner.step("Judge").returncode == ends


def test_a_long_summary_is_cut_at_a_line_and_its_fence_closed() -> None:
    spec = importlib.util.spec_from_file_location("outputs", ROOT / "action" / "outputs.py")
    outputs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(outputs)
    cut = outputs.cut_lines("head\n````text\n" + "é```\n" * 100 + "````\n", 200)
    assert cut.startswith("head\n````text\né```\n")
    assert cut.count("````") == 2
    assert cut.endswith("all of it.\n")
    assert outputs.cut_lines("short", 200) == "short"
