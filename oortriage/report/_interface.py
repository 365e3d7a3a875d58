"""What a report format is: a name, and one way to turn diagnoses into text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol

from oortriage.errors import UsageError
from oortriage.triage.diagnosis import Diagnosis


class Report(Protocol):
    """One format. A file of this package holds one class ``Format`` that fits this protocol."""

    def begin(self) -> str:
        """Return what stands before the first diagnosis."""

    def render(self, diagnosis: Diagnosis, *, first: bool) -> str:
        """Return one diagnosis as text, with its line break."""

    def end(self, diagnoses: int) -> str:
        """Return what stands after the last one."""


class Style:
    """How a report is wanted; a format ignores what it has no use for."""

    def __init__(self, *, width: int = 80, color: bool = False, many: bool = False) -> None:
        """Keep the width in columns, whether colours are wanted, and whether several logs were asked for."""
        self.width = width
        self.color = color
        self.many = many
        #: Folders of the user's own rules, for a format that describes rules.
        self.rule_folders: Sequence[Path] = ()
        #: Messages about inputs that could not be read; the list may grow until the report ends.
        self.failed: list[str] = []


#: Format names and the modules that hold them.
FORMATS = {
    "text": "oortriage.report.text",
    "json": "oortriage.report.json",
    "jsonl": "oortriage.report.jsonl",
    "markdown": "oortriage.report.markdown",
    "html": "oortriage.report.html",
    "sarif": "oortriage.report.sarif",
}


def open_report(name: str, style: Style) -> Report:
    """Load a format by name.

    Raises:
        UsageError: there is no such format.
    """
    if name not in FORMATS:
        raise UsageError(f"no format {name!r}; there are {', '.join(FORMATS)}")
    report: Report = import_module(FORMATS[name]).Format(style)
    return report


def render_all(report: Report, diagnoses: Iterable[Diagnosis]) -> str:
    """Render diagnoses to one string."""
    parts = [report.begin()]
    count = 0
    for diagnosis in diagnoses:
        parts.append(report.render(diagnosis, first=count == 0))
        count += 1
    parts.append(report.end(count))
    return "".join(parts)
