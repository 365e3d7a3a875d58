"""``oortriage watch`` as a process of its own, with a module named pynvml that a test writes."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from oortriage.cli.app import main
from oortriage.watch.recording import Recording
from oortriage.watch.shipped import NAMES
from tests.cli.conftest import Run, command, complained
from tests.gpu.fake_nvml import FakeNvml, card
from tests.watch.exporting import everything
from tests.watch.made import GIB, MIB, flat, leak, samples
from tests.watch.test_recording import record

#: One card; process 1 is flat, process 2 takes 64 MiB a second.
CARD = """
import time
from types import SimpleNamespace

BEGIN = time.monotonic()

class NVMLError(Exception):
    value = 3

def grown(): return int((time.monotonic() - BEGIN) * (64 << 20))
def nvmlInit(): pass
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): return 1
def nvmlDeviceGetHandleByIndex(i): return i
def nvmlDeviceGetUUID(h): return "GPU-1234"
def nvmlDeviceGetName(h): return "Tesla \\x1b[31mT4"
def nvmlSystemGetProcessName(pid): return f"/bin/p{pid}"
def nvmlDeviceGetMemoryInfo(h):
    used = (2 << 30) + grown()
    return SimpleNamespace(total=16 << 30, used=used, free=(16 << 30) - used)
def nvmlDeviceGetComputeRunningProcesses(h):
    return [SimpleNamespace(pid=4000001, usedGpuMemory=1 << 30), SimpleNamespace(pid=4000002, usedGpuMemory=(1 << 30) + grown())]
