"""The child: reads the logs that are named on standard input, and answers each with a line of JSON."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import IO

import msgspec

from oortriage.api import Analyzer
from oortriage.errors import InputError, OortriageError
from oortriage.triage.clock import moment_of
from oortriage.triage.groups import Sighting, sighting


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a log; ``fatal``: the child cannot work at all. The first answer of a child says it is ready."""

    ready: bool = False
    fatal: str = ""
    sighting: Sighting | None = None
    failed: str = ""


def look(analyzer: Analyzer, path: str) -> Sighting:
    """Diagnose a log and keep what groups need.

    Raises:
        InputError: it cannot be read.
    """
    modified = None if path == "-" else _modified(path)
    log = analyzer.read(path, name="<stdin>" if path == "-" else shown(path))
    diagnosis = analyzer.judge(log)
    root = next((one.line for one in diagnosis.evidence if one.role == "root"), 0)
    return sighting(diagnosis, moment_of(log, root, modified))


def shown(path: str) -> str:
    """Write a path as text that JSON can hold: a name on disk may be any bytes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _modified(path: str) -> float | None:
    try:
        return Path(path).stat().st_mtime
    except (OSError, ValueError):
        return None


def main() -> None:
    """Answer until standard input ends; the folders of the user's own rules are the arguments."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its children
    answers = sys.stdout.buffer
    folders = [Path(one) for one in sys.argv[1:]]
    try:
        analyzer = Analyzer(folders)
    except OortriageError as problem:
        _answer(answers, msgspec.json.encode(Answer(fatal=str(problem))))
        return
    _answer(answers, msgspec.json.encode(Answer(ready=True)))
    for line in sys.stdin.buffer:
        path = os.fsdecode(msgspec.json.decode(line, type=bytes))
        try:
            text = msgspec.json.encode(Answer(sighting=look(analyzer, path)))
        except InputError as problem:
            text = _failed(str(problem).removeprefix(f"{path}: "))
        except Exception as problem:  # noqa: BLE001 (one log must not end a run over many)
            text = _failed(f"the reader failed on it: {type(problem).__name__}: {problem}"[:400])
        _answer(answers, text)
        if analyzer.matcher.timed_out:  # what a slow expression did to one log must not change the next
            analyzer = Analyzer(folders)


def _failed(reason: str) -> bytes:
    return msgspec.json.encode(Answer(failed=shown(reason)))


def _answer(answers: IO[bytes], text: bytes) -> None:
    answers.write(text + b"\n")
    answers.flush()


if __name__ == "__main__":
    main()
