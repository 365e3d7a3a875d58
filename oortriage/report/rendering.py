"""A whole report in the format that was asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from oortriage.report._interface import Style, open_report, render_all

if TYPE_CHECKING:
    from oortriage.report.document import Document
    from oortriage.report.material import Material
    from oortriage.report.redaction import Replacement

SCHEMA_VERSION = 1

#: Formats of a whole report.
Kind = Literal["markdown", "html", "json", "sarif", "text"]


def rendered(
    kind: Kind, document: Document, material: Material, replaced: Sequence[Replacement], style: Style
) -> tuple[str, list[str]]:
    """Return the report as text, and what was cut to make it fit, in words.

    Args:
        kind: the format.
        document: what ``compose`` made of the material.
        material: the parts; redacted already, if they are to be.
        replaced: what was redacted, without the secrets.
        style: width of text and folders of rules.
    """
    if kind == "markdown":
        from oortriage.report.issue import issue_markdown

        cut = issue_markdown(document)
        return cut.text, list(cut.cut)
    if kind == "html":
        from oortriage.report.page import html_page

        return html_page(document), []
    if kind == "sarif":
        return render_all(open_report("sarif", style), [material.diagnosis]), []
    if kind == "text":
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
