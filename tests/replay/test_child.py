"""A child that dies, stalls, shouts or leaves processes behind costs its own cell and nothing else."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from oortriage.gpu.virtual.adapter import Target
from oortriage.gpu.virtual.driver import Card
from oortriage.replay.child import ChildError, run_job
from oortriage.replay.compiler_env import CompilerEnv, compiler_env
from oortriage.replay.job import Cell, Job, Outcome
from tests.replay.children import is_alive, zombies

pytest.importorskip("triton")

CARD = Card(Target("cuda", 75, 32), 65_536)

#: A file with a kernel in name only: it does what its argument says, in the place of a compiler.
WILD = """
import os, signal, stat, subprocess, sys, time

import triton
import triton.language as tl


@triton.jit
def summing(x, y, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(y + index, tl.cumsum(tl.load(x + index), axis=0))


def put(path, text):
    with open(path, "a") as file:
        file.write(f"{text}\\n")


class Wild:
    arg_names = ["deed", "to"]

    def __getitem__(self, grid):
        return self.do

    def do(self, deed, to=None):
        put(__file__ + ".log", f"{deed} {os.getpid()}")
        getattr(self, deed)(to)

    def compile(self, to):
        from oortriage.kernels.mock import Pointer
        summing[(1,)](Pointer("float32"), Pointer("float32"), BLOCK=1024)

    def nothing(self, to):
        pass

    def exit(self, to):
        os._exit(3)

    def fault(self, to):
        os.kill(os.getpid(), signal.SIGSEGV)

    def kill(self, to):
        print("out of patience", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    def sleep(self, to):
        time.sleep(600)

    def stubborn(self, to):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(600)

    def memory(self, to):
        bytearray(200 << 30)

    def shout(self, to):
        print("x" * 5_000_000)
        os.write(1, b"y" * 2_000_000)
        sys.stderr.write("z" * 2_000_000)
        os.system("echo a program of mine")

    def read(self, to):
        input("anyone?")

    def leave(self, to):
        raise SystemExit(4)

    def interrupt(self, to):
        raise KeyboardInterrupt

    def recurse(self, to):
        self.recurse(to)

    def half(self, to):
        for number in range(3, 64):
            try:
                pipe = stat.S_ISFIFO(os.fstat(number).st_mode)
            except OSError:
                continue
            if pipe:
                os.write(number, b'{"cell":0,"kern')
        os._exit(0)

    def spawn(self, to):
        put(to, subprocess.Popen(["sleep", "600"]).pid)

    def orphan(self, to):
        if not os.fork():
            os.setsid()
            put(to, os.getpid())
            time.sleep(600)
        while not os.path.exists(to):
            time.sleep(0.01)
        os._exit(5)


wild = Wild()
"""


@pytest.fixture
def wild(tmp_path: Path) -> Path:
    path = tmp_path / "wild.py"
    path.write_text(WILD)
    return path


def outcomes(
    wild: Path, deeds: Sequence[str | dict[str, str]], *, cell_seconds: float = 60.0, start_seconds: float = 60.0
) -> list[Outcome]:
    cells = tuple(Cell({"deed": deed} if isinstance(deed, str) else deed) for deed in deeds)
    found: list[Outcome] = []
    run_job(
        Job(f"{wild}:wild", CARD, cells),
        compiler_env(),
        found.append,
        cell_seconds=cell_seconds,
        start_seconds=start_seconds,
    )
    assert [outcome.cell for outcome in found] == list(range(len(deeds)))
    assert not zombies()
    return found


def children_of(wild: Path) -> list[tuple[str, str]]:
    """Return which process did which deed."""
    return [(line.split()[0], line.split()[1]) for line in Path(f"{wild}.log").read_text().splitlines()]


def failure(outcome: Outcome) -> tuple[str, str]:
    assert outcome.failure
    return outcome.failure.kind, outcome.failure.message


def test_a_process_that_dies_costs_its_own_cell(wild: Path) -> None:
    deeds = ["compile", "exit", "compile", "fault", "kill", "half", "memory", "compile"]
    found = outcomes(wild, deeds)
    for index in (0, 2, 7):
        assert found[index].failure is None
        (kernel,) = found[index].kernels
        assert (kernel.name, kernel.required_bytes) == ("summing", 32)
    assert failure(found[1]) == ("crashed", "the compiler's process ended with 3")
    assert failure(found[3])[0] == "crashed"
    assert "SIGSEGV" in failure(found[3])[1]
    assert failure(found[4]) == ("crashed", "the compiler crashed (SIGKILL): out of patience")
    assert failure(found[5]) == ("crashed", "the compiler's process ended with 0")
    assert failure(found[6]) == ("memory", "the compiler needs more memory than it may have")
    pids = [pid for _, pid in children_of(wild)]
    assert len(set(pids)) == 6  # after each death a fresh one goes on, and no sooner
    assert pids[0] == pids[1]
    assert not any(is_alive(int(pid)) for pid in pids)


def test_what_can_be_survived_is_survived_in_one_process(wild: Path) -> None:
    found = outcomes(wild, ["shout", "read", "leave", "interrupt", "recurse", "compile"])
    assert found[0].failure is None
    assert failure(found[1])[0] == failure(found[2])[0] == failure(found[3])[0] == "does_not_compile"
    assert failure(found[1])[1].startswith("EOFError")
    assert failure(found[2])[1].startswith("SystemExit: 4")
    assert failure(found[3])[1].startswith("KeyboardInterrupt")
    assert failure(found[4])[1].startswith("RecursionError")
    assert found[5].kernels[0].required_bytes == 32
    assert len({pid for _, pid in children_of(wild)}) == 1


def test_a_cell_that_stalls_is_ended(wild: Path) -> None:
    begin = time.monotonic()
    found = outcomes(wild, ["nothing", "sleep", "nothing", "stubborn", "nothing"], cell_seconds=1.5, start_seconds=30)
    assert time.monotonic() - begin < 45
    assert [outcome.failure and outcome.failure.kind for outcome in found] == [None, "timeout", None, "timeout", None]
    assert failure(found[1])[1] == "the compiler took longer than 1.5 s"
    assert not any(is_alive(int(pid)) for _, pid in children_of(wild))


def test_the_start_has_a_limit_too(wild: Path) -> None:
    (found,) = outcomes(wild, ["sleep"], cell_seconds=0.2, start_seconds=0.2)
    assert failure(found) == ("timeout", "the compiler took longer than 0.4 s")


def test_what_the_child_started_ends_with_it(wild: Path, tmp_path: Path) -> None:
    left = tmp_path / "left"
    deeds = [{"deed": "spawn", "to": str(left)}, "nothing", {"deed": "spawn", "to": str(left)}, "exit"]
    found = outcomes(wild, deeds)
    assert [outcome.failure is None for outcome in found] == [True, True, True, False]
    pids = [int(line) for line in left.read_text().splitlines()]
    assert len(pids) == 2
    assert not any(is_alive(pid) for pid in pids)


def test_a_process_that_holds_the_output_open_does_not_hold_us_up(wild: Path, tmp_path: Path) -> None:
    left = tmp_path / "left"
    begin = time.monotonic()
    try:
        found = outcomes(wild, [{"deed": "orphan", "to": str(left)}, "nothing"])
        assert failure(found[0]) == ("crashed", "the compiler's process ended with 5")
        assert found[1].failure is None
        assert time.monotonic() - begin < 40
    finally:
        os.kill(int(left.read_text()), signal.SIGKILL)


def environment(folder: Path, **files: str) -> CompilerEnv:
    """Make an environment with modules that go before all others."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return CompilerEnv("0", str(folder))


def test_a_child_that_dies_before_it_reads_its_job(wild: Path, tmp_path: Path) -> None:
    env = environment(tmp_path, sitecustomize="import os; os._exit(7)")
    found: list[Outcome] = []
    shape = {"deed": "x" * 300_000}  # more than a pipe holds
    run_job(Job(f"{wild}:wild", CARD, (Cell(shape), Cell(shape))), env, found.append)
    assert [failure(outcome) for outcome in found] == [("crashed", "the compiler's process ended with 7")] * 2
    assert not zombies()


def test_a_child_that_cannot_start_says_why(wild: Path, tmp_path: Path) -> None:
    env = environment(tmp_path, msgspec="raise ImportError('no such thing today')")
    found: list[Outcome] = []
    run_job(Job(f"{wild}:wild", CARD, (Cell({"deed": "nothing"}),)), env, found.append)
    assert failure(found[0])[1] == "the compiler's process ended with 1: ImportError: no such thing today"


@pytest.mark.parametrize("safe", ["", "1"])
def test_modules_in_the_current_folder_are_not_taken(
    wild: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, safe: str
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "msgspec.py").write_text("raise ImportError('a file of mine')")
    monkeypatch.chdir(logs)
    monkeypatch.setenv("PYTHONSAFEPATH", safe)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert outcomes(wild, ["nothing"])[0].failure is None
    env = environment(tmp_path, triton="__version__ = '3.3.1'")  # its folder goes first all the same
    with pytest.raises(ChildError, match=r"Triton 3\.3\.1"):
        run_job(Job(f"{wild}:wild", CARD, (Cell(),)), env, lambda _: None)


@pytest.mark.parametrize(
    ("kernel", "modules", "message"),
    [
        ("reference.attention", {"triton": "raise ModuleNotFoundError(name='triton')"}, "pip install 'oortriage"),
        ("reference.attention", {"triton": "import nothing_of_this_name"}, "cannot be imported: No module named"),
        ("reference.attention", {"triton": "__version__ = '3.3.1'"}, "Triton 3.3.1 is older than 3.4"),
        ("no.such_kernel", {}, "no kernel 'no.such_kernel'"),
        ("/nowhere/kernel.py:kernel", {}, "there is no such file"),
        ("vllm.unified_attention", {}, "the source of vllm is needed"),
    ],
)
def test_what_no_cell_can_do_ends_the_job(kernel: str, modules: dict[str, str], message: str, tmp_path: Path) -> None:
    found: list[Outcome] = []
    env = environment(tmp_path, **modules)
    with pytest.raises(ChildError) as raised:
        run_job(Job(kernel, CARD, (Cell(), Cell())), env, found.append)
    assert message in str(raised.value)
    assert found == []
    assert not zombies()


def test_no_cells_are_no_child() -> None:
    run_job(Job("no.such_kernel", CARD, ()), CompilerEnv("0", "/nowhere"), lambda _: pytest.fail("an outcome"))


def test_a_stop_ends_the_child_at_once(wild: Path) -> None:
    stop = threading.Event()
    found: list[Outcome] = []

    def done(outcome: Outcome) -> None:
        found.append(outcome)
        threading.Timer(0.3, stop.set).start()

    begin = time.monotonic()
    cells = tuple(Cell({"deed": deed}) for deed in ("nothing", "sleep", "nothing"))
    run_job(Job(f"{wild}:wild", CARD, cells), compiler_env(), done, stop=stop)
    assert time.monotonic() - begin < 30
    assert len(found) == 1
    assert not any(is_alive(int(pid)) for _, pid in children_of(wild))
    assert not zombies()


def test_an_exception_while_outcomes_are_taken_ends_the_child(wild: Path) -> None:
    def done(_outcome: Outcome) -> None:
        raise KeyboardInterrupt

    cells = tuple(Cell({"deed": deed}) for deed in ("nothing", "sleep"))
    with pytest.raises(KeyboardInterrupt):
        run_job(Job(f"{wild}:wild", CARD, cells), compiler_env(), done)
    deadline = time.monotonic() + 10
    while any(is_alive(int(pid)) for _, pid in children_of(wild)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(is_alive(int(pid)) for _, pid in children_of(wild))
    assert not zombies()
