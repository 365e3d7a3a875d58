"""Recordings: read back as written, bounded on disk, whole after a kill, and harmless whatever is in them."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.errors import InputError, UsageError
from oortriage.watch import loop
from oortriage.watch.recording import LEAST_BYTES, Recorder, Recording, older
from oortriage.watch.sample import DeviceMemory, EngineLoad, Header, ProcessMemory, Sample, Settings
from oortriage.watch.table_file import COLUMNS, TableFile
from oortriage.watch.watcher import Event, Watcher
from tests.watch.made import GIB, MIB, flat, leak, samples

LEAKY = list(samples({7: flat(GIB), 8: leak(41 * MIB)}, 14))


_DEFAULT = Settings()


def record(path: Path, given: list[Sample], limit: int = 64 * MIB, how: Settings = _DEFAULT) -> Watcher:
    recorder, watcher = Recorder(path, limit, how), Watcher(how)
    for sample in given:
        recorder.show(sample, watcher.feed(sample), watcher)
    recorder.close()
    return watcher


def replayed(path: Path) -> tuple[Watcher, Recording]:
    recording = Recording(path)
    watcher = Watcher(recording.header.settings)
    loop.replay(recording, watcher, [], loop.Stop())
    return watcher, recording


def test_a_replay_says_what_the_run_said(tmp_path: Path) -> None:
    how = Settings(min_growth_bytes=10 * MIB, window_s=500.0)
    live = record(tmp_path / "r.jsonl", LEAKY, how=how)
    again, recording = replayed(tmp_path / "r.jsonl")
    assert live.events
    assert again.events == live.events
    assert (again.samples, recording.bad_lines, recording.header.settings) == (len(LEAKY), 0, how)


def test_every_alarm_is_in_the_recording(tmp_path: Path) -> None:
    live = record(tmp_path / "r.jsonl", LEAKY)
    lines = [msgspec.json.decode(line) for line in (tmp_path / "r.jsonl").read_bytes().splitlines()]
    assert [one["code"] for one in lines if one["kind"] == "event"] == [one.code for one in live.events]


def test_the_disk_is_bounded_and_the_newest_samples_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, LEAKY * 1, limit=LEAST_BYTES)
    assert path.stat().st_size + older(path).stat().st_size <= LEAST_BYTES
    assert sorted(one.name for one in tmp_path.iterdir()) == ["r.jsonl", "r.jsonl.1"]
    kept = list(Recording(path).samples())
    assert kept == LEAKY[-len(kept) :]
    assert len(kept) > 50


def test_a_part_that_was_turned_over_reads_alone(tmp_path: Path) -> None:
    record(tmp_path / "r.jsonl", LEAKY, limit=LEAST_BYTES)
    older(tmp_path / "r.jsonl").unlink()
    assert list(Recording(tmp_path / "r.jsonl").samples())


def test_a_cut_line_costs_itself_alone_and_the_next_run_begins_on_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, LEAKY[:10])
    path.write_bytes(path.read_bytes()[:-20])
    recording = Recording(path)
    assert (len(list(recording.samples())), recording.bad_lines) == (9, 1)
    record(path, LEAKY[10:15])
    assert list(Recording(path).samples()) == LEAKY[10:15]


def test_a_second_run_in_the_same_file_is_the_one_that_is_replayed(tmp_path: Path) -> None:
    record(tmp_path / "r.jsonl", LEAKY[:10])
    record(tmp_path / "r.jsonl", LEAKY[20:25])
    assert list(Recording(tmp_path / "r.jsonl").samples()) == LEAKY[20:25]


@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff\xfe" * 100, b"{}\n[1]\nnull\n", b"{" * 5000, b'{"kind":"sample"}\n']
)
def test_what_is_no_recording_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(InputError, match="no recording"):
        Recording(tmp_path / "r")


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError):
            Recording(path)


HEAD = msgspec.json.encode(Header(1, "r", "0", Settings())) + b"\n"
NUMBERS = st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), st.none())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=60), st.tuples(NUMBERS, NUMBERS, NUMBERS)), max_size=30))
def test_hostile_lines_never_raise(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes | tuple]) -> None:
    path = tmp_path_factory.mktemp("r") / "r"
    with path.open("wb") as file:
        file.write(HEAD)
        for line in lines:
            if not isinstance(line, bytes):
                when, size, pid = line
                item = {"kind": "sample", "time_s": when, "devices": [
                    {"label": "0", "used_bytes": size, "total_bytes": size, "processes": [{"pid": pid, "used_bytes": size}]}
                ]}  # fmt: skip
                line = msgspec.json.encode(item)  # noqa: PLW2901
            file.write(line.replace(b"\n", b"") + b"\n")
    watcher, _ = replayed(path)
    assert watcher.samples <= len(lines)


def test_samples_a_century_apart_take_no_time(tmp_path: Path) -> None:
    record(tmp_path / "r", [Sample(t, (DeviceMemory("0", used_bytes=1),)) for t in (0.0, 3.0, 1e10, 1e11)])
    began = time.process_time()
    assert replayed(tmp_path / "r")[0].samples == 4
    assert time.process_time() - began < 1


WRITER = """
import sys
from pathlib import Path
from oortriage.watch.recording import Recorder
from oortriage.watch.sample import DeviceMemory, Sample, Settings
from oortriage.watch.watcher import Watcher
recorder = Recorder(Path(sys.argv[1]), 1 << 26, Settings())
print("ready", flush=True)
for number in range(10**9):
    recorder.show(Sample(float(number), (DeviceMemory("0", "u" * 500, used_bytes=number),)), [], None)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_kill_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    assert child.stdout
    child.stdout.readline()
    time.sleep(0.3)
    child.send_signal(signal.SIGKILL)
    child.wait(timeout=30)
    child.stdout.close()
    times = [sample.time_s for sample in Recording(path).samples()]
    assert len(times) > 10
    assert times == [float(number) for number in range(len(times))]


def test_the_limit_has_a_least_and_a_file_must_be_writable(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="64 KiB"):
        Recorder(tmp_path / "r", 1000, Settings())
    with pytest.raises(UsageError, match="cannot be written"):
        Recorder(tmp_path / "none" / "r", 1 << 20, Settings())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_an_error_with_a_name() -> None:
    with pytest.raises(UsageError, match="/dev/full"):
        Recorder(Path("/dev/full"), 1 << 20, Settings())


def test_the_table_has_a_row_a_value_in_base_units(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    table = TableFile(path, 1 << 20)
    device = DeviceMemory("0", "", "H200", 10, 4, 6, (ProcessMemory(8, "=cmd()", 3), ProcessMemory(9, "", None)))
    table.show(Sample(12.5, (device,), engine=EngineLoad(0.25, 1, 2, 3)), [], None)
    table.close()
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert tuple(head) == COLUMNS
    assert ["12.500", "process", "0", "8", "'=cmd()", "used_bytes", "3"] in rows
    assert ["12.500", "device", "0", "", "H200", "free_bytes", "6"] in rows
    assert ["12.500", "engine", "", "", "", "kv_usage", "0.25"] in rows
    assert len(rows) == 8


def test_an_event_survives_its_line() -> None:
    event = Event(1.0, "fired", "WD101", "gpu 0 pid 8", "text", {"slope_bytes_per_s": 1.5}, "0", 8)
    assert msgspec.json.decode(msgspec.json.encode(event), type=Header | Sample | Event) == event
