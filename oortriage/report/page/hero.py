"""The head of a report: what ran out, in one look."""

from __future__ import annotations

import re

from oortriage.report.document import Document, Paragraph
from oortriage.report.page.markup import Html, join, running, tag

#: How the verdict's last paragraph tells how sure it is.
_SURE = re.compile(r"(?P<code>[\w ]+), (?P<status>fatal|recovered|unknown), confidence (?P<confidence>\d\.\d\d)")


def hero_html(document: Document, prefix: str, level: str) -> Html:
    """Write title, verdict and what else the verdict's section says; the section needs no place of its own then.

    Args:
        document: the report.
        prefix: what the names of this report's elements begin with.
        level: the heading, ``h1`` where the page is of one report.
    """
    name = f"{prefix}title"
    section = next((one for one in document.sections if one.key == "verdict"), None)
    told = [block.text for block in section.blocks if isinstance(block, Paragraph)] if section else []
    said = [one for one in told if one != document.verdict]
    sure = _SURE.fullmatch(said[-1]) if said else None
    parts = [tag(level, document.title, id=name), tag("p", running(document.verdict), class_="verdict")]
    parts += [tag("p", running(one)) for one in (said[:-1] if sure else said)]
    if sure:
        # A list, for that is what it is when it is heard.
        chips = [
            (sure["code"], "code"),
            (sure["status"], sure["status"]),
            (f"confidence {sure['confidence']}", "plain"),
        ]
        parts.append(tag("ul", *(tag("li", words, class_=kind) for words, kind in chips), class_="chips"))
    label = None if prefix else name  # of several reports, the whole report has the name
    return tag("section", join(parts, "\n"), aria_labelledby=label, id=f"{prefix}verdict", class_="hero")
