"""A card's pieces as bars: end to end, true to scale, and what is over the share is told by more than a colour."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.budget.figure import Figure
from oortriage.budget.log_budget import Part
from oortriage.report._interface import Style
from oortriage.report.draw.budget_bar import budget_bar_svg, budget_bar_text, sentence
from oortriage.report.page.picture import harmless
from tests.report._made import hostile
from tests.report.draw._made import parsed, texts

GIB = 2.0**30


def size(gib: float, provenance: str = "measured") -> Figure:
    return Figure(gib * GIB, "bytes", provenance, "line 3")  # type: ignore[arg-type]


#: vllm#13882: 5.20 + 0.03 + 1.42 are 1.05 more than the share of 5.60.
PARTS = [
    Part("weights", "weights", size(5.20), 0.0),
    Part("non_torch", "non-torch", size(0.03), 5.20 * GIB),
    Part("activations", "activation peak", size(1.42), 5.23 * GIB),
    Part("missing", "over the share", size(1.05), 5.60 * GIB),
    Part("outside", "outside the share", size(2.40), 5.60 * GIB),
]
SHARE = size(5.60)


def test_rows_of_the_terminal_stand_end_to_end() -> None:
    rows = budget_bar_text(PARTS, SHARE, Style(width=100)).splitlines()
    assert all(len(row) <= 100 for row in rows)
    weights, other, peak, missing, outside, share = rows
    assert weights.count("█") / peak.count("█") == pytest.approx(5.20 / 1.42, rel=0.1)
    assert abs(weights.rindex("█") + 1 - other.index("█")) <= 1
    assert abs(missing.rindex("░") - peak.rindex("█")) <= 1
    assert abs(share.index("┤") - missing.index("░")) <= 1
    assert outside.count("·") / weights.count("█") == pytest.approx(2.40 / 5.20, rel=0.1)
    assert "1.05 GiB" in missing
    assert "5.60 GiB" in share


def test_the_picture_is_sound_and_says_what_it_shows() -> None:
    picture = budget_bar_svg(PARTS, SHARE)
    assert harmless(picture)
    assert texts(parsed(picture), "desc") == [sentence(PARTS, SHARE) + "."]
    boxes = list(parsed(picture).iter("{http://www.w3.org/2000/svg}rect"))[1:]
    weights, _, peak = boxes[:3]
    assert float(weights.get("width", 0)) / float(peak.get("width", 0)) == pytest.approx(5.20 / 1.42, rel=0.01)
    assert "stroke-dasharray" in picture  # what is over the share has a broken frame, not only a colour


def test_a_guess_is_marked() -> None:
    assert "~5.20 GiB" in budget_bar_text(
        [Part("weights", "weights", size(5.20, "estimated"), 0.0)], None, Style(width=80)
    )


@given(
    st.lists(st.tuples(st.sampled_from(["weights", "kv", "missing", "outside", "others", "free", "other"]), hostile,
                       st.floats(0, 1e15), st.floats(-1e15, 1e15)), min_size=1, max_size=9),
    st.none() | st.floats(0, 1e15),
    st.integers(20, 160),
)  # fmt: skip
@settings(deadline=None, max_examples=80)
def test_any_pieces_make_a_sound_picture(
    pieces: list[tuple[str, str, float, float]], end: float | None, width: int
) -> None:
    parts = [Part(kind, name, Figure(amount, "bytes", "derived"), start) for kind, name, amount, start in pieces]  # type: ignore[arg-type]
    share = None if end is None else Figure(end, "bytes", "derived")
    picture = budget_bar_svg(parts, share)
    parsed(picture)
    assert harmless(picture)
    drawn = budget_bar_text(parts, share, Style(width=width))
    assert "\x1b" not in drawn
    assert len(drawn.splitlines()) == len(parts) + (share is not None)
