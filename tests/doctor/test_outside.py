"""Nothing hangs and nothing ends the run: programs, checks, the library."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from oortriage.doctor import machine as machine_module
from oortriage.doctor.examine import examine
from oortriage.doctor.finding import Checked, Code
from oortriage.doctor.machine import Machine
from oortriage.doctor.outside import Ran, Unread, run
from oortriage.doctor.reading import Reading
from tests.doctor.made import Made, reading

PYTHON = sys.executable


def python(program: str, seconds: float = 20) -> Ran | Unread:
    return run([PYTHON, "-c", program], seconds)


class TestRun:
    def test_what_it_writes_and_how_it_ends(self) -> None:
        done = python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
        assert done == Ran(3, "out\n", "err\n")

    def test_one_that_does_not_end_is_left(self) -> None:
        start = time.monotonic()
        done = python("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)", 0.5)
        assert isinstance(done, Unread)
        assert done.kind == "timeout"
        assert time.monotonic() - start < 8

    def test_a_grandchild_that_keeps_the_pipe_open_does_not_hold_us(self) -> None:
        start = time.monotonic()
        done = python(
            "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])", 2
        )
        assert isinstance(done, Unread)
        assert time.monotonic() - start < 10

    def test_none_there(self) -> None:
        assert run(["/nowhere/at-all"], 1) == Unread("at-all is not there", "missing")

    def test_one_that_may_not_be_run(self, tmp_path: Path) -> None:
        (tmp_path / "plain").write_text("no program")
        done = run([str(tmp_path / "plain")], 1)
        assert isinstance(done, Unread)
        assert done.kind in ("denied", "error")

    def test_bytes_that_are_no_text(self) -> None:
        done = python(r"import sys; sys.stdout.buffer.write(b'\xff\xfe ok')")
        assert isinstance(done, Ran)
        assert done.out.endswith(" ok")

    def test_it_gets_no_input(self) -> None:
        done = python("import sys; print(repr(sys.stdin.read()))")
        assert isinstance(done, Ran)
        assert done.out == "''\n"


def check_module(work: object) -> SimpleNamespace:
    code = Code("ZZ1", "error", "t", "m", "r", "s")
    return SimpleNamespace(NAME="odd", TITLE="an odd check", CODES=(code,), check=work)


class TestExamine:
    def test_a_check_that_fails_becomes_a_value(self) -> None:
        def broken(_machine: Machine) -> Checked:
            raise ZeroDivisionError("division by zero")

        good = check_module(lambda _machine: Checked({"one": 1}))
        found = examine(Made(), [check_module(broken), good])
        assert [one.reason for one in found.not_checked] == ["this check failed: ZeroDivisionError: division by zero"]
        assert found.facts == {"odd": {"one": 1}}

    def test_a_check_that_does_not_end_is_left(self) -> None:
        start = time.monotonic()
        found = examine(Made(), [check_module(lambda _machine: time.sleep(30))], seconds=0.2)
        assert [one.reason for one in found.not_checked] == ["did not end within 0.2 s"]
        assert time.monotonic() - start < 5

    def test_a_machine_where_nothing_can_be_read(self) -> None:
        machine = Made(files={}, entries={}, spaces={}, installed=Unread("no"), log=None, nvml=Reading())
        machine.limits = {}
        found = examine(machine)
        assert not any("this check failed" in one.reason for one in found.not_checked)


class TestTheLibrary:
    def test_one_that_does_not_answer_is_a_finding(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(machine_module, "_READ_NVML", "import time; time.sleep(60)")
        monkeypatch.setattr(machine_module, "_NVML_SECONDS", 0.3)
        real = Machine()
        assert real.nvml.unavailable is not None
        assert "did not answer within 0.3 s" in real.nvml.unavailable.reason
        assert [one.code for one in examine(Made(nvml=real.nvml)).findings] == ["DR101"]

    def test_one_that_takes_its_process_down(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(machine_module, "_READ_NVML", "import os; os.abort()")
        unavailable = Machine().nvml.unavailable
        assert unavailable is not None
        assert "ended with signal 6" in unavailable.reason

    def test_a_reader_that_died_is_not_the_drivers_fault(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(machine_module, "_READ_NVML", "import ctypes; ctypes.string_at(0)")
        found = examine(Made(nvml=Machine().nvml)).findings
        assert [(one.code, one.severity) for one in found] == [("DR112", "warning")]
        assert "ended with signal 11" in found[0].message

    def test_what_was_read_goes_through_the_pipe_unchanged(self) -> None:
        whole = reading()
        assert msgspec.json.decode(msgspec.json.encode(whole), type=Reading) == whole


class TestTorchAsked:
    """Where its files do not tell the architectures."""

    def asked(self, tmp_path: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...] | Unread:
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").write_text(body)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        return Machine().asked_architectures

    def test_it_tells(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        body = (
            "class _C:\n    @staticmethod\n    def _cuda_getArchFlags():\n        return 'sm_75 sm_90a compute_120'\n"
        )
        assert self.asked(tmp_path, body, monkeypatch) == ("sm_75", "sm_90a", "compute_120")

    @pytest.mark.parametrize(
        "body", ["raise OSError('libcudart.so.13: cannot open')", "import os; os._exit(3)", "x = 1"]
    )
    def test_it_does_not(self, tmp_path: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
        assert isinstance(self.asked(tmp_path, body, monkeypatch), Unread)


class TestRealMachine:
    """The primitives, on whatever machine the tests run."""

    def test_files(self, tmp_path: Path) -> None:
        real = Machine()
        (tmp_path / "one").write_bytes(b"a\xffb")
        assert real.text(str(tmp_path / "one")) == "a�b"
        assert real.names(str(tmp_path)) == ["one"]
        missing = real.text(str(tmp_path / "none"))
        assert isinstance(missing, Unread)
        assert missing.kind == "missing"
        assert isinstance(real.text(str(tmp_path)), Unread)
        assert isinstance(real.names(str(tmp_path / "one")), Unread)
        assert isinstance(real.space(str(tmp_path / "none")), Unread)

    def test_where_links_lead(self, tmp_path: Path) -> None:
        (tmp_path / "libcuda.so.580").write_text("x")
        (tmp_path / "libcuda.so.1").symlink_to("libcuda.so.580")
        entry = Machine().entry(str(tmp_path / "libcuda.so.1"))
        assert not isinstance(entry, Unread)
        assert (entry.kind, entry.mine, Path(entry.target).name) == ("file", True, "libcuda.so.580")
        (tmp_path / "dead").symlink_to("nowhere")
        assert isinstance(Machine().entry(str(tmp_path / "dead")), Unread)

    def test_a_kernel_log_that_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "log").write_text("NVRM: Xid (PCI:0000:0b:00): 79, gone\n")
        log = Machine(dmesg=tmp_path / "log").kernel_log()
        assert not isinstance(log, Unread)
        assert log.found == "the file given"

    def test_limits(self) -> None:
        assert not isinstance(Machine().limit("nofile"), Unread)
