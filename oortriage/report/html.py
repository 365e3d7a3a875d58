"""HTML: one page for all logs that were asked for; nothing in it is fetched from elsewhere."""

from __future__ import annotations

from oortriage.report._interface import Style
from oortriage.report.compose import compose
from oortriage.report.document import Document
from oortriage.report.material import Material
from oortriage.report.page import html_page
from oortriage.triage.diagnosis import Diagnosis


class Format:
    """A page is written at the end, when it is known how many logs there are."""

    def __init__(self, style: Style) -> None:
        """Take from the style what could not be read, which is told under the logs that could."""
        self._failed = style.failed
        self._held: list[Document] = []
        self._names: list[str] = []

    def begin(self) -> str:
        """Nothing is written yet."""
        return ""

    def render(self, diagnosis: Diagnosis, *, first: bool) -> str:
        """Hold one log's report."""
        self._held.append(compose(Material(diagnosis)))
        self._names.append(diagnosis.file)
        return ""

    def end(self, diagnoses: int) -> str:
        """Write the page; of no log there is none."""
        return html_page(*self._held, names=self._names, failed=self._failed) if self._held else ""
