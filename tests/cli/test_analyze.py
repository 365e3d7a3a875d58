"""``oortriage analyze`` end to end: codes, inputs, formats, output, colours, rules, settings."""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from pathlib import Path

import jsonschema
import pytest

from oortriage.report.json import schema
from tests.cli.conftest import BOMB, CLEAN, FUSE, MASKED, RULE, T4, Run, complained

COLOR = re.compile(r"\x1b\[(?:\d+;)*3[0-7]m")


# Exit codes.


@pytest.mark.parametrize(
    ("log", "resource", "code"),
    [(CLEAN, "none", 0), (T4, "shared_memory", 1), (MASKED, "undetermined", 3)],
    ids=["clean", "found", "masked"],
)
def test_the_exit_code_is_the_verdict(run: Run, log: Path, resource: str, code: int) -> None:
    done = run("analyze", log, "--format", "json")
    table = json.loads(done.stdout)
    assert (table["resource"], done.returncode, done.stderr) == (resource, code, "")
    jsonschema.Draft202012Validator(schema()).validate(table)
    assert table["file"] == str(log)


def test_exit_zero_hides_what_was_found_and_what_was_not(run: Run) -> None:
    done = run("analyze", "--exit-zero", "--format", "jsonl", T4, MASKED)
    resources = [json.loads(line)["resource"] for line in done.stdout.splitlines()]
    assert (resources, done.returncode) == (["shared_memory", "undetermined"], 0)


def test_an_unreadable_input_wins_over_exit_zero_and_the_rest_is_done(run: Run, tmp_path: Path) -> None:
    missing = tmp_path / "missing.log"
    done = run("analyze", "--exit-zero", "--format", "jsonl", T4, missing, CLEAN)
    assert done.returncode == 2
    assert [json.loads(line)["file"] for line in done.stdout.splitlines()] == [str(T4), str(CLEAN)]
    assert done.stderr == f"oortriage: {missing}: no such file\n"


# Inputs.


def test_a_missing_file_is_one_line_and_two(run: Run) -> None:
    assert complained(run("analyze", "missing.log")) == "oortriage: missing.log: no such file"


def test_standard_input(run: Run) -> None:
    done = run("analyze", "-", "--format", "json", stdin=T4.read_bytes())
    table = json.loads(done.stdout)
    assert done.returncode == 1
    assert table["numbers"] == {"required_bytes": 81920, "limit_bytes": 65536}
    assert {table["file"], *(one["file"] for one in table["evidence"])} == {"<stdin>"}
    assert table["evidence"][0]["line"] == 97


