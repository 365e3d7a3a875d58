"""Lines for a terminal: harmless, and as wide as they say."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from oortriage.report._interface import Style
from oortriage.report.draw.terminal import Row, columns_of, cut, cut_front, pad, paint, plain
from tests.report.draw._made import names


@given(names, st.integers(1, 60))
@settings(deadline=None)
def test_plain_text_is_one_harmless_line(text, cells):
    made = plain(text, cells)
    assert made.isprintable()
    assert cell_len(made) <= cells
    made.encode()


def test_plain_text_shows_what_it_stops():
    assert plain("a\x1b[31m\u202eb\nc") == "a\\x1b[31m\\u202eb\\nc"
    assert plain("e\u0301") == "é"


@given(names.map(plain), st.integers(1, 60))
@settings(deadline=None)
def test_cutting_and_filling_count_cells(text, cells):
    assert cell_len(cut(text, cells)) <= cells
    assert cell_len(cut_front(text, cells)) <= cells
    assert cell_len(pad(cut(text, cells), cells)) == cells


def test_a_cut_keeps_the_end_that_matters():
    assert cut("abcdef", 4) == "abc…"
    assert cut_front("a/b/c.py:3", 7) == "…c.py:3"
    assert pad("7", 3, right=True) == "  7"


def test_a_row_counts_wide_characters_twice():
    row = Row(6)
    row.put(0, "显x", "bold")
    row.put(5, "显")  # has one column only
    row.put(-1, "y")
    assert row.text().plain == "显x   "
    assert cell_len(row.text().plain) == 6


def test_colour_only_where_it_is_wanted(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert paint([Text("a ", style="red")], Style(color=False)) == "a\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint([Text("a", style="red")], Style(color=True)) == "\x1b[31ma\x1b[0m\n"


def test_the_width_is_kept_sensible():
    assert [columns_of(Style(width=width)) for width in (1, 80, 500)] == [40, 80, 120]
