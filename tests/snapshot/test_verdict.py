"""Why a request failed, against programs whose reason is known, and against the allocator itself."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.errors import UsageError
from oortriage.snapshot.analyse import Device, analyse
from oortriage.snapshot.parse import parse
from oortriage.snapshot.request import LARGE_SEGMENT, need
from oortriage.snapshot.verdict import judge
from tests.snapshot import allocator
from tests.snapshot.allocator import GIB, MIB, Allocator, OutOfMemoryError
from tests.snapshot.test_moment import SIZES, STEPS, run

PROGRAMS = {
    "capacity": allocator.capacity,
    "fragmentation": allocator.fragmentation,
    "stranded_pool": allocator.stranded_pool,
    "stranded_stream": allocator.stranded_stream,
    "awaiting_free": allocator.awaiting_free,
}


def device_of(values: dict[str, Any], **how: Any) -> Device:
    (found,) = analyse(parse(values, ""), "x", **how).devices
    return found


@pytest.mark.parametrize("cause", PROGRAMS)
def test_each_program_fails_for_the_reason_it_was_written_for(cause: str) -> None:
    found = device_of(PROGRAMS[cause]().snapshot())
    assert found.verdict is not None
    assert found.verdict.cause == cause
    assert found.remedies
    assert found.request is not None
    assert (found.request.where, found.request.function) == ("/srv/app/model.py:77", "attention")


def test_fragmentation_shows_its_arithmetic() -> None:
    found = device_of(allocator.fragmentation().snapshot())
    assert found.verdict is not None
    assert found.verdict.summary == (
        "16.00 GiB of the pool lies idle in 16 blocks; with 2.00 GiB free it would hold 4.00 GiB, but the largest "
        "single block has 1.00 GiB."
    )
    step = found.verdict.steps[-1]
    assert step.figures == (
        "2.00 GiB free + 16.00 GiB idle in 16 blocks, the largest of 1.00 GiB = 18.00 GiB >= 4.00 GiB; that is 50% of "
        "the 32.00 GiB reserved"
    )
    assert [one.holds for one in found.verdict.steps] == [False, False, False, True]
    assert any("expandable_segments" in one.change for one in found.remedies)
    assert not found.will_not_help


@pytest.mark.parametrize("cause", sorted(set(PROGRAMS) - {"fragmentation"}))
def test_expandable_segments_are_warned_of_where_they_do_nothing(cause: str) -> None:
    found = device_of(PROGRAMS[cause]().snapshot())
    assert any("expandable_segments" in one.advice for one in found.will_not_help)
    assert not any("expandable_segments" in one.change for one in found.remedies)


def test_expandable_segments_are_not_prescribed_where_they_are_on() -> None:
    values = allocator.fragmentation().snapshot()
    values["allocator_settings"]["expandable_segments"] = True
    assert not any("expandable_segments" in one.change for one in device_of(values).remedies)


def test_scattered_crumbs_on_a_full_card_are_no_fragmentation() -> None:
    """As in the logs: idle memory above the request that is a few percent of what is reserved (FastFlow#4)."""
    one = Allocator(100 * GIB)
    pieces = [one.malloc(GIB) for _ in range(95)]
    pairs = [one.malloc(GIB - 2 * MIB, frames=[]) for _ in range(4)]
    for address in pairs:
        one.free(address)
    live = [one.malloc(GIB // 2) for _ in range(4)]
    assert pieces
    assert live
    allocator.fails(one, 2 * GIB)
    found = device_of(one.snapshot())
    assert found.verdict is not None
    assert found.verdict.cause == "capacity"
    assert found.verdict.short_bytes == 0
    assert "98% of what is reserved is in use" in found.verdict.summary
    assert any("this is little of it" in step.answer for step in found.verdict.steps)


def test_a_snapshot_written_after_the_failure_was_caught_is_judged_at_the_failure() -> None:
    one = allocator.fragmentation()
    at_failure = device_of(one.snapshot())
    for held in [piece.address for seg in one.segments for piece in seg.pieces if piece.state != "inactive"]:
        one.free(held)
    one.empty_cache()
    found = device_of(one.snapshot())
    assert found.written.reserved_bytes == 0
    assert found.at_request is not None
    assert found.at_request.reserved_bytes == 32 * GIB
    assert found.verdict == at_failure.verdict
    assert "taken back" in found.moment


def test_free_memory_enough_for_the_request_is_a_limit() -> None:
    one = allocator.capacity()
    one.trace[-1]["device_free"] = 60 * GIB
    found = device_of(one.snapshot())
    assert found.verdict is not None
    assert found.verdict.cause == "limit"
    assert any("set_per_process_memory_fraction" in cure.change for cure in found.remedies)


def test_a_request_larger_than_any_card_is_absurd() -> None:
    one = allocator.capacity()
    allocator.fails(one, 4096 * GIB)
    verdict = device_of(one.snapshot()).verdict
    assert verdict is not None
    assert verdict.cause == "absurd_request"


def test_a_fitting_block_leaves_it_undetermined() -> None:
    values = allocator.fragmentation().snapshot()
    values["device_traces"][0][-1]["size"] = GIB // 2
    found = analyse(parse(values, ""), "x")
    assert found.devices[0].verdict is not None
    assert found.devices[0].verdict.cause == "undetermined"
    assert found.exit_code == 3


def test_an_unrecorded_figure_is_not_made_up() -> None:
    """A release that records no free memory of the card, and idle memory that would not do."""
    values = allocator.capacity().snapshot()
    del values["device_traces"][0][-1]["device_free"]
    assert analyse(parse(values, ""), "x").exit_code == 3
    assert analyse(parse(values, ""), "x", free=10 * GIB).exit_code == 1


def test_the_last_failure_of_several_is_judged_and_all_are_listed() -> None:
    one = allocator.capacity()
    allocator.fails(one, 30 * GIB)
    found = device_of(one.snapshot())
    assert found.verdict is not None
    assert found.verdict.request_bytes == 30 * GIB
    assert found.trace is not None
    assert [each.request_bytes for each in found.trace.ooms] == [12 * GIB, 30 * GIB]


def test_without_a_failure_there_is_no_verdict() -> None:
    one = Allocator(GIB)
    one.malloc(MIB)
    found = analyse(parse(one.snapshot(), ""), "x")
    assert (found.exit_code, found.devices[0].verdict) == (0, None)


def test_a_request_in_a_capture_is_told_to_empty_the_cache_first() -> None:
    one = Allocator(60 * GIB)
    one.free(one.malloc(40 * GIB))
    allocator.fails(one, 30 * GIB, pool=(3, 0))
    found = device_of(one.snapshot())
    assert found.verdict is not None
    assert (found.verdict.cause, found.verdict.pool) == ("stranded_pool", (3, 0))
    assert "empty_cache" in found.remedies[0].change


def test_a_device_that_is_not_there_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="no device 3 in the snapshot; there are: 0"):
        analyse(parse(allocator.capacity().snapshot(), ""), "x", device=3)


@pytest.mark.parametrize(
    ("size", "rounded", "kind", "segment"),
    [
        (1, 512, "small", 2 * MIB),
        (513, 1024, "small", 2 * MIB),
        (MIB, MIB, "small", 2 * MIB),
        (MIB + 1, MIB + 512, "large", LARGE_SEGMENT),
        (10 * MIB - 512, 10 * MIB - 512, "large", LARGE_SEGMENT),
        (10 * MIB, 10 * MIB, "large", 10 * MIB),
        (11 * MIB, 11 * MIB, "large", 12 * MIB),
    ],
)
def test_a_request_is_rounded_as_the_allocator_does(size: int, rounded: int, kind: str, segment: int) -> None:
    wanted = need(size)
    assert (wanted.rounded, wanted.kind, wanted.segment_bytes) == (rounded, kind, segment)


def test_blocks_over_the_split_limit_serve_only_their_own_kind() -> None:
    one = Allocator(10 * GIB)
    one.free(one.malloc(4 * GIB))
    segments = parse(one.snapshot(), "").of_device(0)

    def cause(size: int) -> str:
        return judge(segments, size, device_free=0, max_split=512 * MIB, failed=True).cause

    assert cause(4 * GIB) == "undetermined"  # it fits
    assert cause(100 * MIB) != "undetermined"  # smaller than the limit: the large block is kept whole
    assert cause(3 * GIB) != "undetermined"  # more than 20 MiB would be lost


@settings(deadline=None, max_examples=60)
@given(STEPS, SIZES, st.integers(0, 1))
def test_whether_a_request_would_be_served_is_what_the_allocator_does(
    program: list[Any], size: int, stream: int
) -> None:
    one = Allocator(GIB)
    run(program, one, [])
    found = judge(parse(one.snapshot(), "").of_device(0), size, stream=stream, device_free=one.free_bytes, failed=False)
    played = copy.deepcopy(one)
    try:
        played.malloc(size, stream=stream)
    except OutOfMemoryError:
        assert found.cause not in ("served", "undetermined", "limit")
    else:
        assert found.cause == "served"


@settings(deadline=None, max_examples=100)
@given(STEPS)
def test_a_failure_always_has_a_cause_and_steps_that_add_up(program: list[Any]) -> None:
    one = Allocator(400 * MIB)
    run(program, one, [])
    found = device_of(one.snapshot()) if one.trace else None
    if found is None or found.verdict is None:
        return
    assert found.verdict.cause in ("capacity", "fragmentation", "stranded_pool", "stranded_stream", "awaiting_free")
    assert sum(step.holds is True for step in found.verdict.steps) <= 1
    state = found.at_request or found.written
    parts = state.allocated_bytes + state.awaiting_free_bytes + state.idle_bytes
    assert parts == state.reserved_bytes == sum(pool.reserved_bytes for pool in state.pools)
    assert sum(kind.bytes for kind in state.kinds.values()) == state.reserved_bytes
