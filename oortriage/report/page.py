"""A report as one HTML file: no request leaves it, no script runs in it, light and dark, for screen and paper."""

from __future__ import annotations

from functools import lru_cache
from html import escape
from pathlib import Path

from oortriage.report.document import Block, Code, Document, Figure, Items, Paragraph, Section, Table
from oortriage.report.escape import visible

#: Nothing is fetched: styles are in the page, drawings too. A ``frame-ancestors`` would have no effect in a meta.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def html_page(*documents: Document) -> str:
    """Write documents as one self-contained page; every string of theirs is escaped.

    Args:
        documents: one log each; at least one.
    """
    title = documents[0].title if len(documents) == 1 else f"{len(documents)} reports"
    bodies = "\n".join(_document(one, f"r{number}-") for number, one in enumerate(documents, 1))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{_text(title)}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#content">To the report</a>\n<main id="content" tabindex="-1">\n{bodies}\n</main>\n'
        "</body>\n</html>\n"
    )


@lru_cache(maxsize=1)
def _style() -> str:
    return Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def _document(document: Document, prefix: str) -> str:
    links = "".join(f'<li><a href="#{prefix}{one.key}">{_text(one.title)}</a></li>' for one in document.sections)
    head = f'<h1>{_text(document.title)}</h1>\n<p class="verdict">{_text(document.verdict)}</p>\n'
    # A document's sections may be told apart by nothing but their place on the page.
    contents = f'<nav aria-label="Contents: {_text(document.title)}"><ul>{links}</ul></nav>\n' if links else ""
    sections = "\n".join(_section(one, prefix) for one in document.sections)
    return f"<article>\n{head}{contents}{sections}\n</article>"


def _section(section: Section, prefix: str) -> str:
    blocks = "\n".join(_block(one, f"{section.title}, part {number}") for number, one in enumerate(section.blocks, 1))
    name = f"{prefix}{section.key}"
    return f'<section aria-labelledby="{name}">\n<h2 id="{name}">{_text(section.title)}</h2>\n{blocks}\n</section>'


def _block(block: Block, label: str) -> str:
    if isinstance(block, Paragraph):
        return f"<p>{_text(block.text)}</p>"
    if isinstance(block, Items):
        kind = "ol" if block.numbered else "ul"
        return f"<{kind}>{''.join(f'<li>{_text(one)}</li>' for one in block.items)}</{kind}>"
    if isinstance(block, Code):
        caption = f'<p class="caption">{_text(block.caption)}</p>\n' if block.caption else ""
        return caption + _scroll(f"<pre><code>{_lines(block.text)}</code></pre>", block.caption or label)
    if isinstance(block, Figure):
        # The drawing is our own code's, which escapes what it is given; its words stand beside it for all.
        return f"<figure>\n{block.svg}\n<figcaption>{_text(block.alt)}</figcaption>\n</figure>"
    return _table(block, label)


def _table(table: Table, label: str) -> str:
    def row(tag: str, texts: list[str]) -> str:
        return "".join(_cell(tag, one, number=column in table.numeric) for column, one in enumerate(texts))

    caption = f"<caption>{_text(table.caption)}</caption>" if table.caption else ""
    head = f"<thead><tr>{row('th', table.head)}</tr></thead>" if any(table.head) else ""
    body = "".join(f"<tr>{row('td', one)}</tr>" for one in table.rows)
    return _scroll(f"<table>{caption}{head}<tbody>{body}</tbody></table>", table.caption or label)


def _cell(tag: str, text: str, *, number: bool) -> str:
    scope = ' scope="col"' if tag == "th" else ""
    kind = ' class="number"' if number else ""
    return f"<{tag}{scope}{kind}>{_text(text)}</{tag}>"


def _scroll(inside: str, label: str) -> str:
    """Let what is wide scroll in a region of its own, which the keyboard reaches and a screen reader names."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{_text(label)}">{inside}</div>'


def _text(text: str) -> str:
    return escape(visible(text))


def _lines(text: str) -> str:
    return "\n".join(_text(line) for line in text.splitlines())
