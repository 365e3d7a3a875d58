"""The page: whole HTML, nothing fetched, nothing of a log's that acts, a name for every region."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.api import default_analyzer
from oortriage.report._interface import Style, open_report, render_all
from oortriage.report.compose import compose
from oortriage.report.document import Code, Document, Figure, Items, Paragraph, Section, Table
from oortriage.report.material import Material
from oortriage.report.page import html_page
from tests.conftest import ROOT

VOID = {"meta", "br", "path", "rect", "line", "circle", "use", "polyline", "polygon"}
CASES = ["triton/vllm-36802-t4-fp32-head256"]


class Page(HTMLParser):
    """Reads a page strictly enough: every element that opens is closed in turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def page_of(case: str) -> str:
    diagnosis = default_analyzer().file(ROOT / "fixtures" / case / "log.txt", name="crash.log")
    return html_page(compose(Material(diagnosis)))


@pytest.mark.parametrize("case", CASES)
def test_a_whole_page_that_asks_for_nothing(case: str) -> None:
    page = Page(page_of(case))
    assert page.open == []
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "img", "link", "iframe", "object", "form", "base"}
    targets = [value for _, found in page.elements for name, value in found.items() if name in ("href", "src")]
    assert targets
    assert all(one and one.startswith("#") for one in targets)
    named = {found.get("id") for _, found in page.elements}
    assert {one[1:] for one in targets if one} <= named
    assert "81,920" in page.words


def test_headings_and_regions_have_names() -> None:
    page = Page(page_of(CASES[0]))
    assert [tag for tag, _ in page.elements].count("h1") == 1
    regions = [found for _, found in page.elements if found.get("role") == "region"]
    assert regions
    assert all(found["tabindex"] == "0" and found["aria-label"] for found in regions)
    assert {found.get("lang") for tag, found in page.elements if tag == "html"} == {"en"}


@settings(max_examples=60, deadline=None)
@given(
    st.text(alphabet=st.characters(codec="utf-8"), max_size=200)
    | st.sampled_from(["<script>x</script>", '"><img src=x onerror=y>', "</code></pre>", "\u202e\x1b[31m"])
)
def test_no_text_of_a_log_becomes_markup(text: str) -> None:
    blocks = [
        Paragraph(text),
        Items([text]),
        Code(text, text),
        Table([text], [[text]], [0], text),
        Figure("<svg></svg>", text),
    ]
    whole = html_page(Document(text, text, [Section("evidence", text, blocks)]))
    plain = html_page(
        Document(
            "x",
            "x",
            [
                Section(
                    "evidence",
                    "x",
                    [
                        Paragraph("x"),
                        Items(["x"]),
                        Code("x", "x"),
                        Table(["x"], [["x"]], [0], "x"),
                        Figure("<svg></svg>", "x"),
                    ],
                )
            ],
        )
    )
    ours = [tag for tag, _ in Page(plain).elements]
    found = [tag for tag, _ in Page(whole).elements]
    optional = {"thead", "tr", "th", "caption", "p"}  # left out where the text is empty
    assert [one for one in found if one not in optional] == [one for one in ours if one not in optional]
    assert "\x1b" not in whole
    assert "\u202e" not in whole


def test_several_logs_are_one_page() -> None:
    diagnosis = default_analyzer().file(ROOT / "fixtures" / CASES[0] / "log.txt", name="crash.log")
    whole = render_all(open_report("html", Style(many=True)), [diagnosis, diagnosis])
    page = Page(whole)
    names = [found["id"] for _, found in page.elements if found.get("id") and found["id"].startswith("r")]
    assert len(names) == len(set(names))
    assert [tag for tag, _ in page.elements].count("article") == 2


def test_no_log_is_no_page() -> None:
    assert render_all(open_report("html", Style()), []) == ""
