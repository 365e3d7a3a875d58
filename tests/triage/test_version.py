"""Releases compared as people mean them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.triage.version import release, within


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0.14.1", (0, 14, 1)),
        ("v0.17.1", (0, 17, 1)),
        (" 0.8.5 ", (0, 8, 5)),
        ("0.6.3.post1", (0, 6, 3)),
        ("0.11.1rc6", (0, 11, 1)),
        ("0.7.1.dev10+gddee88d0", (0, 7, 1)),
        ("2.4.0+cu121", (2, 4, 0)),
        ("2.10.0a0+git1234", (2, 10, 0)),
        ("3", (3,)),
        ("", ()),
        ("dev", ()),
        ("main", ()),
    ],
)
def test_a_release_is_its_leading_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert release(text) == numbers


@pytest.mark.parametrize(
    ("version", "since", "until", "fits"),
    [
        ("0.14.1", "0.11.2", "0.14.1", True),
        ("0.14.1.post2", "", "0.14.1", True),
        ("0.14.2", "", "0.14.1", False),
        ("0.15.0", "", "0.14.1", False),
        ("0.9.2", "0.10.0", "", False),  # 9 is below 10, whatever the strings say
        ("0.10.0", "0.9.2", "", True),
        ("0.10.2", "", "0.10", True),  # a bound of two numbers holds all its patches
        ("0.11.0", "", "0.10", False),
        ("2.10.0+cu128", "2.10.0", "2.10.0", True),
        ("2.9.1", "2.10.0", "2.10.0", False),
        ("0.6.3.post1", "0.6.3", "", True),
        ("1.2.3", "", "", True),
        ("", "", "", True),
    ],
)
def test_bounds_are_included(version: str, since: str, until: str, fits: bool) -> None:
    assert within(version, since, until) is fits


@pytest.mark.parametrize("version", ["", "dev", "unknown"])
@pytest.mark.parametrize(("since", "until"), [("0.1", ""), ("", "9"), ("0.1", "9")])
def test_an_unknown_version_is_neither_inside_nor_outside(version: str, since: str, until: str) -> None:
    assert within(version, since, until) is None


@pytest.mark.parametrize(("version", "since"), [("2.7", "2.7.0"), ("0.20", "0.20.0"), ("3", "3.0.0"), ("3.4", "3.4.0")])
def test_a_version_without_its_last_zero_is_the_same_release(version: str, since: str) -> None:
    assert within(version, since, "") is True
    assert within(version, "", since) is True


_NUMBERS = st.lists(st.integers(0, 40), min_size=3, max_size=3).map(tuple)


@given(_NUMBERS, _NUMBERS, _NUMBERS)
def test_full_releases_compare_as_their_numbers_do(
    version: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]
) -> None:
    def written(numbers: tuple[int, ...]) -> str:
        return ".".join(map(str, numbers))

    assert within(written(version), written(low), written(high)) is (low <= version <= high)


@given(st.text(max_size=20), st.text(max_size=10), st.text(max_size=10))
def test_no_text_breaks_a_comparison(version: str, since: str, until: str) -> None:
    assert within(version, since, until) in {True, False, None}
