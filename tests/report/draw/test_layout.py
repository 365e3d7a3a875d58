"""Lanes hold what does not overlap; the scale keeps order and shows what is small."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.ledger.allocation import Buffer, Ledger, overlaps
from oortriage.report.draw.layout import Scale, place, stretches
from tests.report.draw._made import ISSUE, ledgers


def test_the_issue_takes_two_lanes():
    assert [(one.number, one.name, one.lane, one.shares) for one in place(ISSUE)] == [
        (1, "K", 0, ("P",)),
        (2, "P", 1, ("K",)),
        (3, "V", 0, ()),
        (4, "Q", 0, ()),
    ]


@given(ledgers)
@settings(deadline=None, max_examples=50)
def test_lanes_hold_what_does_not_overlap(ledger):
    placed = place(ledger)
    assert sorted(map(repr, (one.buffer for one in placed))) == sorted(map(repr, ledger.buffers))
    for one, other in combinations([one for one in placed if one.lane >= 0], 2):
        assert one.lane != other.lane or not overlaps(one.buffer, other.buffer)
    for one in placed:
        assert (one.lane < 0) == (one.buffer.bytes == 0)
        if one.lane > 0:  # a further lane only because of one above it
            above = [other for other in placed if other.lane == one.lane - 1]
            assert any(overlaps(one.buffer, other.buffer) for other in above)


def test_names_that_are_no_names():
    made = [
        Buffer(name, "scratch", op, (), "f32", 8, 8 * at)
        for at, (name, op) in enumerate([("a", "o"), ("a", "o"), ("", "op"), ("", "")])
    ]
    assert [one.name for one in place(Ledger(tuple(made), 32))] == ["a #1", "a #2", "op", "scratch"]


def test_a_stated_sharer_is_kept_though_it_does_not_overlap():
    one = Buffer("a", "scratch", "", (), "f32", 8, 0, shares_with=("gone",))
    assert place(Ledger((one,), 8))[0].shares == ("gone",)


@given(st.lists(st.integers(0, 2**31), min_size=1, max_size=30), st.integers(39, 700))
def test_the_scale_keeps_order_and_fills_the_room(offsets, size):
    scale = Scale(offsets, size, (4, 3, 1))
    marks = sorted({0, *offsets})
    places = [scale.at(mark) for mark in marks]
    assert places == sorted(places)
    assert places[0] == 0
    assert places[-1] == (size if marks[-1] else 0)
    if len(marks) - 1 <= size * 0.6:
        assert len(set(places)) == len(places)


def test_the_scale_is_true_where_nothing_is_small():
    scale = Scale([25, 50, 100], 80, (4,))
    assert [scale.at(mark) for mark in (0, 25, 50, 100)] == [0, 20, 40, 80]
    assert not scale.stretched
    assert Scale([1, 100], 80, (4,)).stretched


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(0, 1))
def test_stretches_leave_the_line_free(start, length, line, wide):
    parts = stretches(start, start + length, line, wide)
    covered = [at for low, high in parts for at in range(low, high)]
    assert len(set(covered)) == len(covered)
    assert [high - low for low, high in parts] == sorted((high - low for low, high in parts), reverse=True)
    if wide and start <= line < start + length:
        assert sorted([*covered, line]) == list(range(start, start + length))
    else:
        assert sorted(covered) == list(range(start, start + length))
    assert all(low < high for low, high in pairwise(sorted(covered)))
