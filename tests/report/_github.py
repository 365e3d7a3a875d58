"""What GitHub would make of a text: rendered by its own parser, then looked through for all that acts on a reader."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options

EXTENSIONS = ["table", "autolink", "strikethrough", "tasklist"]
VOID = {"br", "hr", "img", "input"}
#: All that a report is made of; no a, img, input, script.
TAGS = {
    "h2", "h3", "p", "em", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "pre", "code", "details", "summary",
}  # fmt: skip
#: What GitHub looks for in text after Markdown is done; it looks in no code.
LINKED = re.compile(
    r"@\w|#\d|\bGH-\d|\b(?:GHSA|CVE)-\w|https?://|ftp://|www\.|\b[0-9a-f]{7,40}\b|:[a-z_+-]+:", re.IGNORECASE
)


class Page(HTMLParser):
    """The page as a tree would have it: tags, running text, and code."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.running: list[str] = []
        self.blocks: list[str] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        names = {name for name, _ in attrs} - {"align", "start", "class"}
        self.wrong += [f"{tag} {name}" for name in names]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "pre":
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"/{tag}")

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"comment {data}")

    def handle_decl(self, decl: str) -> None:
        self.wrong.append(f"declaration {decl}")

    def handle_pi(self, data: str) -> None:
        self.wrong.append(f"instruction {data}")

    def handle_data(self, data: str) -> None:
        if "pre" in self.open:
            self.blocks[-1] += data
        elif "code" not in self.open:
            self.running.append(data)


def page(text: str) -> Page:
    """Render as GitHub does, but let raw HTML through, so that it is seen."""
    html = cmarkgfm.markdown_to_html_with_extensions(text, options=Options.CMARK_OPT_UNSAFE, extensions=EXTENSIONS)
    return Page(html)


def acting(text: str) -> list[str]:
    """List all in a text that would act on a reader, or that is no part of a report."""
    seen = page(text)
    found = [tag for tag in seen.tags if tag not in TAGS] + seen.wrong + [f"open {tag}" for tag in seen.open]
    found += [hit.group() for one in seen.running for hit in LINKED.finditer(one)]
    return found + re.findall(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f\ud800-\udfff]", text
    )