def nvmlDeviceGetGraphicsRunningProcesses(h): raise NVMLError
def nvmlDeviceGetMigMode(h): raise NVMLError
"""
NONE = "def nvmlInit():\n    error = Exception('not found')\n    error.value = 12\n    raise error\n"


@pytest.fixture
def module(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "pynvml.py").write_text(CARD)
    own = os.pathsep.join(part for part in (str(tmp_path / "site"), environment.get("PYTHONPATH", "")) if part)
    return {"PYTHONPATH": own}


def test_a_leak_from_the_card_to_the_end(run: Run, module: dict[str, str], tmp_path: Path) -> None:
    path, table = tmp_path / "r.jsonl", tmp_path / "t.csv"
    asked = ["--for", "4s", "--window", "2s", "--interval", "50ms", "--jsonl", path, "--csv", table, "--format", "json"]
    done = run("watch", *asked, env=module)
    assert done.returncode == 1, done.stderr
    summary = json.loads(done.stdout)
    jsonschema.validate(summary, json.loads(run("schema", "watch").stdout))
    (event,) = summary["events"]
    assert (event["code"], event["pid"]) == ("WD101", 4000002)
    assert event["numbers"]["slope_bytes_per_s"] == pytest.approx(64 * MIB, rel=0.05)
    assert "ALERT WD101 device memory of process 4000002 (p4000002)" in done.stderr
    again = run("watch", "--replay", path, "--format", "json")
    assert again.returncode == 1
    assert json.loads(again.stdout)["events"] == summary["events"]
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    growing = [int(row["value"]) for row in rows if row["pid"] == "4000002"]
    assert growing == sorted(growing)
    assert len(growing) == summary["samples"]


def test_lines_in_a_pipe_and_no_terminal_code_from_a_device(run: Run, module: dict[str, str]) -> None:
    done = run("watch", "--for", "600ms", "--interval", "200ms", "--window", "10s", env=module)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d GPU 0 2\.\d GiB/16\.0 GiB; pid 4000001 .*", lines[0])
    assert lines[-1] == "nothing fired"
    assert "\x1b" not in done.stdout
    assert "Tesla \\x1b[31mT4" in done.stdout


def test_quiet_leaves_the_lines_out(run: Run, module: dict[str, str]) -> None:
    done = run("watch", "--for", "300ms", "--interval", "100ms", "--window", "10s", "--quiet", env=module)
    assert re.match(r"\d samples in ", done.stdout)


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_its_story(
    environment: dict[str, str], module: dict[str, str], nowhere: Path, tmp_path: Path, how: signal.Signals
) -> None:
    path = tmp_path / "r.jsonl"
    arguments = ["watch", "--interval", "50ms", "--window", "10s", "--jsonl", path, "--format", "json"]
    process = subprocess.Popen(
        command(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**environment, **module}, cwd=nowhere
    )
    until = time.monotonic() + 30
    while time.monotonic() < until and not (path.exists() and path.read_bytes().count(b'"kind":"sample"') > 3):
        time.sleep(0.05)
    process.send_signal(how)
    out, complaint = process.communicate(timeout=30)
    summary = json.loads(out)
    assert (process.returncode, complaint, summary["interrupted"]) == (130, b"", True)
    recording = Recording(path)
    assert len(list(recording.samples())) == summary["samples"]
    assert recording.bad_lines == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of its own")
def test_a_table_on_a_terminal(environment: dict[str, str], module: dict[str, str], nowhere: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(["watch", "--for", "1s", "--interval", "100ms", "--window", "10s"]),
        stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, **module, "TERM": "xterm", "COLUMNS": "140"},
        cwd=nowhere,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait(timeout=30) == 0
    text = shown.decode(errors="replace")
    assert "oortriage watch, " in text
    assert "4000002 p4000002" in text
    assert "Traceback" not in text
    assert text.rstrip().endswith("nothing fired")


def test_without_a_card_it_says_what_else_could_be_watched(run: Run, module: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "site" / "pynvml.py").write_text(NONE)
    line = complained(run("watch", "--for", "1s", env=module), 3)
    assert "--pid or --metrics" in line


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_main_memory_alone(run: Run, module: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "site" / "pynvml.py").write_text(NONE)
    asked = ["--for", "500ms", "--interval", "100ms", "--window", "10s", "--pid", str(os.getpid()), "-f", "json"]
    done = run("watch", *asked, env=module)
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads(done.stdout)
    (own,) = [row for row in summary["rows"] if row["scope"] == "host" and row["pid"] == os.getpid()]
    assert own["now_bytes"] > 10 * MIB
    assert summary["notes"][0].startswith("device memory is not watched: ")


def test_an_endpoint_that_does_not_answer_is_told_and_no_crash(run: Run, module: dict[str, str]) -> None:
    asked = ["--for", "300ms", "--interval", "100ms", "--window", "10s", "--metrics", "http://127.0.0.1:1/metrics"]
    done = run("watch", *asked, env=module)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"note: \d of \d samples: metrics endpoint does not answer: ", done.stdout)


def test_a_replay_is_judged_in_seconds_and_needs_no_card(run: Run, tmp_path: Path) -> None:
    record(tmp_path / "r", list(samples({7: flat(70 * GIB), 8: leak(41 * MIB, GIB)}, 25, interval=10)))
    done = run("watch", "--replay", tmp_path / "r")
    assert done.returncode == 1
    assert "150 samples in 25 min" in done.stdout
    assert "ALERT WD101 device memory of process 8 (p8) on GPU 0 grew 41 MiB/min" in done.stdout
    calm = run("watch", "--replay", tmp_path / "r", "--min-growth", "100GiB")
    assert (calm.returncode, calm.stdout.splitlines()[-1]) == (0, "nothing fired")


def test_text_says_no_more_than_json(run: Run, tmp_path: Path) -> None:
    record(tmp_path / "r", everything())
    text = run("watch", "--replay", tmp_path / "r").stdout
    summary = json.loads(run("watch", "--replay", tmp_path / "r", "-f", "json").stdout)
    fired = re.findall(r"(?m)^\S+ ALERT (\w+) (.*)$", text)
    assert fired == [(one["code"], one["message"]) for one in summary["events"] if one["state"] == "fired"]
    assert {code for code, _ in fired} == {"WD101", "WH301", "WH302", "WH304", "WK201", "WK202"}


def test_the_end_goes_to_a_file(run: Run, tmp_path: Path) -> None:
    record(tmp_path / "r", everything())
    done = run("watch", "--replay", tmp_path / "r", "--output", tmp_path / "end.txt")
    assert (done.returncode, done.stdout) == (1, "")
    assert "ALERT WD101" in (tmp_path / "end.txt").read_text()


def test_rules_and_files(run: Run, tmp_path: Path) -> None:
    listed = run("watch", "--list-rules")
    assert re.findall(r"(?m)^(W\w\d{3})  ", listed.stdout) == [
        "WD101", "WD102", "WD103", "WK201", "WK202", "WH301", "WH302", "WH303", "WH304",
    ]  # fmt: skip
    done = run("watch", "--write-dashboard", tmp_path / "new")
    assert done.returncode == 0
    assert [Path(line).name for line in done.stdout.splitlines()] == list(NAMES)
    assert sorted(one.name for one in (tmp_path / "new").iterdir()) == sorted(NAMES)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--interval", "fast"], "--interval fast: no time"),
        (["--interval", "10s", "--window", "1m"], "fewer than 15 samples"),
        (["--interval", "1ms"], "10ms to 1 day"),
        (["--for", "0"], "more than 0"),
        (["--min-growth", "lots"], "--min-growth lots: no size"),
        (["--max-bytes", "1KiB", "--jsonl", "x.jsonl"], "at least 64 KiB"),
        (["--prometheus", "here"], "--prometheus here: write :PORT"),
        (["--prometheus", ":99999"], "write :PORT"),
        (["--metrics", "file:///etc/passwd"], "write http://HOST:PORT/metrics"),
        (["--gpu", "7"], "--gpu 7: no such device; there are 0"),
        (["--replay", "none.jsonl"], "none.jsonl"),
        (["--replay", "none.jsonl", "--gpu", "0"], "judges a recording"),
        (["--jsonl", "same", "--csv", "same"], "name one file"),
    ],
)
def test_wrong_usage_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    """In this process: a start a case would take most of the time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(card()))
    monkeypatch.setattr(sys, "argv", ["oortriage", "watch", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    out, line = capsys.readouterr()
    assert (end.value.code, out, line.count("\n")) == (2, "", 1)
    assert words in line


def test_a_hostile_recording_is_refused_or_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(b"\x1b]0;owned\x07\xff" * 50)
    line = complained(run("watch", "--replay", tmp_path / "r"))
    assert "no recording" in line
    assert "\x1b" not in line
