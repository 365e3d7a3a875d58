"""Children that read logs: one that dies or stalls over a log is replaced, and only that log is lost.

The standard library's pools end with their first dead child and cannot stop a stalled one.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import IO

import msgspec

from oortriage.errors import OortriageError
from oortriage.grouping.worker import Answer

#: As ``-m``, which would take modules from the current folder: that of somebody's logs.
_PROGRAM = "import sys; sys.path = [one for one in sys.path if one]; from oortriage.grouping.worker import main; main()"
#: Loading the rules, on a busy machine.
START_SECONDS = 60.0


class PoolError(OortriageError):
    """No child can work: a rule is not valid, or Python cannot be started."""


class _Child:
    """One process, spoken to a line at a time."""

    def __init__(self, rules: Sequence[Path], program: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and program)
            [sys.executable, "-c", program, *map(str, rules)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.late = False

    def ask(self, question: str | None, seconds: float) -> Answer | None:
        """Send a question, if there is one, and return the answer; None when the child died or was ended for time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watch = threading.Timer(seconds, self._end_late)
        watch.daemon = True
        watch.start()
        try:
            if question is not None:
                _send(self._process.stdin, question)
            line = self._process.stdout.readline()
            return msgspec.json.decode(line, type=Answer) if line.endswith(b"\n") else None
        except (OSError, ValueError):  # a closed pipe; half an answer
            return None
        finally:
            watch.cancel()

    def _end_late(self) -> None:
        self.late = True
        self._process.kill()

    def end(self) -> int:
        """End the process and return how it ended."""
        if self._process.poll() is None:
            self._process.kill()
        code = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe:
                    pipe.close()
        return code


def _send(pipe: IO[bytes], question: str) -> None:
    pipe.write(msgspec.json.encode(os.fsencode(question)) + b"\n")  # a name on disk may be any bytes
    pipe.flush()


class Pool:
    """Children over a list of files."""

    def __init__(self, rules: Sequence[Path], jobs: int, seconds: float, program: str = _PROGRAM) -> None:
        """Keep how many children may run at a time, and how long one log may take in seconds."""
        self._rules, self._jobs, self._seconds, self._program = list(rules), max(1, jobs), seconds, program
        self._lock = threading.Lock()
        self._children: set[_Child] = set()
        self._stopped = False

    def over(self, paths: Sequence[str]) -> Generator[tuple[str, Answer], None, None]:
        """Yield each file with its answer as it comes, in any order.

        Closing the iterator, or an exception in the loop over it, ends all children.

        Raises:
            PoolError: no child can work at all.
        """
        todo = iter(paths)
        # Bounded, so that children wait where the reader of the answers is slow.
        done: queue.Queue[tuple[str, Answer] | PoolError] = queue.Queue(4 * self._jobs)
        count = min(self._jobs, len(paths))
        threads = [threading.Thread(target=self._serve, args=(todo, done), daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        try:
            for _ in paths:
                item = done.get()
                if isinstance(item, PoolError):
                    raise item
                yield item
        finally:
            self._stop()

    def _next(self, todo: Iterator[str]) -> str | None:
        with self._lock:
            return None if self._stopped else next(todo, None)

    def _serve(self, todo: Iterator[str], done: queue.Queue[tuple[str, Answer] | PoolError]) -> None:
        """Let one child after the other answer; each thread has one at a time."""
        child: _Child | None = None
        try:
            while (path := self._next(todo)) is not None:
                if child is None:
                    child = self._start()
                answer = child.ask(path, self._seconds)
                if answer is None:
                    late, code = child.late, self._end(child)
                    child = None
                    answer = Answer(failed=_ended(late, code, self._seconds))
                done.put((path, answer))
        except PoolError as problem:
            done.put(problem)
        finally:
            if child:
                self._end(child)

    def _start(self) -> _Child:
        """Start a child and wait until it is ready.

        Raises:
            PoolError: it cannot work.
        """
        try:
            child = _Child(self._rules, self._program)
        except OSError as problem:
            raise PoolError(f"Python cannot be started: {problem}") from problem
        with self._lock:
            self._children.add(child)
            stopped = self._stopped
        answer = None if stopped else child.ask(None, START_SECONDS)
        if answer is None or not answer.ready:
            code = self._end(child)
            raise PoolError(answer.fatal if answer and answer.fatal else f"a reader ended as it started ({code})")
        return child

    def _end(self, child: _Child) -> int:
        with self._lock:
            self._children.discard(child)
        return child.end()

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            left = list(self._children)
        for child in left:
            child.end()


def _ended(late: bool, code: int, seconds: float) -> str:
    if late:
        return f"reading it took longer than {seconds:g} seconds"
    return f"its reader was killed by signal {-code}" if code < 0 else f"its reader ended with exit code {code}"
