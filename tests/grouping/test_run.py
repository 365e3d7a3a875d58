"""From folders to groups, in this process: every fixture, every number of jobs, and inputs of every bad kind."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import msgspec
import pytest

from oortriage.api import Analyzer
from oortriage.grouping import run
from oortriage.grouping.inputs import find_inputs
from oortriage.grouping.pool import PoolError
from oortriage.grouping.run import group
from oortriage.grouping.worker import Answer
from oortriage.triage.groups import Groups
from tests.conftest import ROOT

T4 = ROOT / "fixtures" / "triton" / "vllm-36802-t4-fp32-head256" / "log.txt"
TRITON = ROOT / "fixtures" / "triton"


@pytest.fixture(scope="module")
def whole() -> Groups:
    return group([TRITON], jobs=2)


def test_each_fixture_is_in_exactly_one_group_by_its_fingerprint(whole: Groups, analyzer: Analyzer) -> None:
    files = find_inputs([TRITON], lambda file, reason: pytest.fail(f"{file}: {reason}"))
    held = {file: one.fingerprint for one in whole.groups for file in one.files}
    assert sum(len(one.files) for one in whole.groups) == whole.logs == len(files) > 20
    assert held == {file: analyzer.file(file).fingerprint for file in files}
    assert len({one.fingerprint for one in whole.groups}) == len(whole.groups)


def test_the_number_of_jobs_changes_nothing(whole: Groups) -> None:
    assert group([TRITON], jobs=1) == whole


def test_bad_inputs_end_nothing(tmp_path: Path) -> None:
    (tmp_path / "good.log").write_bytes(T4.read_bytes())
    (tmp_path / "binary.log").write_bytes(os.urandom(4096) + b"\0" * 4096)
    (tmp_path / "empty.log").write_bytes(b"")
    (tmp_path / "cut.log.gz").write_bytes(gzip.compress(T4.read_bytes())[:-400])
    (tmp_path / "no.log.gz").write_bytes(b"\x1f\x8b nothing of the kind")
    (tmp_path / "gone.log").symlink_to(tmp_path / "nowhere")
    found = group([tmp_path, tmp_path / "missing.log"], jobs=2)
    assert [(Path(one.file).name, one.reason) for one in found.failed] == [
        ("gone.log", "a link that leads nowhere"),
        ("missing.log", "no such file"),
    ]
    assert found.logs == 5
    assert found.exit_code == 2
    (failure,) = [one for one in found.groups if "good.log" in "".join(one.files)]
    assert failure.resource == "shared_memory"
    assert failure.example.line == 97


def test_a_file_given_twice_counts_once(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(T4.read_bytes())
    found = group([tmp_path, tmp_path / "a.log"], jobs=1)
    assert (found.logs, found.groups[0].logs) == (1, 1)


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_a_name_may_be_any_bytes(tmp_path: Path) -> None:
    try:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\n.log")).write_bytes(T4.read_bytes())
    except OSError:
        pytest.skip("this file system takes no such name")
    found = group([tmp_path], jobs=1)
    assert (found.failed, found.groups[0].resource) == ([], "shared_memory")
    assert found.groups[0].example.file.endswith("\\xff\n.log")
    msgspec.json.encode(found)


def test_the_time_of_the_failure_is_the_logs_own(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(T4.read_bytes())
    os.utime(tmp_path / "a.log", (1_775_000_000, 1_775_000_000))  # 31 March 2026
    (one,) = group([tmp_path], jobs=1).groups
    assert (one.first_seen.time, one.first_seen.basis) == ("2026-03-11T09:18:55Z", "log_without_year")


def test_an_interrupt_keeps_what_is_there(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.log").write_bytes(T4.read_bytes())

    def interrupted(_done: int, _whole: int) -> None:
        raise KeyboardInterrupt

    found = group([tmp_path], jobs=1, progress=interrupted)
    assert found.interrupted
    assert found.logs == 1


def test_a_reader_that_dies_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying(run.Pool):
        def over(self, paths):
            yield from ((path, Answer(failed="its reader was killed by signal 9")) for path in paths)

    monkeypatch.setattr(run, "Pool", Dying)
    (tmp_path / "a.log").write_bytes(T4.read_bytes())
    found = group([tmp_path], jobs=1)
    assert [one.reason for one in found.failed] == ["its reader was killed by signal 9"]
    assert found.groups == []


def test_a_rule_that_is_not_valid_is_told(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "x.toml").write_text("code = 3", encoding="utf-8")
    (tmp_path / "a.log").write_text("fine\n", encoding="utf-8")
    with pytest.raises(PoolError, match=r"x\.toml"):
        group([tmp_path / "a.log"], jobs=1, rules=[tmp_path / "rules"])