def test_odd_inputs_are_read_without_complaint(run: Run, tmp_path: Path) -> None:
    """An empty file, a binary one, a broken-off gzip and a folder name with spaces, in one go."""
    folder = tmp_path / "some logs"
    folder.mkdir()
    packed = gzip.compress(T4.read_bytes() + os.urandom(200_000), mtime=0)
    (folder / "binary.log").write_bytes(bytes(range(256)) * 4096)
    (folder / "empty.log").write_bytes(b"")
    (folder / "half.log.gz").write_bytes(packed[: len(packed) // 2])
    (folder / "whole.txt").write_bytes(gzip.compress(T4.read_bytes()))
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / ".hidden.log").write_bytes(T4.read_bytes())
    done = run("analyze", folder, "--format", "jsonl")
    tables = {Path(one["file"]).name: one for one in map(json.loads, done.stdout.splitlines())}
    assert (done.returncode, done.stderr) == (1, "")
    assert {name: one["resource"] for name, one in tables.items()} == {
        "binary.log": "none",
        "empty.log": "none",
        "half.log.gz": "shared_memory",
        "whole.txt": "shared_memory",
    }
    assert any("gzip data breaks off" in note for note in tables["half.log.gz"]["notes"])
    assert tables["whole.txt"]["notes"] == []
    assert list(tables) == sorted(tables)


def test_an_empty_file_by_itself_has_no_failure(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.log").write_bytes(b"")
    done = run("analyze", tmp_path / "empty.log")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("No resource ran out\n")


def test_a_folder_without_logs_is_one_line_and_two(run: Run, tmp_path: Path) -> None:
    assert "no logs in there" in complained(run("analyze", tmp_path))


# Formats and output.


def test_several_logs_are_an_array(run: Run) -> None:
    done = run("analyze", "-f", "json", CLEAN, MASKED)
    assert done.returncode == 3
    assert [one["resource"] for one in json.loads(done.stdout)] == ["none", "undetermined"]


@pytest.mark.parametrize("beside", [[], ["missing.log"]], ids=["alone", "with one that is missing"])
def test_a_folder_is_an_array_also_with_one_log_in_it(run: Run, tmp_path: Path, beside: list[str]) -> None:
    """A script must not have to know how many logs there were."""
    (tmp_path / "only.log").write_bytes(CLEAN.read_bytes())
    done = run("analyze", "-f", "json", tmp_path, *beside)
    assert [one["resource"] for one in json.loads(done.stdout)] == ["none"]


def test_a_log_beside_one_that_is_missing_is_an_array(run: Run) -> None:
    done = run("analyze", "-f", "json", CLEAN, "missing.log")
    assert done.returncode == 2
    assert [one["resource"] for one in json.loads(done.stdout)] == ["none"]


def test_output_goes_to_the_file_and_nowhere_else(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "report.md"
    done = run("analyze", T4, "--format", "markdown", "--output", target)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    page = target.read_text(encoding="utf-8")
    assert page.startswith("## Shared memory of one block (on the chip)")
    assert "Required: 81920, Hardware limit: 65536" in page


def test_output_that_cannot_be_written_is_one_line_and_two(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "no" / "such" / "folder.txt"
    assert str(target) in complained(run("analyze", CLEAN, "--output", target))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_finds_no_room_is_one_line_and_two(run: Run) -> None:
    assert "/dev/full: cannot be written" in complained(run("analyze", CLEAN, "--output", "/dev/full"))


@pytest.mark.skipif(sys.platform != "linux", reason="only there a name can be any bytes")
def test_a_file_name_that_is_no_text_can_be_reported(run: Run, tmp_path: Path) -> None:
    log = os.fsencode(tmp_path) + b"/bad\xff.log"
    Path(os.fsdecode(log)).write_bytes(T4.read_bytes())
    target = tmp_path / "report.txt"
    done = run("analyze", os.fsdecode(log), "--output", target)
    assert (done.returncode, done.stderr) == (1, "")
    assert "81,920" in target.read_text(encoding="utf-8")


def test_text_is_plain_in_a_pipe_and_at_most_80_wide(run: Run) -> None:
    done = run("analyze", T4)
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


# Colours.


@pytest.mark.parametrize(
    ("env", "colored"),
    [({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
    ids=["forced", "both"],
)
def test_colours_are_as_the_variables_say(run: Run, env: dict[str, str], colored: bool) -> None:
    """NO_COLOR says more than FORCE_COLOR."""
    assert bool(COLOR.search(run("analyze", CLEAN, env=env).stdout)) is colored


def test_the_option_says_more_than_the_variables(run: Run) -> None:
    wanted = run("analyze", CLEAN, "--color", "always", env={"NO_COLOR": "1"})
    assert COLOR.search(wanted.stdout)
    unwanted = run("analyze", CLEAN, "--color", "never", env={"FORCE_COLOR": "1"})
    assert "\x1b" not in unwanted.stdout


# Rules of one's own.


@pytest.fixture
def gizmo(tmp_path: Path) -> Path:
    """A folder with a rule and a log that only this rule knows."""
    (tmp_path / "my-rules").mkdir()
    (tmp_path / "my-rules" / "ZZ900.toml").write_text(RULE, encoding="utf-8")
    (tmp_path / "crash.log").write_text("start\nERROR gizmo overflow: 300 bytes\n", encoding="utf-8")
    return tmp_path


def test_a_rule_of_one_s_own_finds_its_failure(run: Run, gizmo: Path) -> None:
    done = run("analyze", "crash.log", "--format", "json", "--rules", "my-rules", cwd=gizmo)
    table = json.loads(done.stdout)
    assert done.returncode == 1
    assert (table["code"], table["resource"], table["numbers"]) == (
        "ZZ900",
        "device_memory",
        {"requested_bytes": 300},
    )
    assert table["evidence"][0]["line"] == 2
    assert run("analyze", "crash.log", cwd=gizmo).returncode == 0


def test_a_bad_rule_is_told_with_file_and_line(run: Run, gizmo: Path) -> None:
    path = gizmo / "my-rules" / "ZZ900.toml"
    path.write_text(RULE.replace('role = "failure"', 'role = "oops"'), encoding="utf-8")
    line = complained(run("analyze", "crash.log", "--rules", "my-rules", cwd=gizmo))
    assert line.startswith(f"oortriage: {Path('my-rules') / 'ZZ900.toml'}:4: ")
    assert "'oops'" in line


def test_a_missing_folder_of_rules_is_one_line_and_two(run: Run, gizmo: Path) -> None:
    assert "no such folder" in complained(run("analyze", "crash.log", "--rules", "none", cwd=gizmo))


def test_a_rule_that_never_ends_is_given_up_and_noted(run: Run, gizmo: Path) -> None:
    (gizmo / "my-rules" / "ZZ901.toml").write_text(BOMB, encoding="utf-8")
    (gizmo / "crash.log").write_text(FUSE + "ERROR gizmo overflow: 300 bytes\n", encoding="utf-8")
    done = run("analyze", "crash.log", "--rules", "my-rules", cwd=gizmo, timeout=30)
    assert done.returncode == 1
    assert "ZZ901" in done.stdout
    assert "took too long" in " ".join(done.stdout.split())


def test_a_changed_copy_of_a_shipped_rule_is_guarded_too(run: Run, tmp_path: Path) -> None:
    """Whoever works on the rules has them in ``rules/``, under the very paths of those that ship."""
    path = tmp_path / "rules" / "triton" / "SM101.toml"
    path.parent.mkdir(parents=True)
    path.write_text(BOMB.replace("ZZ901", "SM101"), encoding="utf-8")
    (tmp_path / "crash.log").write_text(FUSE, encoding="utf-8")
    done = run("analyze", "crash.log", "--rules", "rules", cwd=tmp_path, timeout=20)
    assert "took too long" in " ".join(done.stdout.split())


def test_a_captured_figure_without_end_makes_no_bad_json(run: Run, gizmo: Path) -> None:
    text = RULE.replace(r"(?P<requested_bytes>\d+)", r"(?P<utilization>\S+)")
    text = text.replace('captures = { requested_bytes = "bytes" }', 'captures = { utilization = "float" }')
    (gizmo / "my-rules" / "ZZ900.toml").write_text(text, encoding="utf-8")
    (gizmo / "crash.log").write_text("ERROR gizmo overflow: inf bytes\n", encoding="utf-8")
    done = run("analyze", "crash.log", "--format", "json", "--rules", "my-rules", cwd=gizmo)
    assert not re.search(r"\b(?:Infinity|NaN)\b", done.stdout)


# Settings.


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("oortriage.toml", 'rules = ["my-rules"]\nexit_zero = true\n'),
        ("pyproject.toml", '[project]\nname = "x"\n[tool.oortriage]\nrules = ["my-rules"]\nexit_zero = true\n'),
    ],
)
def test_settings_are_found_from_below(run: Run, gizmo: Path, name: str, text: str) -> None:
    (gizmo / name).write_text(text, encoding="utf-8")
    below = gizmo / "some" / "where"
    below.mkdir(parents=True)
    done = run("analyze", gizmo / "crash.log", "--format", "json", cwd=below)
    assert (json.loads(done.stdout)["code"], done.returncode, done.stderr) == ("ZZ900", 0, "")


def test_bad_settings_are_one_line_and_two(run: Run, gizmo: Path) -> None:
    (gizmo / "oortriage.toml").write_text("rule = []\n", encoding="utf-8")
    line = complained(run("analyze", "crash.log", cwd=gizmo))
    assert "oortriage.toml" in line
    assert "rule" in line


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "markdown", "html", "sarif"])
def test_redacted_in_every_format(run: Run, tmp_path: Path, form: str) -> None:
    secret = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ12345678"
    log = tmp_path / "crash.log"
    log.write_text(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 "
        f"GiB of which 1.00 GiB is free. HF_TOKEN={secret} /home/alice/serve.py\n"
    )
    assert secret in run("analyze", log, "--format", form).stdout
    done = run("analyze", log, "--format", form, "--redact")
    assert (done.returncode, done.stderr) == (1, "")
    assert secret not in done.stdout
    assert "alice" not in done.stdout.replace(str(tmp_path), "")
    assert "token-1" in done.stdout
