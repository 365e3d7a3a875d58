"""Where a verb's output goes, in what width and colour, and what becomes of it when it cannot go there."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Iterable
from enum import Enum
from pathlib import Path

from oortriage.errors import UsageError
from oortriage.report._interface import Style, open_report
from oortriage.report.escape import visible
from oortriage.triage.diagnosis import Diagnosis


class FormatName(str, Enum):
    """Formats of ``--format``."""

    text = "text"
    json = "json"
    jsonl = "jsonl"
    markdown = "markdown"
    html = "html"
    sarif = "sarif"


class ReplayFormat(str, Enum):
    """Formats of reproduce and fit."""

    text = "text"
    json = "json"
    markdown = "markdown"


class GridFormat(str, Enum):
    """Formats of experiment."""

    text = "text"
    json = "json"
    markdown = "markdown"
    csv = "csv"


class Color(str, Enum):
    """Settings of ``--color``."""

    auto = "auto"
    always = "always"
    never = "never"


class ReaderGoneError(Exception):
    """Whoever read the output has seen enough (``| head``): no failure, and nothing more to write.

    It is no ``OSError``, because typer ends with 1 on a closed pipe, which here means a found failure.
    """


class Sink:
    """Standard output, or a file. What an encoding cannot hold is written as an escape."""

    def __init__(self, path: Path | None = None) -> None:
        """Open the file.

        Raises:
            UsageError: it cannot be written.
        """
        self._name = str(path or "standard output")
        try:
            self._file = path.open("w", encoding="utf-8", errors="backslashreplace") if path else None
        except OSError as problem:
            raise self._refusal(problem) from problem

    def put(self, text: str) -> None:
        """Write a text, at once.

        Raises:
            UsageError: it cannot be written.
            ReaderGoneError: nobody reads it.
        """
        stream = self._file or sys.stdout
        try:
            stream.write(text)
            stream.flush()
        except OSError as problem:
            if not self._file:
                _drop_output()
            if isinstance(problem, BrokenPipeError):
                raise ReaderGoneError from problem
            raise self._refusal(problem) from problem

    def _refusal(self, problem: OSError) -> UsageError:
        return UsageError(f"{self._name}: cannot be written: {problem.strerror or problem}")

    def close(self) -> None:
        """Close the file; standard output stays open."""
        if self._file:
            with contextlib.suppress(OSError):  # all is flushed, or has failed before
                self._file.close()


def _drop_output() -> None:
    """Send standard output nowhere, or Python would fail once more on what is left when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def escape_unprintable() -> None:
    """Let standard output write what its encoding lacks as an escape: logs hold any letter."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def say(text: str, end: str = "\n") -> None:
    """Print a text to standard output; it fails as :meth:`Sink.put` does."""
    Sink().put(text + end)


def complain(problem: object) -> None:
    """Print an error to stderr as one line, in which no file name can act on the terminal."""
    print(f"oortriage: {visible(str(problem))}".replace("\n", "\\n"), file=sys.stderr)


def ask(question: str) -> str:
    """Ask on standard error, so that standard output stays data; the end of the input is an empty answer."""
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def style_for(color: Color, output: Path | None, *, many: bool = False) -> Style:
    """Choose width and colour: a terminal's own, else 80 columns and plain."""
    to_terminal = output is None and sys.stdout.isatty()
    if color is Color.auto:
        wanted = to_terminal or bool(os.environ.get("FORCE_COLOR"))
        colored = wanted and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    else:
        colored = color is Color.always
    width = shutil.get_terminal_size((80, 24)).columns if to_terminal else 80
    return Style(width=min(width, 120), color=colored, many=many)


def write(diagnoses: Iterable[Diagnosis], name: str, style: Style, output: Path | None) -> list[Diagnosis]:
    """Write diagnoses in a format, each as soon as it is there, and return them.

    A reader who goes away ends the work; what was diagnosed until then is returned.

    Raises:
        UsageError: the output cannot be written.
    """
    report = open_report(name, style)
    done: list[Diagnosis] = []
    with contextlib.closing(Sink(output)) as sink, contextlib.suppress(ReaderGoneError):
        sink.put(report.begin())
        for diagnosis in diagnoses:
            done.append(diagnosis)
            sink.put(report.render(diagnosis, first=len(done) == 1))
        sink.put(report.end(len(done)))
    return done


def exit_code(diagnoses: Iterable[Diagnosis], *, failed_inputs: int, exit_zero: bool) -> int:
    """Join several logs' codes: an unreadable input wins, then a found failure, then a doubt."""
    codes = {diagnosis.exit_code for diagnosis in diagnoses}
    if failed_inputs:
        return 2
    if exit_zero:
        return 0
    return 1 if 1 in codes else 3 if 3 in codes else 0
