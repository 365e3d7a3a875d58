"""Two figures as bars: true to scale, and what is over the limit is told by more than a colour."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.report._interface import Style
from oortriage.report.draw.limit_bar import Against, limit_bar_svg, limit_bar_text
from oortriage.report.page.picture import harmless
from tests.report._made import hostile
from tests.report.draw._made import parsed, texts

OVER = Against(81_920, 65_536)
FITS = Against(49_152, 65_536)


def widths(picture: str) -> list[float]:
    return [float(one.get("width", 0)) for one in parsed(picture).iter("{http://www.w3.org/2000/svg}rect")]


def test_bars_are_true_to_scale_and_the_excess_is_framed():
    _ground, wanted, limit, beyond, _frame = widths(limit_bar_svg(OVER))
    assert wanted == limit
    assert beyond / limit == pytest.approx(16_384 / 65_536, abs=0.01)
    assert "stroke-dasharray" in limit_bar_svg(OVER)
    _ground, wanted, limit = widths(limit_bar_svg(FITS))
    assert wanted / limit == pytest.approx(0.75, abs=0.01)


def test_words_tell_both_figures_and_the_excess():
    assert OVER.sentence() == "required 81,920 B, limit 65,536 B: 16,384 B over"
    assert FITS.sentence().endswith("16,384 B to spare")
    assert texts(parsed(limit_bar_svg(OVER)), "desc") == [OVER.sentence() + "."]


def test_the_drawing_in_characters_is_as_long_as_the_figures():
    first, second = limit_bar_text(OVER, Style(width=80)).splitlines()
    assert len(first) <= 80
    assert first.count("█") == second.count("█")
    assert first.count("░") / second.count("█") == pytest.approx(0.25, abs=0.03)


@given(st.floats(-1e18, 1e18) | st.integers(0, 99), st.floats(-1e18, 1e18) | st.just(0), hostile)
@settings(deadline=None, max_examples=50)
def test_any_figures_and_names_make_a_sound_picture(wanted, limit, name):
    picture = limit_bar_svg(Against(wanted, limit, name, name, name))
    parsed(picture)
    assert harmless(picture)
    limit_bar_text(Against(wanted, limit), Style(width=80))
