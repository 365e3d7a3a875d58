"""The SVG helpers: nothing gets out of a string, and text is read on every colour."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.report.draw.heat_svg import FITS, OVER
from oortriage.report.draw.svg import (
    OTHER_FILL,
    ROLE_FILLS,
    Markup,
    clean,
    contrast,
    document,
    element,
    ink_class,
    label,
    legend,
    mix,
)
from tests.report._made import hostile
from tests.report.draw._made import parsed, texts

colors = st.integers(0, 0xFFFFFF).map(lambda value: f"#{value:06x}")


def test_strings_are_escaped_and_markup_is_not():
    inner = element("b", "<&>")
    assert inner == "<b>&lt;&amp;&gt;</b>"
    assert element("a", inner, "\"x'") == "<a><b>&lt;&amp;&gt;</b>&quot;x&#39;</a>"
    assert element("rect", x=1, y=2.25, stroke_width=3.0, class_='"><script>') == (
        '<rect x="1" y="2.2" stroke-width="3" class="&quot;&gt;&lt;script&gt;"/>'
    )


def test_what_cannot_be_seen_is_dropped():
    assert clean("a\x1b[31mb\u202ec\u200bd\ufeffe\x00\ud800\uffff") == "a[31mbcde"
    assert clean("two\nlines\tand more") == "two lines and more"
    assert clean("x" * 300, 10) == "x" * 9 + "…"


@given(hostile | st.text())
@settings(deadline=None)
def test_a_picture_of_any_text_is_sound(text):
    root = parsed(document(text, text, 100, [label(0, 0, text), element("rect", element("title", text), id=text)]))
    assert texts(root) == [clean(text)]
    assert texts(root, "title") == [clean(text)] * 2


def test_an_escaped_attribute_reads_back():
    assert ET.fromstring(element("a", title="<'&\">")).get("title") == "<'&\">"


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@given(colors)
def test_black_or_white_is_always_read(fill):
    ink = {"oor-on-light": "#000000", "oor-on-dark": "#ffffff"}[ink_class(fill)]
    assert contrast(fill, ink) >= 4.5


def test_fills_by_role_take_black_text_and_stay_apart():
    fills = [*ROLE_FILLS.values(), OTHER_FILL]
    assert all(contrast(fill, "#000000") > 6 for fill in fills)
    assert len(set(fills)) == len(fills)
    # Fits and over differ in lightness too, so they are told apart without any hue.
    assert contrast(FITS[1], OVER[1]) > 2


@pytest.mark.parametrize("ground", ["#ffffff", "#0f1419"])
def test_the_style_reads_on_its_ground_in_light_and_dark(ground):
    style = texts(parsed(document("t", "d", 10, [])), "style")[0]
    light, dark = style.split("@media")
    chosen = light if ground == "#ffffff" else dark
    assert f"fill:{ground}" in chosen
    ink = re.search(r"color:(#\w{6})", chosen)[1]
    over = re.search(r"text\.oor-over\{fill:(#\w{6})", chosen)[1]
    beyond = re.search(r"oor-beyond\{fill:(#\w{6})", chosen)[1]
    for text, behind in itertools.product((ink, over), (ground, beyond)):
        assert contrast(text, behind) >= 4.5
    assert contrast(re.search(r"oor-limit\{stroke:(#\w{6})", chosen)[1], ground) >= 3


def test_a_legend_breaks_into_rows():
    one, low = legend([("#ffffff", "short")], 10)
    many, lower = legend([("#ffffff", "a word of some length")] * 6, 10)
    assert (len(one), len(many)) == (2, 12)
    assert lower > low == 34


def test_mixing_stays_within_its_ends():
    assert mix("#000000", "#ffffff", -1) == "#000000"
    assert mix("#000000", "#ffffff", 0.5) == "#808080"
    assert mix("#000000", "#ffffff", 7) == "#ffffff"


def test_the_frame_scales_and_speaks():
    root = parsed(document("Title", "Words", 90, [Markup("<g/>")]))
    assert root.get("viewBox") == "0 0 640 90"
    assert (root.get("width"), root.get("role"), root.get("aria-label")) == ("100%", "img", "Title")
    assert texts(root, "desc") == ["Words"]
