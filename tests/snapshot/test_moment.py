"""The state at an earlier moment, against a snapshot that was taken then."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.snapshot.model import Segment, Snapshot
from oortriage.snapshot.moment import rewind
from oortriage.snapshot.parse import parse
from tests.snapshot.allocator import GIB, MIB, Allocator, OutOfMemoryError, stack

SIZES = st.sampled_from([1, 700, 512 * 1024, MIB, MIB + 1, 3 * MIB, 9 * MIB, 10 * MIB, 30 * MIB, 100 * MIB, 333 * MIB])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["alloc"] * 6 + ["free"] * 5 + ["pending", "empty"]),
        SIZES,
        st.integers(0, 1),
        st.sampled_from([(0, 0), (0, 0), (0, 1)]),
        st.integers(0, 30),
    ),
    max_size=60,
)


def run(program: list[Any], one: Allocator, live: list[int]) -> None:
    """Play a program; what fails is noted by the allocator."""
    for what, size, stream, pool, number in program:
        if what == "alloc":
            try:
                live.append(one.malloc(size, stream=stream, pool=pool, frames=stack(line=number)))
            except OutOfMemoryError:
                continue
        elif what == "empty":
            one.empty_cache()
        elif live:
            one.free(live.pop(number % len(live)), pending=what == "pending")


def shape(segments: list[Segment] | tuple[Segment, ...]) -> list[Any]:
    return [
        (seg.address, seg.size, seg.stream, seg.kind, seg.pool, [(b.address, b.size, b.state) for b in seg.blocks])
        for seg in sorted(segments, key=lambda each: each.address)
    ]


@settings(deadline=None, max_examples=60)
@given(STEPS, STEPS)
def test_events_taken_back_give_the_state_of_a_snapshot_taken_then(before: list[Any], after: list[Any]) -> None:
    one, live = Allocator(GIB), []
    run(before, one, live)
    then = parse(one.snapshot(), "")
    events = len(then.traces[0])
    run(after, one, live)
    now = parse(one.snapshot(), "")
    found = rewind(0, now.of_device(0), now.traces[0], events - 1)
    assert found.odd == 0
    assert shape(found.segments) == shape(then.segments)


@settings(deadline=None, max_examples=50)
@given(STEPS)
def test_all_events_taken_back_leave_nothing(program: list[Any]) -> None:
    one = Allocator(GIB)
    run(program, one, [])
    now = parse(one.snapshot(), "")
    assert rewind(0, now.of_device(0), now.traces[0], -1).segments == ()


def test_stacks_come_back_with_the_blocks() -> None:
    one = Allocator(GIB)
    early = one.malloc(30 * MIB, frames=stack(line=7))
    marker = len(one.trace)
    one.free(early)
    now = parse(one.snapshot(), "")
    (segment,) = rewind(0, now.of_device(0), now.traces[0], marker - 1).segments
    assert segment.blocks[0].frames[2].line == 7


def test_events_that_do_not_fit_are_counted() -> None:
    one = Allocator(GIB)
    one.malloc(30 * MIB)
    values = one.snapshot()
    values["segments"] = []
    found: Snapshot = parse(values, "")
    assert rewind(0, [], found.traces[0], -1).odd == 2


def test_parts_of_an_expandable_segment_are_mapped_and_unmapped() -> None:
    """A mapped range grew from 20 to 60 MiB in two steps, and 20 MiB in the middle went back to the driver."""
    base = 1 << 40

    def mapped(address: int, size: int) -> dict[str, Any]:
        block = {"address": address, "size": size, "requested_size": 0, "state": "inactive", "frames": []}
        return {
            "device": 0, "address": address, "total_size": size, "stream": 0, "segment_type": "large",
            "segment_pool_id": (0, 0), "is_expandable": True, "blocks": [block],
        }  # fmt: skip

    def event(action: str, address: int, size: int) -> dict[str, Any]:
        return {"action": action, "addr": address, "size": size, "stream": 0, "pool_id": (0, 0)}

    events = [
        event("segment_map", base, 20 * MIB),
        event("segment_map", base + 20 * MIB, 40 * MIB),
        event("segment_unmap", base + 20 * MIB, 20 * MIB),
    ]
    now = parse(
        {"segments": [mapped(base, 20 * MIB), mapped(base + 40 * MIB, 20 * MIB)], "device_traces": [events]}, ""
    )
    sizes = {
        index: [(seg.address - base, seg.size) for seg in rewind(0, now.of_device(0), now.traces[0], index).segments]
        for index in range(-1, 3)
    }
    assert sizes == {
        2: [(0, 20 * MIB), (40 * MIB, 20 * MIB)],
        1: [(0, 60 * MIB)],
        0: [(0, 20 * MIB)],
        -1: [],
    }
