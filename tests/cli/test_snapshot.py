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


def test_text_shows_the_steps_with_their_numbers(run: Run, oom: Path) -> None:
    done = run("snapshot", oom)
    assert (done.returncode, done.stderr) == (1, "")
    flat = " ".join(done.stdout.split())
    assert "2.00 GiB free + 16.00 GiB idle in 16 blocks, the largest of 1.00 GiB = 18.00 GiB" in flat


def test_the_picture_is_svg_on_its_own(run: Run, oom: Path, tmp_path: Path) -> None:
    done = run("snapshot", oom, "--format", "svg", "--output", tmp_path / "pools.svg")
    assert (done.returncode, done.stdout) == (1, "")
    assert ET.fromstring((tmp_path / "pools.svg").read_text()).tag.endswith("svg")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--request", "512MiB"], 0),
        (["--request", "4GiB", "--free", "2GiB"], 1),
        (["--request", "40GiB"], 3),
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


def test_analyze_points_to_the_verb(run: Run, oom: Path) -> None:
    line = complained(run("analyze", oom))
    assert f"oortriage snapshot {oom}" in line
