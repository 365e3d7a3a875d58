"""Runs the worker as a child process: with limits, and so that its death is an outcome and not ours."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO

import msgspec

from oortriage.errors import OortriageError
from oortriage.replay.compiler_env import CompilerEnv
from oortriage.replay.job import Failure, Job, Outcome

#: Importing torch and Triton, on a busy machine.
START_SECONDS = 180.0
CELL_SECONDS = 120.0
#: Address space of the child. PyTorch alone maps several gigabytes.
MEMORY_BYTES = 24 << 30

#: How often it is looked whether the child still lives, seconds.
_LOOK_SECONDS = 0.2

#: As ``-m oortriage.replay.worker``, which would take modules from the current folder: that of somebody's logs.
_PROGRAM = "import sys; sys.path = [one for one in sys.path if one]; from oortriage.replay.worker import main; main()"

Report = Callable[[Outcome], None]


class ChildError(OortriageError):
    """The child cannot do its work at all: no compiler, no source, wrong selection."""


def run_job(
    job: Job,
    env: CompilerEnv,
    done: Report,
    *,
    cell_seconds: float = CELL_SECONDS,
    start_seconds: float = START_SECONDS,
    stop: threading.Event | None = None,
) -> None:
    """Compile a job's cells and hand on each outcome as it comes.

    A cell in which the compiler crashes or stalls gets a failure, and the cells after it are done by a
    fresh child.

    Args:
        job: what to compile.
        env: the Triton to compile with.
        done: called with each outcome; ``cell`` is the cell's place in the job.
        cell_seconds: time limit for one cell.
        start_seconds: time limit up to the first outcome, on top of the cell's.
        stop: once set, the child is ended and the cells that are left are not done.

    Raises:
        ChildError: no cell can be done; the message says why.
    """
    offset = 0
    stop = stop or threading.Event()
    while offset < len(job.cells) and not stop.is_set():
        rest = msgspec.structs.replace(job, cells=job.cells[offset:], memory_bytes=job.memory_bytes or MEMORY_BYTES)
        count = 0
        for outcome in _one_child(rest, env, cell_seconds, start_seconds, stop):
            if outcome.cell < 0 and outcome.failure and outcome.failure.kind == "environment":
                raise ChildError(outcome.failure.message)
            count += 1
            done(msgspec.structs.replace(outcome, cell=offset + count - 1))
        offset += count


def _one_child(
    job: Job, env: CompilerEnv, cell_seconds: float, start_seconds: float, stop: threading.Event
) -> Iterator[Outcome]:
    """Run one child and yield its outcomes; the last may be the failure it ended with."""
    with tempfile.TemporaryFile() as errors:
        child = _start(env, errors)
        try:
            lines = _feed(child, msgspec.json.encode(job))
            for count in range(len(job.cells)):
                limit = cell_seconds + (start_seconds if not count else 0)
                line = _next(lines, child, limit, stop)
                if stop.is_set():
                    return
                if line is None:
                    yield _failed("timeout", f"the compiler took longer than {limit:g} s")
                    return
                try:
                    outcome = msgspec.json.decode(line, type=Outcome)
                except msgspec.DecodeError:  # nothing, or half a line: it died while it wrote
                    yield _ended(child, errors)
                    return
                yield outcome
                if outcome.cell < 0:
                    return
        finally:
            _kill(child)


def _next(
    lines: queue.Queue[bytes], child: subprocess.Popen[bytes], limit: float, stop: threading.Event
) -> bytes | None:
    """Wait for a line; empty when the child has ended, None when it takes too long.

    A process that the child left behind may hold its output open, so its end alone is waited for too.
    """
    deadline = time.monotonic() + limit
    while not stop.is_set() and (left := deadline - time.monotonic()) > 0:
        with contextlib.suppress(queue.Empty):
            return lines.get(timeout=min(left, _LOOK_SECONDS))
        if child.poll() is not None:
            try:
                return lines.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                return b""
    return None


def _start(env: CompilerEnv, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 (our own interpreter, and a program that is a constant)
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=env.variables(),
        start_new_session=True,
    )


def _feed(child: subprocess.Popen[bytes], text: bytes) -> queue.Queue[bytes]:
    """Write the job and read lines beside each other, so that neither pipe can block the other.

    Each pipe is closed by the thread that uses it.
    """
    lines: queue.Queue[bytes] = queue.Queue()

    def write() -> None:
        if child.stdin:
            with contextlib.suppress(OSError):
                child.stdin.write(text)
            with contextlib.suppress(OSError):
                child.stdin.close()

    def read() -> None:
        if child.stdout:
            with child.stdout, contextlib.suppress(OSError):
                for line in child.stdout:
                    lines.put(line)
        lines.put(b"")

    threading.Thread(target=write, daemon=True).start()
    threading.Thread(target=read, daemon=True).start()
    return lines


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the child and whatever it started (ptxas)."""
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        child.kill()
    child.wait()


def _ended(child: subprocess.Popen[bytes], errors: IO[bytes]) -> Outcome:
    """Say how a child ended that still had cells to do."""
    code = child.wait()
    errors.seek(0)
    said = [line for line in errors.read()[-8000:].decode("utf-8", "replace").splitlines() if line.strip()]
    last = said[-1].strip() if said else ""
    if code < 0:
        with contextlib.suppress(ValueError):
            return _failed(
                "crashed", f"the compiler crashed ({signal.Signals(-code).name}){': ' + last if last else ''}"
            )
    return _failed("crashed", f"the compiler's process ended with {code}{': ' + last if last else ''}")


def _failed(kind: str, message: str) -> Outcome:
    return Outcome(0, failure=msgspec.convert({"kind": kind, "message": message}, Failure))
