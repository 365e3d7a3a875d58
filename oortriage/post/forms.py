"""The bug forms of projects, filled: the headings of each as they are there, and under them what the report knows.

Looked up in November 2026 in `.github/ISSUE_TEMPLATE` of each repository: vLLM's `400-bug-report.yml`, Triton's
`bug.yml`, PyTorch's `bug-report.yml`. GitHub writes a form's fields as headings of the third level.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from oortriage.post.body import Body, comment_body, marker
from oortriage.report.document import Document, Items, Section, SectionKey
from oortriage.report.escape import shorten, visible
from oortriage.report.issue import LIMIT, issue_markdown
from oortriage.report.issue_parts import length

#: Characters of a title; GitHub takes 256.
_TITLE = 240
_ENVIRONMENT: tuple[SectionKey, ...] = ("environment",)
#: Of the room, what the environment may take.
_SHARE = 4
_NOTHING = "The log names no versions and no hardware."
_FENCE = re.compile(r" {0,3}(`{3,})[^`]*$")


class Form(msgspec.Struct, frozen=True):
    """A bug form: how its title begins, and its headings in their order. ``searched`` may be left out."""

    title: str
    bug: str
    environment: str
    environment_first: bool = False
    searched: str = ""


#: By the repository's name in lower case.
FORMS = {
    "vllm-project/vllm": Form(
        title="[Bug]: ",
        bug="🐛 Describe the bug",
        environment="Your current environment",
        environment_first=True,
        searched="Before submitting a new issue...",
    ),
    "triton-lang/triton": Form(title="", bug="Describe the bug", environment="Environment details"),
    "pytorch/pytorch": Form(title="", bug="🐛 Describe the bug", environment="Versions"),
}


def title_for(repository: str, document: Document) -> str:
    """Return the title of an issue as the repository's form begins it, in one line."""
    form = FORMS.get(repository.lower())
    title = " ".join(visible(document.title).split())
    return (form.title if form else "") + shorten(title, _TITLE)


def issue_body(
    repository: str, document: Document, fingerprint: str, searched: Sequence[str] = (), limit: int = LIMIT
) -> Body:
    """Fill the form of a repository; one without a known form gets the plain report.

    Args:
        repository: owner/name.
        document: the report.
        fingerprint: of the failure.
        searched: what was searched for before, one sentence each.
        limit: characters; the text has fewer.
    """
    form = FORMS.get(repository.lower())
    if form is None:
        return comment_body(document, fingerprint, limit)
    head = marker(fingerprint)
    last = _searched(form, searched)
    fixed = length("\n\n".join([head, f"### {form.bug}", f"### {form.environment}", last])) + 32
    room = limit - fixed
    setting = [one for one in document.sections if one.key in _ENVIRONMENT]
    told = [one for one in document.sections if one.key not in _ENVIRONMENT]
    environment = _part(document, setting, room // _SHARE)
    bug = _part(document, told, room - length(environment.text))
    parts = [f"### {form.bug}\n\n{bug.text}", f"### {form.environment}\n\n{environment.text or _NOTHING}"]
    if form.environment_first:
        parts.reverse()
    text = "\n\n".join(one for one in [head, *parts, last] if one) + "\n"
    return Body(text, [*environment.cut, *bug.cut])


def _part(document: Document, sections: Sequence[Section], room: int) -> Body:
    """Render some sections for below a form's heading: a level further down, without the report's own title."""
    if not sections:
        return Body("")
    # Headings become a character longer each.
    cut = issue_markdown(Document(document.title, document.verdict, list(sections)), room - len(sections) - 8)
    return Body(_lowered(cut.text.partition("\n")[2]).strip(), cut.cut)


def _lowered(text: str) -> str:
    """Put the report's headings a level further down; a line of code that looks like one stays."""
    lines = []
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            fence = "" if line.strip() == fence else fence
        elif found:
            fence = found[1]
        elif line.startswith("### "):
            line = "#" + line  # noqa: PLW2901
        lines.append(line)
    return "\n".join(lines)


def _searched(form: Form, searched: Sequence[str]) -> str:
    if not form.searched or not searched:
        return ""
    items = Section("made_with", "x", [Items(list(searched))])
    text = issue_markdown(Document("x", "", [items]), 4_000).text
    return f"### {form.searched}\n\n" + text.split("\n### ", 1)[-1].partition("\n")[2].strip()
