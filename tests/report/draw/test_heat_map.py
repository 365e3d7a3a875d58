"""The grid of an experiment, on a terminal and as SVG."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from oortriage.report._interface import Style
from oortriage.report.draw.grid import arrange, key_of
from oortriage.report.draw.heat_map import Cell, heat_map_svg, heat_map_text
from oortriage.report.draw.heat_svg import fill_of
from oortriage.report.draw.svg import contrast
from tests.report.draw._made import LIMIT, cells, grid, parsed, texts

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("width", [60, 120])
def test_a_grid_with_panels(width: int, snapshot: SnapshotAssertion):
    assert heat_map_text(grid((1, 2, 3), (16, 32), (4, 8)), LIMIT, Style(width=width)) == snapshot


def test_a_grid_in_colour(snapshot: SnapshotAssertion):
    assert heat_map_text(grid((1, 2), (16, 32)), LIMIT, Style(width=80, color=True)) == snapshot


def test_a_grid_as_svg(snapshot: SnapshotAssertion):
    assert heat_map_svg(grid((1, 2, 3), (16, 32)), LIMIT) == snapshot


def test_two_hundred_cells_break_into_blocks(snapshot: SnapshotAssertion):
    many = grid(tuple(range(1, 21)), (16, 32, 48, 64, 80, 96, 112, 128, 144, 160))
    assert len(many) == 200
    assert heat_map_text(many, LIMIT, Style(width=60)) == snapshot
    assert len([title for title in texts(parsed(heat_map_svg(many, LIMIT)), "title") if "TILE_SIZE =" in title]) == 200


def test_one_factor_and_none(snapshot: SnapshotAssertion):
    one = [Cell({"TILE": tile}, tile * 1_024, tile <= 64) for tile in (128, 16, 64, 32)]
    assert heat_map_text(one, LIMIT, Style()) == snapshot
    assert heat_map_text(one[:1], LIMIT, Style()) == snapshot
    assert heat_map_text([Cell({}, 5, None)], LIMIT, Style()) == snapshot
    assert heat_map_text([], LIMIT, Style()) == "no cells\n"
    for some in (one, one[:1], [Cell({}, 5, None)], []):
        parsed(heat_map_svg(some, LIMIT))


def test_the_factors_with_most_levels_are_the_axes():
    made = arrange(grid((1, 2), (16, 32, 64), (4, 8)))
    assert (made.rows.name, made.rows.levels) == ("TILE_SIZE", (16, 32, 64))
    assert made.columns is not None
    assert made.columns.name == "num_stages"
    assert [panel.shared for panel in made.panels] == [(("num_warps", 4),), (("num_warps", 8),)]


def test_numbers_by_size_and_words_as_they_came():
    made = arrange([Cell({"a": level}, 1, True) for level in ("z", 10, "b", 9)] + [Cell({}, 1, True)])
    assert made.rows.levels == (9, 10, "z", "b", None)


def test_the_same_settings_twice_are_both_shown():
    page = heat_map_text([Cell({"a": 1}, 10, True), Cell({"a": 1}, 20, True), Cell({"a": 2}, 30, False)], 25, Style())
    assert "repeat" in page
    assert re.search(r"1 +✓ 10 +✓ 20\n", page)


def test_notes_stand_under_the_grid_once():
    page = heat_map_text(grid((1, 2, 3), (16, 32), (4, 8)), LIMIT, Style())
    assert page.count("does not compile") == 1
    assert re.findall(r"^([ab])  (.+)$", page, re.MULTILINE) == [("a", "spills 1,932 B"), ("b", "does not compile")]
    assert [key_of(at) for at in (0, 25, 26, 51, 52, 701, 702)] == ["a", "z", "aa", "az", "ba", "zz", "aaa"]


@given(st.lists(cells, max_size=25), st.integers(0, 2**31), st.integers(60, 120), st.booleans())
@settings(deadline=None, max_examples=50)
def test_any_experiment_on_a_terminal(many, limit, width, color):
    page = heat_map_text(many, limit, Style(width=width, color=color))
    bare = re.sub(r"\x1b\[[\d;]*m", "", page) if color else page
    assert all(line.isprintable() and cell_len(line) <= width for line in bare.removesuffix("\n").split("\n"))
    for cell in many:
        sign = {True: "✓", False: "✗", None: "-"}[cell.fits]
        figure = "" if cell.required_bytes is None else rf"{cell.required_bytes:,}(?![\d,])"
        assert re.search(rf"{sign} +{figure}" if figure else f" {sign}", bare)


@given(st.lists(cells, max_size=25), st.integers(0, 2**31))
@settings(deadline=None, max_examples=50)
def test_any_experiment_as_svg(many, limit):
    root = parsed(heat_map_svg(many, limit))
    _, _, wide, tall = (float(side) for side in root.get("viewBox").split())
    tips = 0
    for rect in root.iter(f"{SVG}rect"):
        assert 0 <= float(rect.get("x")) <= float(rect.get("x")) + float(rect.get("width")) <= wide
        assert 0 <= float(rect.get("y")) <= float(rect.get("y")) + float(rect.get("height")) <= tall
        tips += rect.find(f"{SVG}title") is not None
    assert tips == len(many)


@given(cells, st.integers(0, 2**20))
@settings(deadline=None, max_examples=50)
def test_every_cell_is_read_and_what_fits_is_never_like_what_does_not(cell, limit):
    root = parsed(heat_map_svg([cell], limit))
    fill = fill_of(cell, limit)
    drawn = [one for one in root.iter(f"{SVG}text") if "oor-on-" in (one.get("class") or "")]
    assert len(drawn) == 1
    ink = "#000000" if "oor-on-light" in drawn[0].get("class") else "#ffffff"
    assert contrast(fill, ink) >= 4.5
    red, _, blue = (int(fill[at : at + 2], 16) for at in (1, 3, 5))
    assert {True: blue > red, False: red > blue, None: red == blue}[cell.fits]


def test_the_picture_says_every_cell():
    root = parsed(heat_map_svg(grid((1, 2), (16, 32)), LIMIT))
    said = texts(root, "desc")[0]
    assert said.startswith(
        "3 of 4 fit the limit of 65,536 B. num_stages = 1, TILE_SIZE = 16, num_warps = 4: 32,768 B, fits; "
    )
    assert said.endswith("num_stages = 2, TILE_SIZE = 32, num_warps = 4: no result, does not compile.")
