"""The fingerprint: short, versioned, and the same for the same failure wherever it is printed."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.api import Analyzer
from oortriage.triage.fingerprint import VERSION, fingerprint
from tests.triage.messages import NO_BLOCKS, PLAIN, SHARED, gib, p6, traceback

FORM = re.compile(r"v1-[0-9a-f]{12}")
_PART = st.one_of(st.none(), st.integers(), st.text(max_size=12), st.floats(allow_nan=False))


def test_it_is_the_start_of_a_sha_256_over_the_parts() -> None:
    expected = hashlib.sha256(b"shared_memory\x1f\x1f81920").hexdigest()[:12]
    assert fingerprint(["shared_memory", None, 81920]) == f"{VERSION}-{expected}"


@given(st.lists(_PART, max_size=8))
def test_any_parts_give_the_documented_form(parts: list[str | int | float | None]) -> None:
    assert FORM.fullmatch(fingerprint(parts))
    assert fingerprint(parts) == fingerprint(iter(parts))


@pytest.mark.parametrize(
    ("one", "other"),
    [(["ab"], ["a", "b"]), (["a", "b"], ["b", "a"]), (["a"], ["a", ""]), ([81920], [81921])],
)
def test_different_parts_differ(one: list[str | int], other: list[str | int]) -> None:
    assert fingerprint(one) != fingerprint(other)


@settings(deadline=None, max_examples=40)
@given(
    rank=st.integers(0, 63),
    pid=st.integers(1, 4_000_000),
    second=st.integers(0, 59),
    before=st.integers(0, 40),
    place=st.integers(1, 2000),
    failure=st.sampled_from([SHARED, PLAIN, NO_BLOCKS]),
)
def test_it_does_not_depend_on_rank_pid_time_or_line(
    rank: int, pid: int, second: int, before: int, place: int, failure: str, analyzer: Analyzer
) -> None:
    prefix = f"(Worker_TP{rank} pid={pid}) ERROR 03-11 09:18:{second:02d} [multiproc_executor.py:{place}] "
    plain = analyzer.text(traceback(failure))
    moved = analyzer.text("loading\n" * before + traceback(failure, prefix=prefix))
    assert FORM.fullmatch(plain.fingerprint)
    assert moved.evidence[0].line == before + plain.evidence[0].line
    assert moved.fingerprint == plain.fingerprint


def test_the_same_failure_on_eight_ranks_is_one(analyzer: Analyzer) -> None:
    ranks = "".join(traceback(SHARED, prefix=f"[rank{rank}]: ") for rank in range(8))
    assert analyzer.text(ranks).fingerprint == analyzer.text(traceback(SHARED)).fingerprint


@pytest.mark.parametrize(
    "other",
    [
        SHARED.replace("81920", "98304"),
        SHARED.replace("65536", "49152"),
        f"Upcasting torch.bfloat16 to torch.float32.\n{SHARED}",
        PLAIN,
        NO_BLOCKS,
    ],
)
def test_another_failure_is_another(other: str, analyzer: Analyzer) -> None:
    assert analyzer.text(other).fingerprint != analyzer.text(SHARED).fingerprint


def test_sizes_of_the_card_do_not_split_a_shortage_into_many(analyzer: Analyzer) -> None:
    """Two cards that run full by different amounts fail alike: the sum to group by is the cause."""
    one = analyzer.text(p6(gib(2, 79.14, 1.0, 70, idle=1, own=78.1)))
    other = analyzer.text(p6(gib(3, 79.14, 0.7, 71, idle=1, own=78.3)))
    assert one.fingerprint == other.fingerprint


def test_a_clean_log_and_a_masked_one_have_their_own(analyzer: Analyzer) -> None:
    clean = analyzer.text("epoch 1 loss 2.0\n").fingerprint
    masked = analyzer.text("EngineCore encountered a fatal error.\n").fingerprint
    assert clean != masked
    assert FORM.fullmatch(clean)
    assert FORM.fullmatch(masked)
