"""A report as one HTML file: no request leaves it, no script runs in it, light and dark, for screen and paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files

from oortriage.report.document import Code, Document, Section
from oortriage.report.page.blocks import Namer, block_html
from oortriage.report.page.hero import hero_html
from oortriage.report.page.markup import Html, join, tag
from oortriage.report.page.steps import step_html
from oortriage.version import __version__

#: Nothing is fetched: styles are in the page, drawings too. A ``frame-ancestors`` would have no effect in a meta.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_STYLES = ("base.css", "parts.css", "print.css")


def html_page(*documents: Document, names: Sequence[str] = (), failed: Sequence[str] = ()) -> str:
    """Write documents as one self-contained page; every string of theirs is escaped.

    Args:
        documents: one log each; with more than one, the page begins with a list of them.
        names: what each document's log is called in that list.
        failed: what is to be said of logs that could not be read.
    """
    alone = len(documents) == 1
    named = _namer()
    title = documents[0].title if alone else f"{len(documents)} logs"
    if alone:
        body = [_report(documents[0], "", named, alone=True)]
        links = [(f"#{one.key}", one.title) for one in documents[0].sections]
    else:
        body = [_index(title, documents, names)]
        body += [_report(one, f"r{at}-", named, alone=False) for at, one in enumerate(documents, 1)]
        labels = [names[at] if at < len(names) else one.title for at, one in enumerate(documents)]
        links = [(f"#r{at}-title", label) for at, label in enumerate(labels, 1)]
    body += [_failed(failed)] if failed else []
    nav = tag("nav", tag("ul", *(tag("li", tag("a", label, href=to)) for to, label in links)), aria_label="Contents")
    return (
        "<!DOCTYPE html>\n"
        + tag("html", "\n", _head(title), "\n", _body(body, nav if links else Html("")), "\n", lang="en")
        + "\n"
    )


def _head(title: str) -> Html:
    parts = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · oortriage"),
        tag("style", _style()),
    ]
    return tag("head", join(parts, "\n"))


def _body(body: Sequence[Html], nav: Html) -> Html:
    parts = [
        tag("a", "Skip to the report", class_="skip", href="#content"),
        tag("header", tag("p", tag("b", "oortriage"), tag("span", "GPU memory crash report")), class_="top"),
        tag("div", nav, tag("main", join(body, "\n"), id="content", tabindex="-1"), class_="page"),
        tag("footer", tag("p", f"Written by oortriage {__version__}. This page loads nothing and runs nothing.")),
    ]
    return tag("body", join(parts, "\n"))


@lru_cache(maxsize=1)
def _style() -> Html:
    folder = files("oortriage.report.page").joinpath("css")
    return Html("".join(folder.joinpath(name).read_text(encoding="utf-8") for name in _STYLES))


def _namer() -> Namer:
    seen: Counter[str] = Counter()

    def named(label: str) -> str:
        seen[label] += 1
        return label if seen[label] == 1 else f"{label} ({seen[label]})"

    return named


def _report(document: Document, prefix: str, named: Namer, *, alone: bool) -> Html:
    sections = [one for one in document.sections if one.key != "verdict"]
    parts = [hero_html(document, prefix, "h1" if alone else "h2")]
    parts += [_section(one, prefix, named, alone=alone) for one in sections]
    return tag("article", join(parts, "\n"), aria_labelledby=f"{prefix}title")


def _section(section: Section, prefix: str, named: Namer, *, alone: bool) -> Html:
    name = f"{prefix}{section.key}"
    heading = tag("h2" if alone else "h3", section.title, id=f"{name}-heading")
    parts: list[Html] = []
    steps = [
        step_html(one, named) if section.key == "change" and isinstance(one, Code) else None for one in section.blocks
    ]
    if steps and all(steps):
        parts.append(tag("div", *(one for one in steps if one), role="list", class_="steps"))
    else:
        parts += [block_html(one, named, section.title) for one in section.blocks]
    # With a name it is a landmark; of several reports, whose sections have the same names, only the reports are.
    label = f"{name}-heading" if alone else None
    return tag("section", heading, "\n", join(parts, "\n"), aria_labelledby=label, id=name, class_=section.key)


def _index(title: str, documents: Sequence[Document], names: Sequence[str]) -> Html:
    rows = []
    for at, one in enumerate(documents, 1):
        label = names[at - 1] if at <= len(names) else f"log {at}"
        link = tag("a", label, href=f"#r{at}-title")
        rows.append(tag("tr", tag("th", link, scope="row"), tag("td", one.title)))
    head = tag("thead", tag("tr", tag("th", "log", scope="col"), tag("th", "verdict", scope="col")))
    table = tag("table", tag("caption", "Every log and its verdict", class_="hidden"), head, tag("tbody", *rows))
    region = tag("div", table, class_="scroll", role="region", tabindex="0", aria_label="Every log and its verdict")
    return tag("section", tag("h1", title, id="title"), region, aria_labelledby="title", class_="hero")


def _failed(failed: Sequence[str]) -> Html:
    heading = tag("h2", "What could not be read", id="failed-heading")
    return tag("section", heading, tag("ul", *(tag("li", one) for one in failed)), aria_labelledby="failed-heading")
