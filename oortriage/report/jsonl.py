"""JSON lines: one object a log, written as soon as it is there."""

from __future__ import annotations

from oortriage.report._interface import Style
from oortriage.report.json import encode
from oortriage.triage.diagnosis import Diagnosis


class Format:
    """One line a diagnosis."""

    def __init__(self, style: Style) -> None:
        """Take a style, which data has no use for."""

    def begin(self) -> str:
        """Nothing comes first."""
        return ""

    def render(self, diagnosis: Diagnosis, *, first: bool) -> str:
        """Write one line."""
        return encode(diagnosis) + "\n"

    def end(self, diagnoses: int) -> str:
        """Nothing comes last."""
        return ""
