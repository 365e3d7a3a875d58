"""The text that is posted: a hidden mark that finds it again, and the report, within what GitHub takes."""

from __future__ import annotations

import re

import msgspec

from oortriage.report.document import Document
from oortriage.report.issue import LIMIT, issue_markdown
from oortriage.report.issue_parts import length

_FINGERPRINT = re.compile(r"[A-Za-z0-9.-]{1,80}")


class Body(msgspec.Struct, frozen=True):
    """A text to post, and what was cut of the report to make it fit, in words."""

    text: str
    cut: list[str] = []


def marker(fingerprint: str) -> str:
    """Return the hidden comment that a report of a failure begins with.

    Raises:
        ValueError: that is no fingerprint.
    """
    if not _FINGERPRINT.fullmatch(fingerprint) or "--" in fingerprint:
        raise ValueError(f"no fingerprint: {fingerprint!r}")
    return f"<!-- oortriage report {fingerprint} -->"


def is_marked(text: str, fingerprint: str) -> bool:
    """Say whether a text begins with the mark of a failure; further down it could be anybody's, from a log."""
    lines = text.lstrip("\ufeff").splitlines()
    return bool(lines) and lines[0].strip() == marker(fingerprint)


def comment_body(document: Document, fingerprint: str, limit: int = LIMIT) -> Body:
    """Write a comment of fewer characters than ``limit``."""
    head = marker(fingerprint) + "\n\n"
    cut = issue_markdown(document, limit - length(head))
    return Body(head + cut.text, cut.cut)
