"""``oortriage snapshot`` end to end: codes, formats, hostile files, and the pointer from analyze."""

from __future__ import annotations

import json
import pickle
import xml.etree.ElementTree as ET
from pathlib import Path

import jsonschema
import pytest

from oortriage.report.snapshot import snapshot_schema
from tests.cli.conftest import Run, complained
from tests.snapshot import allocator


@pytest.fixture(scope="module")
def oom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("snapshots") / "oom.pickle"
    path.write_bytes(allocator.fragmentation().pickle())
    return path


def test_a_failure_is_found_and_its_report_fits_the_schema(run: Run, oom: Path) -> None:
    done = run("snapshot", oom, "--format", "json")
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    jsonschema.validate(found, snapshot_schema())
    assert (found["schema_version"], found["devices"][0]["verdict"]["cause"]) == (1, "fragmentation")


def test_text_and_markdown_show_the_steps_with_their_numbers(run: Run, oom: Path) -> None:
    for form in ("text", "markdown"):
        done = run("snapshot", oom, "--format", form)
        assert (done.returncode, done.stderr) == (1, "")
        flat = " ".join(done.stdout.replace("\\", "").split())
        assert "2.00 GiB free + 16.00 GiB idle in 16 blocks, the largest of 1.00 GiB = 18.00 GiB" in flat
        assert "expandable" in flat


def test_the_picture_is_svg_on_its_own(run: Run, oom: Path) -> None:
    done = run("snapshot", oom, "--format", "svg")
    assert done.returncode == 1
    assert ET.fromstring(done.stdout).tag.endswith("svg")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--request", "512MiB"], 0),
        (["--request", "4GiB", "--free", "2GiB"], 1),
        (["--request", "4GiB", "--free", "5GiB"], 0),
        (["--request", "40GiB"], 3),
        (["--request", "4GiB", "--device", "7"], 2),
        (["--request", "many"], 2),
        (["--free", "1e300GiB"], 2),
    ],
)
def test_questions_about_requests(run: Run, oom: Path, arguments: list[str], code: int) -> None:
    done = run("snapshot", oom, *arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


def test_a_pickle_that_would_run_a_command_is_refused(run: Run, tmp_path: Path) -> None:
    class Acts:
        def __reduce__(self):
            return exec, (f"open({str(tmp_path / 'ran')!r}, 'w')",)

    path = tmp_path / "evil.pickle"
    path.write_bytes(pickle.dumps({"segments": Acts()}))
    assert "it names builtins.exec" in complained(run("snapshot", path))
    assert not (tmp_path / "ran").exists()


def test_names_from_the_file_do_not_act_on_the_terminal_or_the_page(run: Run, tmp_path: Path) -> None:
    one = allocator.Allocator(allocator.GIB)
    one.malloc(600 * allocator.MIB, frames=[allocator.frame("\x1b[2Jx\n<b>@you|`.py", 1, "\u202ef<script>")])
    allocator.fails(one, 600 * allocator.MIB)
    path = tmp_path / "hostile.pickle"
    path.write_bytes(one.pickle())
    for form in ("text", "markdown", "svg"):
        done = run("snapshot", path, "--format", form)
        assert done.returncode == 1
        assert "\x1b" not in done.stdout
        assert "\u202e" not in done.stdout
        if form != "text":
            assert "<b>" not in done.stdout
            assert "<script>" not in done.stdout


def test_analyze_points_to_the_verb(run: Run, oom: Path) -> None:
    line = complained(run("analyze", oom))
    assert f"oortriage snapshot {oom}" in line


def test_schema(run: Run) -> None:
    assert json.loads(run("schema", "snapshot").stdout) == snapshot_schema()
    jsonschema.Draft202012Validator.check_schema(snapshot_schema())
