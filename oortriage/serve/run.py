"""One experiment in a child process: its progress, its result, its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import Literal

import msgspec

from oortriage.replay.experiment import Experiment
from oortriage.triage.diagnosis import Diagnosis

State = Literal["running", "done", "failed", "stopped"]

_PROGRAM = (
    "import sys; sys.path = [one for one in sys.path if one]; from oortriage.serve.experiment_child import main; main()"
)
#: A line of the child holds the whole grid.
_LONGEST_LINE = 64 << 20
#: Seconds that a stopped child has to end its compilers itself.
_STOP_SECONDS = 5.0


class Ask(msgspec.Struct, frozen=True):
    """What the child is to do. An empty kernel or GPU is the log's."""

    diagnosis: Diagnosis
    kernel: str = ""
    gpu: str = ""


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the child: progress, a result, or why there is none."""

    done: int = 0
    all: int = 0
    experiment: Experiment | None = None
    problem: str = ""


class Run:
    """An experiment that runs or has ended. The child ends when its standard input is closed."""

    def __init__(self) -> None:
        """Nothing runs until :meth:`follow`."""
        self.state: State = "running"
        self.done = 0
        self.all = 0
        self.problem = ""
        self.experiment: Experiment | None = None
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Ask the child to end; :meth:`follow` sees to it."""
        self._stopped.set()

    async def follow(self, ask: Ask) -> None:
        """Start the child and keep up with it until it ends or is stopped; never raises but for cancellation."""
        try:
            child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                _PROGRAM,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=_LONGEST_LINE,
                start_new_session=True,
            )
        except OSError as problem:
            self._end("failed", f"the experiment cannot be started: {problem.strerror or problem}")
            return
        listening = asyncio.create_task(self._listen(child, ask))
        waiting = asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait({listening, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            listening.cancel()
            await _ended(child)
            if self.state == "running":
                self._end("stopped", "stopped")

    async def _listen(self, child: asyncio.subprocess.Process, ask: Ask) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        with contextlib.suppress(OSError):
            child.stdin.write(msgspec.json.encode(ask) + b"\n")
            await child.stdin.drain()
        try:
            while line := await child.stdout.readline():
                self._hear(msgspec.json.decode(line, type=Told))
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError, OSError):
            self._end("failed", "the process of the experiment said something that cannot be read")
        if self.state == "running":
            code = await child.wait()
            self._end("failed", f"the process of the experiment ended with {code} before it was done")

    def _hear(self, told: Told) -> None:
        if told.experiment is not None:
            self.experiment = told.experiment
            self._end("done", "")
        elif told.problem:
            self._end("failed", told.problem)
        else:
            self.done, self.all = told.done, told.all

    def _end(self, state: State, problem: str) -> None:
        self.state, self.problem = state, problem


async def _ended(child: asyncio.subprocess.Process) -> None:
    """Close what the child lives by, and wait; then end it and what it started by force."""
    if child.stdin is not None:
        child.stdin.close()
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(child.wait(), _STOP_SECONDS)
        return
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    await child.wait()
