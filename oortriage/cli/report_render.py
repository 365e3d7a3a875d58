"""A report in the format that was asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from oortriage.report._interface import Style, open_report, render_all

if TYPE_CHECKING:
    from oortriage.report.document import Document
    from oortriage.report.material import Material
    from oortriage.report.redaction import Replacement

SCHEMA_VERSION = 1


class ReportFormat(str, Enum):
    """Formats of ``oortriage report``."""

    markdown = "markdown"
    html = "html"
    json = "json"
    sarif = "sarif"
    text = "text"


def rendered(
    format: ReportFormat, document: Document, material: Material, replaced: Sequence[Replacement], style: Style
) -> tuple[str, list[str]]:
    """Return the report as text, and what was cut to make it fit, in words."""
    if format is ReportFormat.markdown:
        from oortriage.report.issue import issue_markdown

        cut = issue_markdown(document)
        return cut.text, list(cut.cut)
    if format is ReportFormat.html:
        from oortriage.report.page import html_page

        return html_page(document), []
    if format is ReportFormat.sarif:
        return render_all(open_report("sarif", style), [material.diagnosis]), []
    if format is ReportFormat.text:
        from oortriage.report.plain import plain_text

        return plain_text(document, style.width), []
    return _json(document, material, replaced), []


def _json(document: Document, material: Material, replaced: Sequence[Replacement]) -> str:
    """Write the parts that a report is made of; what was not run is null."""
    whole = {
        "schema_version": SCHEMA_VERSION,
        "title": document.title,
        "verdict": document.verdict,
        **msgspec.to_builtins(material),
        "redacted": [{"kind": one.kind, "placeholder": one.placeholder, "count": one.count} for one in replaced],
    }
    return json.dumps(whole, indent=2) + "\n"
