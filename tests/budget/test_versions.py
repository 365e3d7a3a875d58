"""Facts per release: which holds where, and where a release between two that were read takes its rules from."""

from __future__ import annotations

import pytest

from oortriage.budget import versions
from oortriage.errors import UsageError

TABLES = [
    versions.UTILIZATION, versions.BLOCK_SIZES, versions.ADMISSION, versions.TOKEN_COUNT, versions.GROUP_RATIO,
    versions.MIXED_PAGES,
]  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
def test_a_topics_facts_follow_each_other_without_gap_or_overlap(table: tuple[versions.Fact, ...]) -> None:
    first = versions.KNOWN.index(table[0].since)
    for version in versions.KNOWN[first:]:
        assert len([one for one in table if versions.holds(version, one)]) == 1, version
    assert table[-1].until == ""


def test_every_fact_names_releases_that_were_read_and_a_file() -> None:
    facts = [one for table in [*TABLES, versions.KV_DTYPES] for one in table]
    facts += [one for one in vars(versions).values() if isinstance(one, versions.Fact)]
    for one in facts:
        assert one.since in versions.KNOWN
        assert not one.until or one.until in versions.KNOWN
        assert one.source.startswith("vLLM 0.")
        assert ".py" in one.source


def test_known_releases_are_in_order() -> None:
    numbers = [versions.release(one) for one in versions.KNOWN]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    ("version", "taken"),
    [
        ("0.17.1", "0.17.1"), ("v0.17.1", "0.17.1"), ("0.17.1+cu128", "0.17.1"), ("0.17.1rc1", "0.17.1"),
        ("0.21.0", "0.20.0"), ("0.6.3.post1", "0.6.3.post1"), ("0.6.4", "0.6.3.post1"), ("0.29", "0.28.0"),
        ("9.9.9", versions.KNOWN[-1]),
    ],
)  # fmt: skip
def test_where_the_rules_come_from(version: str, taken: str) -> None:
    assert versions.rules_from(version) == taken


def test_a_release_that_was_not_read_is_said_so() -> None:
    assert versions.between("0.17.1") == ""
    assert versions.between("0.21.0") == "vLLM 0.21.0 was not read: the rules of 0.20.0 were taken"
    assert "newer than any that was read" in versions.between("99.0")


@pytest.mark.parametrize("version", ["", "latest", "0", "0.17.x", "-1.0", "1" * 50, "0.17.1\x1b[31m", "٠.١"])
def test_no_version(version: str) -> None:
    with pytest.raises(UsageError, match="no vLLM release"):
        versions.release(version)


def test_releases_before_the_first_that_was_read() -> None:
    with pytest.raises(UsageError, match=r"known from 0\.5\.4 on"):
        versions.rules_from("0.4.0")


def test_defaults() -> None:
    assert (versions.default_utilization("0.19.1"), versions.default_utilization("0.20.0")) == (0.9, 0.92)
    assert versions.block_size_choices("0.6.3") == (8, 16, 32)
    assert versions.block_size_choices("0.18.0") == ()
    assert versions.kv_dtypes("0.5.4") == ("auto", "fp8", "fp8_e4m3", "fp8_e5m2")
    assert [versions.default_engine(one) for one in ("0.7.3", "0.8.0")] == ["V0", "V1"]
    assert [versions.has_engine(one, "V0") for one in ("0.10.2", "0.11.0")] == [True, False]
    assert [versions.has_engine(one, "V1") for one in ("0.6.3", "0.7.3")] == [False, True]
