"""Where a verb's output goes, in what width and colour."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from enum import Enum
from pathlib import Path

from oortriage.errors import UsageError
from oortriage.report._interface import Style, open_report
from oortriage.triage.diagnosis import Diagnosis


class FormatName(str, Enum):
    """Formats of ``--format``."""

    text = "text"
    json = "json"
    jsonl = "jsonl"
    markdown = "markdown"


class Color(str, Enum):
    """Settings of ``--color``."""

    auto = "auto"
    always = "always"
    never = "never"


def style_for(color: Color, output: Path | None) -> Style:
    """Choose width and colour: a terminal's own, else 80 columns and plain."""
    to_terminal = output is None and sys.stdout.isatty()
    if color is Color.auto:
        wanted = to_terminal or bool(os.environ.get("FORCE_COLOR"))
        colored = wanted and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    else:
        colored = color is Color.always
    width = shutil.get_terminal_size((80, 24)).columns if to_terminal else 80
    return Style(width=min(width, 120), color=colored)


def write(diagnoses: Iterable[Diagnosis], name: str, style: Style, output: Path | None) -> list[Diagnosis]:
    """Write diagnoses in a format, each as soon as it is there, and return them.

    Raises:
        UsageError: the output file cannot be written.
    """
    report = open_report(name, style)
    done: list[Diagnosis] = []
    try:
        sink = output.open("w", encoding="utf-8") if output else sys.stdout
    except OSError as problem:
        raise UsageError(f"{output}: cannot be written: {problem}") from problem
    try:
        sink.write(report.begin())
        for diagnosis in diagnoses:
            sink.write(report.render(diagnosis, first=not done))
            sink.flush()
            done.append(diagnosis)
        sink.write(report.end(len(done)))
        sink.flush()
    finally:
        if output:
            sink.close()
    return done


def exit_code(diagnoses: Iterable[Diagnosis], *, failed_inputs: int, exit_zero: bool) -> int:
    """Join several logs' codes: an unreadable input wins, then a found failure, then a doubt."""
    codes = {diagnosis.exit_code for diagnosis in diagnoses}
    if failed_inputs:
        return 2
    if exit_zero:
        return 0
    return 1 if 1 in codes else 3 if 3 in codes else 0
