"""Bytes, rates and times in words, and read from a command line."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.cli import watch_options as options
from oortriage.errors import UsageError
from oortriage.watch.words import duration, interval, rate, size

MIB, GIB = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (size(3.1 * GIB), "3.1 GiB"),
        (size(41 * MIB), "41 MiB"),
        (size(1.5 * MIB), "1.5 MiB"),
        (size(0), "0.0 MiB"),
        (rate(41 * MIB / 60), "41 MiB/min"),
        (interval(38 * MIB / 60, 44 * MIB / 60), "38 to 44 MiB/min"),
        (interval(40.9 * MIB / 60, 41.2 * MIB / 60), "40.9 to 41.2 MiB/min"),
        (interval(2.3 * GIB / 60, 2.4 * GIB / 60), "2.30 to 2.40 GiB/min"),
        (interval(-5 * MIB / 60, 5 * MIB / 60), "-5 to 5 MiB/min"),
        (duration(45), "45 s"),
        (duration(77 * 60), "77 min"),
        (duration(4 * 3600), "4.0 h"),
        (duration(10 * 86400), "10.0 days"),
    ],
)
def test_in_words(said: str, words: str) -> None:
    assert said == words


@given(st.floats(-1e12, 1e12), st.floats(0, 1e12))
def test_any_interval_has_its_smaller_end_first(low: float, width: float) -> None:
    first, second = interval(low, low + width).split(" to ")
    assert float(first.replace(",", "")) <= float(second.split()[0].replace(",", ""))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("500ms", 0.5), ("10m", 600), ("1h30m", 5400), ("2d", 172800), ("", None)],
)
def test_times(text: str, seconds: float | None) -> None:
    assert options.duration("--for", text) == seconds


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("64MiB", 64 * MIB),
        ("1.5GB", 1_500_000_000),
        ("1000", 1000),
        ("2 kib", 2048),
        ("8B", 8),
        ("1TiB", 1 << 40),
        ("", None),
    ],
)
def test_sizes(text: str, count: int | None) -> None:
    assert options.size("--max-bytes", text) == count


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":9400", ("127.0.0.1", 9400)),
        ("9400", ("127.0.0.1", 9400)),
        ("0.0.0.0:1", ("0.0.0.0", 1)),
        ("[::1]:80", ("::1", 80)),
        (":0", ("127.0.0.1", 0)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert options.address(text) == address


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    for read in (lambda t: options.duration("--for", t), lambda t: options.size("--max-bytes", t), options.address):
        with contextlib.suppress(UsageError):
            assert read(text) != 0
