"""The child of an experiment: reads what to do, writes a line of JSON at every step, ends with its parent."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import IO

import msgspec

from oortriage.errors import OortriageError
from oortriage.serve.run import Ask, Told


def main() -> None:
    """Run one experiment; standard input stays open as long as somebody wants it."""
    # What a library prints must not stand between our lines.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    ask = msgspec.json.decode(sys.stdin.buffer.readline(), type=Ask)
    threading.Thread(target=_watch, daemon=True).start()
    try:
        _tell(out, run(ask, out))
    except OortriageError as problem:
        _tell(out, Told(problem=str(problem)))
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(1)  # nobody listens any more


def run(ask: Ask, out: IO[bytes]) -> Told:
    """Compile the grid as `oortriage experiment` does.

    Raises:
        OortriageError: nothing can be compiled; the message says what is missing.
    """
    from oortriage.replay import experiment as replay
    from oortriage.replay.options import Options
    from oortriage.replay.selection import select

    chosen = select(Options(kernel=ask.kernel, gpu=ask.gpu), ask.diagnosis)
    factors = replay.read_vary([])
    return Told(
        experiment=replay.experiment(chosen, factors, progress=lambda done, whole: _tell(out, Told(done, whole)))
    )


def _tell(out: IO[bytes], told: Told) -> None:
    out.write(msgspec.json.encode(told) + b"\n")
    out.flush()


def _watch() -> None:
    """Interrupt the work when the parent is gone: the replay then ends its compilers."""
    sys.stdin.buffer.read()
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        os._exit(1)
