"""``oortriage run``: nothing about the command changes, and a crash is triaged at once."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oortriage.capture.capsule import read_capsule
from tests.capture.conftest import FAIL, Programs, triton_cache
from tests.cli.conftest import T4, command, complained

__all__ = ["triton_cache"]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and terminals of POSIX")

PYTHON = sys.executable


class Runner:
    """Runs ``oortriage run`` in a folder of its own; bytes in, bytes out."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.environment, self.folder = environment, folder

    def __call__(
        self, *arguments: str, env: dict[str, str] | None = None, **how: Any
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command(["run", *arguments]),
            env={**self.environment, **(env or {})},
            cwd=self.folder,
            timeout=120,
            check=False,
            **{"capture_output": True, **how},
        )

    def start(self, *arguments: str, **how: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command(["run", *arguments]), env=self.environment, cwd=self.folder, **how)


@pytest.fixture
def runner(environment: dict[str, str], tmp_path: Path) -> Runner:
    return Runner(environment, tmp_path)


def shell(text: str) -> list[str]:
    return ["--", "sh", "-c", text]


def python(text: str) -> list[str]:
    return ["--", PYTHON, "-c", text]


class TestUnchanged:
    def test_output_and_code(self, runner: Runner) -> None:
        done = runner(*shell("echo out; echo err >&2; exit 7"))
        assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")

    def test_success_says_nothing(self, runner: Runner) -> None:
        done = runner(*shell("exit 0"))
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert list(runner.folder.iterdir()) == []

    def test_the_commands_options_are_its_own(self, runner: Runner) -> None:
        text = "import sys; print(sys.argv[1:])"
        assert runner(PYTHON, "-c", text, "--help", "-f", "--", "x").stdout == b"['--help', '-f', '--', 'x']\n"
        assert runner("--", PYTHON, "-c", text, "--triage-exit").stdout == b"['--triage-exit']\n"

    def test_standard_input_is_the_commands(self, runner: Runner) -> None:
        assert runner("--", "cat", input=b"a\0b\xff").stdout == b"a\0b\xff"

    def test_bytes_that_are_no_text(self, runner: Runner) -> None:
        every = bytes(range(256)) * 5
        done = runner(*python("import sys; sys.stdout.buffer.write(bytes(range(256)) * 5); sys.exit(3)"))
        assert (done.returncode, done.stdout) == (3, every)

    def test_a_huge_output(self, runner: Runner) -> None:
        text = "import sys\nfor n in range(300): sys.stdout.buffer.write(b'%0999d\\n' % n * 100)\nsys.exit(1)"
        done = runner(*python(text))
        assert done.returncode == 1
        assert len(done.stdout) == 300 * 100 * 1000
        assert done.stdout.splitlines()[-1] == b"%0999d" % 299

    def test_both_outputs_in_one_file_keep_their_order(self, runner: Runner) -> None:
        text = "import os\nfor n in range(200): os.write(1 + n % 2, b'%d\\n' % n)"
        done = runner(*python(text), capture_output=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.stdout.split() == [b"%d" % n for n in range(200)]

    def test_and_in_one_file_on_disk(self, runner: Runner, tmp_path: Path) -> None:
        text = "import os\nfor n in range(200): os.write(1 + n % 2, b'%d\\n' % n)"
        with (tmp_path / "log").open("wb") as log:
            runner(*python(text), capture_output=False, stdout=log, stderr=log)
        assert (tmp_path / "log").read_bytes().split() == [b"%d" % n for n in range(200)]

    def test_output_is_live(self, runner: Runner) -> None:
        process = runner.start(*shell("echo first; sleep 60"), stdout=subprocess.PIPE)
        assert process.stdout
        began = time.monotonic()
        assert process.stdout.readline() == b"first\n"
        assert time.monotonic() - began < 30
        process.terminate()
        assert process.wait(30) == 128 + signal.SIGTERM
        process.stdout.close()

    def test_a_reader_that_goes_away_ends_the_command_as_it_would_have(self, runner: Runner) -> None:
        done = runner(
            "--", PYTHON, "-c",
            f"import subprocess,sys; p=subprocess.Popen({command(['run', '--', 'yes'])!r},stdout=subprocess.PIPE);"
            "p.stdout.readline(); p.stdout.close(); print(p.wait())",
        )  # fmt: skip
        assert done.stdout.strip() == b"%d" % (128 + signal.SIGPIPE)

    def test_processes_left_behind_do_not_hold_it(self, runner: Runner) -> None:
        began = time.monotonic()
        done = runner(*shell("sleep 50 & echo done"))
        assert done.stdout == b"done\n"
        assert time.monotonic() - began < 40


class TestStart:
    def test_no_command(self, runner: Runner) -> None:
        done = runner()
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"which command" in done.stderr

    def test_one_that_is_not_there(self, runner: Runner) -> None:
        done = runner("--", "no-such-program")
        text = subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "no-such-program" in complained(text, 127)

    def test_one_that_cannot_be_executed(self, runner: Runner, tmp_path: Path) -> None:
        (tmp_path / "plain").write_text("no program")
        assert runner("--", str(tmp_path / "plain")).returncode == 126

    def test_the_environment_alone(self, runner: Runner) -> None:
        done = runner("--show-environment", env={"PYTHONPATH": self_path(runner), "OORTRIAGE_CAPTURE": "/x y"})
        lines = done.stdout.decode().splitlines()
        assert lines[0] == "export OORTRIAGE_CAPTURE='/x y'"
        name, _, value = lines[1].partition("=")
        assert name == "export PYTHONPATH"
        assert shlex.split(value)[0].split(os.pathsep)[0].endswith("hook")


def self_path(runner: Runner) -> str:
    return runner.environment.get("PYTHONPATH", "")


class TestSignals:
    WAIT = (
        "import signal, sys, time\n"
        "def on(n, f): print(signal.Signals(n).name, flush=True); sys.exit(40)\n"
        "for s in ('SIGTERM', 'SIGHUP', 'SIGINT', 'SIGUSR1'): signal.signal(getattr(signal, s), on)\n"
        "print('up', flush=True); time.sleep(60)"
    )

    @pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGUSR1"])
    def test_are_handed_on(self, runner: Runner, name: str) -> None:
        process = runner.start(*python(self.WAIT), stdout=subprocess.PIPE, start_new_session=True)
        assert process.stdout
        assert process.stdout.readline() == b"up\n"
        process.send_signal(getattr(signal, name))
        assert process.stdout.read() == name.encode() + b"\n"
        process.stdout.close()
        assert process.wait(30) == 40

    def test_a_command_that_is_killed(self, runner: Runner) -> None:
        done = runner(*shell("kill -KILL $$"))
        assert done.returncode == 137
        assert b"SIGKILL" in done.stderr
        assert b"dmesg" in done.stderr

    def test_an_interrupt_is_no_crash(self, runner: Runner) -> None:
        process = runner.start(
            *python("import time; print('up', flush=True); time.sleep(60)"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert process.stdout
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        _out, complaint = process.communicate(timeout=60)
        assert process.returncode == 130
        assert b"KeyboardInterrupt" in complaint
        assert b"oortriage" not in complaint

    def test_what_is_ignored_stays_ignored(self, runner: Runner) -> None:
        text = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
        words = shlex.join(command(["run", *python(text)]))
        done = subprocess.run(
            ["sh", "-c", f"trap '' HUP; {words}"],
            env=runner.environment, cwd=runner.folder, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.stdout == b"True\n"


class Terminal:
    """A terminal of ours on whose other side the command runs."""

    def __init__(self, runner: Runner, arguments: list[str], **how: Any) -> None:
        import pty

        self._side, inner = pty.openpty()
        streams = {"stdin": inner, "stdout": inner, "stderr": inner, **how}
        self.process = runner.start(*arguments, start_new_session=True, preexec_fn=_take, **streams)
        os.close(inner)
        self.text = b""

    def until(self, wanted: bytes, seconds: float = 60) -> bytes:
        deadline = time.monotonic() + seconds
        while wanted not in self.text and time.monotonic() < deadline:
            try:
                self.text += os.read(self._side, 4096)
            except OSError:
                break
        assert wanted in self.text, self.text
        return self.text

    def type(self, data: bytes) -> None:
        os.write(self._side, data)

    def rest(self) -> bytes:
        while True:
            try:
                data = os.read(self._side, 4096)
            except OSError:
                data = b""
            if not data:
                break
            self.text += data
        os.close(self._side)
        return self.text


def _take() -> None:
    """Make standard input the terminal of this new session."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def terminal(runner: Runner) -> Iterator[Callable[..., Terminal]]:
    made: list[Terminal] = []

    def make(arguments: list[str], **how: Any) -> Terminal:
        made.append(Terminal(runner, arguments, **how))
        return made[-1]

    yield make
    for one in made:
        one.process.kill()
        one.process.wait(30)


class TestTerminal:
    def test_the_command_sees_one_too(self, terminal: Callable[..., Terminal]) -> None:
        text = "import sys, os; print([os.isatty(n) for n in range(3)], os.get_terminal_size().columns >= 0)"
        there = terminal(python(text))
        assert there.rest() == b"[True, True, True] True\r\n"
        assert there.process.wait(30) == 0

    def test_where_only_errors_go_to_one(self, terminal: Callable[..., Terminal], tmp_path: Path) -> None:
        text = "import sys, os; print([os.isatty(n) for n in range(3)]); sys.stderr.write('err\\n')"
        with (tmp_path / "out").open("wb") as out:
            there = terminal(python(text), stdout=out)
            assert there.rest() == b"err\r\n"
            assert there.process.wait(30) == 0
        assert (tmp_path / "out").read_bytes() == b"[True, False, True]\n"

    def test_the_interrupt_key_reaches_the_command_once(self, terminal: Callable[..., Terminal]) -> None:
        text = (
            "import signal, time\ncount = []\nsignal.signal(signal.SIGINT, lambda *a: count.append(1))\n"
            "print('up', flush=True)\nend = time.monotonic() + 2\n"
            "while time.monotonic() < end: time.sleep(0.05)\nprint('count', len(count))"
        )
        there = terminal(python(text))
        there.until(b"up\r\n")
        there.type(b"\x03")
        assert b"count 1\r\n" in there.rest()
        assert there.process.wait(30) == 0


@pytest.fixture
def programs(tmp_path: Path, triton_cache: Path) -> Programs:
    pytest.importorskip("triton", reason="needs Triton (no GPU)")
    return Programs(tmp_path, triton_cache)


class TestTriage:
    def test_a_crash_is_told_at_once(self, runner: Runner) -> None:
        done = runner("--", "sh", "-c", f"cat {shlex.quote(str(T4))} >&2; exit 1")
        assert done.returncode == 1
        assert done.stderr.startswith(T4.read_bytes())
        said = done.stderr[len(T4.read_bytes()) :].decode().splitlines()
        assert all(line.startswith("oortriage: ") for line in said)
        assert "shared_memory" in said[0]
        assert "81,920" in said[1]

    def test_the_verdicts_code_where_it_is_asked_for(self, runner: Runner) -> None:
        text = f"cat {shlex.quote(str(T4))}; exit 9"
        assert runner("--triage-exit", *shell(text)).returncode == 1
        assert runner(*shell(text)).returncode == 9
        assert runner("--triage-exit", *shell("exit 9")).returncode == 0

    def test_a_command_that_ends_well_is_not_triaged(self, runner: Runner) -> None:
        assert runner(*shell(f"cat {shlex.quote(str(T4))}")).stderr == b""

    def test_a_kernel_that_does_not_fit(self, runner: Runner, programs: Programs) -> None:
        (programs.folder / "serve.py").write_text(FAIL)
        env = programs.environment(hooked=False)
        done = runner(
            "--", PYTHON, "serve.py", env={"PYTHONPATH": env["PYTHONPATH"], "TRITON_CACHE_DIR": env["TRITON_CACHE_DIR"]}
        )
        assert done.returncode == 1
        text = done.stderr.decode()
        assert "OutOfResources" in text
        (path,) = (programs.folder / "oortriage-capsules").glob("*.json")
        capsule = read_capsule(str(path))
        assert f"oortriage: {capsule.sentence}" in text
        assert f"oortriage: next: oortriage reproduce {path}" in text
        again = subprocess.run(
            command(["reproduce", str(path), "--format", "json"]),
            env={**runner.environment, "OORTRIAGE_CACHE": str(programs.folder / "cache")},
            capture_output=True, timeout=120, check=False,
        )  # fmt: skip
        assert again.returncode == 0, again.stderr
        assert json.loads(again.stdout)["required_bytes"] == capsule.required

    def test_one_that_the_program_survives_is_told_too(self, runner: Runner, programs: Programs) -> None:
        text = FAIL.replace("kernels.launch()", "try:\n    kernels.launch()\nexcept Exception:\n    print('goes on')")
        (programs.folder / "serve.py").write_text(text)
        env = programs.environment(hooked=False)
        passed = {"PYTHONPATH": env["PYTHONPATH"], "TRITON_CACHE_DIR": env["TRITON_CACHE_DIR"]}
        done = runner("--capsules", "there", "--", PYTHON, "serve.py", env=passed)
        assert (done.returncode, done.stdout) == (0, b"goes on\n")
        assert done.stderr.count(b"oortriage: capsule: ") == 1
        assert len(list((programs.folder / "there").glob("*.json"))) == 1
        # The same again is the same file, and is told again.
        assert runner("--capsules", "there", "--", PYTHON, "serve.py", env=passed).stderr.count(b"capsule: ") == 1

    def test_no_line_of_the_verdict_can_act_on_the_terminal(self, runner: Runner) -> None:
        line = "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 81920, Hardware limit: 65536."
        done = runner(*python(f"import sys; print('\\x1b]0;owned\\x07 {line}'); sys.exit(1)"))
        assert done.returncode == 1
        assert b"\x1b" not in done.stderr
