"""Sizes on a command line, as vLLM reads them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.budget.size import parse_size
from oortriage.errors import UsageError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("5GiB", 5 << 30), ("5 GiB", 5 << 30), ("5gib", 5 << 30), ("5G", 5 << 30), ("5g", 5 * 10**9),
        ("25.6g", 25_600_000_000), ("1M", 1 << 20), ("1m", 10**6), ("2K", 2048), ("2k", 2000), ("1T", 1 << 40),
        ("5368709120", 5 << 30), ("0.5GiB", 1 << 29), ("0", 0),
    ],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text, "--kv-memory") == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GiB",
        "-5G",
        "5GB",
        "5gb",
        "1e300",
        "nan",
        "inf",
        "5X",
        "1.5G",
        "5 G iB",
        "9" * 30,
        "99999999T",
        "5\n;",
        "٥G",
    ],
)
def test_no_sizes(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--kv-memory "):
        parse_size(text, "--kv-memory")


@settings(deadline=None)
@given(st.text(max_size=12))
def test_any_text_is_a_size_or_a_plain_error(text: str) -> None:
    told, size = "", 0
    try:
        size = parse_size(text, "--kv-memory")
    except UsageError as problem:
        told = str(problem)
    assert 0 <= size <= 2**60
    assert len(told) < 200
