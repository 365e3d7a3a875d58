"""The page: whole HTML, nothing fetched, nothing of a log's that acts, a name for every region."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.report._interface import Style, open_report, render_all
from oortriage.report.compose import compose
from oortriage.report.document import Code, Document, Figure, Paragraph, Section, Table
from oortriage.report.escape import visible
from oortriage.report.material import Material
from oortriage.report.page import html_page
from oortriage.report.page.picture import harmless
from oortriage.triage.diagnosis import Diagnosis
from tests.report._composed import document, everything
from tests.report._made import hostile, made

VOID = {"meta", "br"}
#: What could fetch something or act: none of it is ever in a page.
ACTIVE = {"script", "img", "link", "iframe", "object", "embed", "form", "base", "input", "button", "video", "audio", "use", "image", "foreignobject", "animate"}  # fmt: skip


class Page(HTMLParser):
    """Reads a page strictly: every element that opens is closed in turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert len(attributes) == len(dict(attributes))
        self.elements.append((tag, {name: value or "" for name, value in attributes}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def all(self, *tags: str) -> list[dict[str, str]]:
        return [found for tag, found in self.elements if tag in tags]


def sound(whole: str) -> Page:
    """Read a page and look for all that must never be in one."""
    page = Page(whole)
    whole.encode()
    assert whole.startswith("<!DOCTYPE html>\n<html lang=")
    assert not ACTIVE & {tag for tag, _ in page.elements}
    ids = Counter(found["id"] for _, found in page.elements if "id" in found)
    assert set(ids.values()) <= {1}
    for tag, found in page.elements:
        assert not [name for name in found if name.startswith("on") or name in ("src", "srcset", "xlink:href")]
        if "href" in found:
            assert tag == "a"
            assert found["href"].removeprefix("#") in ids
        for name in found.get("aria-labelledby", "").split():
            assert name in ids
    for style in re.findall(r"<style>(.*?)</style>", whole, re.DOTALL):
        assert not re.search(r"url\(|@import|https?:", style)
    policies = [found["content"] for found in page.all("meta") if found.get("http-equiv")]
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    labels = [found["aria-label"] for found in page.all("div", "nav") if found.get("role") == "region"]
    assert len(labels) == len(set(labels))
    return page


def one(*blocks: object, key: str = "evidence", title: str = "title") -> str:
    return html_page(Document("t", "v.", [Section(key, title, list(blocks))]))  # type: ignore[arg-type]


def test_a_whole_report_is_sound_and_says_everything() -> None:
    whole = compose(everything("text"))
    page = sound(html_page(whole))
    said = " ".join(page.words.split())
    for section in whole.sections:
        assert section.title in said or section.key == "verdict"
        for block in section.blocks:
            if isinstance(block, Table):
                for cell in (cell for row in block.rows for cell in row):
                    assert " ".join(cell.split()) in said
    assert whole.verdict in said
    assert said.count(whole.verdict) == 1


def test_each_fixture_is_sound(every: list[Diagnosis]) -> None:
    for diagnosis in every:
        page = sound(html_page(compose(Material(diagnosis))))
        assert page.all("h1")


def test_headings_are_in_order_and_regions_take_the_focus() -> None:
    for whole, ones in ((html_page(compose(everything("a"))), 1), (html_page(*[compose(everything("a"))] * 3), 1)):
        page = sound(whole)
        levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == ones
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
        for found in page.all("div"):
            assert ("tabindex" in found) == (found.get("role") == "region") == ("aria-label" in found)
        assert next(found["href"] for found in page.all("a")) == "#content"
        assert {"header", "nav", "main", "footer"} <= {tag for tag, _ in page.elements}
        assert all(found["scope"] in ("col", "row") for found in page.all("th"))
        assert len(page.all("caption")) == len(page.all("table"))
        assert all(found["role"] == "img" and found["aria-label"] for found in page.all("svg") if found)


def test_the_verdict_comes_first_with_code_status_and_confidence() -> None:
    whole = html_page(compose(Material(made())))
    assert '<ul class="chips"><li class="code">SM101</li><li class="fatal">fatal</li>' in whole
    assert '<li class="plain">confidence 0.90</li>' in whole


def test_lines_of_a_log_stand_beside_their_numbers_under_their_file() -> None:
    whole = one(Code("a.log:7: out: of resource\na.log:9: again\nb.log:1: more", "said"))
    assert re.findall(r'<p class="file">(.*?)</p>', whole) == ["a.log", "b.log"]
    assert re.findall(r"</span>(\d+)</span><code>(.*?)</code>", whole) == [
        ("7", "out: of resource"),
        ("9", "again"),
        ("1", "more"),
    ]
    assert "<pre>" in one(Code("a.log:7: one\nno place", "said"))


def test_a_change_is_a_step_with_its_effect_cost_and_check() -> None:
    whole = one(Code("--a", "1. helps; cost: speed; costs speed; verify: look."), key="change")
    assert dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", whole)) == {
        "Effect": "helps",
        "Cost": "speed; costs speed",
        "Check": "look",
    }
    assert "<figcaption>told in another way</figcaption>" in one(Code("--a", "told in another way"), key="change")


def test_a_change_of_the_report_is_such_a_step(chosen: dict[str, Diagnosis]) -> None:
    found = [one for one in chosen.values() if one.prescriptions]
    assert found
    for diagnosis in found:
        assert html_page(compose(Material(diagnosis))).count('class="step"') == len(diagnosis.prescriptions)


def test_tables_name_their_rows_and_leave_out_what_says_nothing() -> None:
    whole = one(Table(["#", "buffer", "nothing"], [["1", "K", ""], ["2", "", ""]], numeric=[0], caption="said"))
    assert '<th scope="row">K</th>' in whole
    assert ">nothing<" not in whole
    assert '<td class="number">2</td>' in whole
    assert '<th scope="row">K</th>' not in one(Table(["n", "fits"], [["1", "K"]], numeric=[0]))
    assert '<span class="mark bad">FAILED</span>' in one(Table(["layer", ""], [["bytes", "FAILED"]]))


def test_a_difference_is_coloured_by_line() -> None:
    assert '<span class="row added">+b\n</span>' in one(Code("-a\n+b", language="diff"))


@settings(max_examples=60, deadline=None)
@given(hostile | st.text(max_size=80))
def test_no_text_of_a_log_becomes_markup(text: str) -> None:
    plain = sound(html_page(document("x")))
    whole = html_page(document(f"x{text}"))
    page = sound(whole)
    # Lines make rows, and backticks code: nothing else depends on the text.
    some = {"span", "code"}
    assert [tag for tag, _ in page.elements if tag not in some] == [tag for tag, _ in plain.elements if tag not in some]
    assert visible(f"x{text}".replace("\t", "    ")).replace("`", "") in page.words.replace("`", "")
    assert not [char for char in whole if char != "\n" and visible(char) != char and char != "\t"]


@settings(max_examples=25, deadline=None)
@given(hostile)
def test_no_text_of_a_material_becomes_markup(text: str) -> None:
    sound(html_page(compose(everything(text))))


@pytest.mark.parametrize(
    "svg",
    [
        "<svg/>",
        '<svg xmlns="http://www.w3.org/2000/svg"><script>x</script></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg" onload="x"/>',
        '<svg xmlns="http://www.w3.org/2000/svg"><rect style="fill:url(https://evil.example)"/></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"><style>@import "x"</style></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"><g><a href="https://evil.example"/></g></svg>',
        '<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg"><text>&a;</text></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"><desc><b xmlns="http://www.w3.org/1999/xhtml"/></desc></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"></svg><img src="https://evil.example"/>',
        '<svg xmlns="http://www.w3.org/2000/svg"><rect></svg>',
    ],
)
def test_a_picture_that_acts_or_is_not_sound_gives_way_to_its_drawing_in_characters(svg: str) -> None:
    assert not harmless(svg)
    whole = one(Figure(svg, "said", "in characters"))
    page = sound(whole)
    assert "in characters" in page.words
    assert not page.all("svg")


def test_our_own_pictures_stand_in_the_page() -> None:
    whole = compose(everything("<b>"))
    figures = [one for section in whole.sections for one in section.blocks if isinstance(one, Figure)]
    assert len(figures) >= 2
    assert len(sound(html_page(whole)).all("svg")) == len(figures)


def test_several_logs_are_one_page_that_begins_with_a_list_of_them(chosen: dict[str, Diagnosis]) -> None:
    style = Style(many=True)
    style.failed.append("gone.log: <cannot be read>")
    page = sound(render_all(open_report("html", style), chosen.values()))
    assert len(page.all("article")) == len(chosen)
    assert all(one.file in page.words for one in chosen.values())
    assert "gone.log: <cannot be read>" in page.words


def test_no_log_is_no_page() -> None:
    assert render_all(open_report("html", Style()), []) == ""


def test_what_stands_between_backticks_is_code() -> None:
    assert "<p>run <code>a &lt;b&gt;</code> now</p>" in one(Paragraph("run `a <b>` now"))
