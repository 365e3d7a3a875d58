"""The curve, the peak and what is still there, against what the programs did."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from oortriage.snapshot.owners import NO_STACK, owner_of
from oortriage.snapshot.parse import parse
from oortriage.snapshot.trace import POINTS, Trace, follow
from tests.snapshot.allocator import GIB, MIB, Allocator, frame, stack
from tests.snapshot.test_moment import STEPS, run


def traced(one: Allocator) -> Trace:
    found = parse(one.snapshot(), "")
    trace = follow(found.of_device(0), found.traces[0])
    assert trace is not None
    return trace


def test_the_peak_and_who_held_it() -> None:
    one = Allocator(80 * GIB)
    one.malloc(10 * GIB, frames=stack("/srv/app/weights.py", 5, "load"))
    for _ in range(3):
        one.free(one.malloc(20 * GIB, frames=stack("/srv/app/model.py", 8, "attention")))
    trace = traced(one)
    assert (trace.start.live_bytes, trace.peak.live_bytes, trace.end.live_bytes) == (0, 30 * GIB, 10 * GIB)
    assert [(held.where, held.bytes) for held in trace.peak_owners] == [
        ("/srv/app/model.py:8", 20 * GIB),
        ("/srv/app/weights.py:5", 10 * GIB),
    ]
    assert trace.whole


def test_a_leak_grows_in_every_third_and_a_cache_does_not() -> None:
    one = Allocator(80 * GIB)
    one.malloc(GIB, frames=stack("/srv/app/cache.py", 1, "make"))
    for _ in range(30):
        one.malloc(10 * MIB, frames=stack("/srv/app/eval.py", 9, "collect"))
        one.free(one.malloc(100 * MIB, frames=stack("/srv/app/model.py", 8, "forward")))
    grown = {held.where: held for held in traced(one).grown}
    assert grown["/srv/app/eval.py:9"].steady
    assert grown["/srv/app/eval.py:9"].bytes == 300 * MIB
    assert not grown["/srv/app/cache.py:1"].steady
    assert "/srv/app/model.py:8" not in grown


def test_a_trace_that_lost_its_beginning_says_so() -> None:
    """The allocator keeps the last ``max_entries`` events."""
    one = Allocator(80 * GIB)
    for _ in range(20):
        one.malloc(GIB)
    one.trace = one.trace[-6:]
    trace = traced(one)
    assert not trace.whole
    assert (trace.start.live_bytes, trace.end.live_bytes) == (17 * GIB, 20 * GIB)


def test_events_that_were_not_recorded_are_noticed() -> None:
    one = Allocator(80 * GIB)
    for address in [one.malloc(GIB) for _ in range(3)]:
        one.free(address)
    one.trace = [event for event in one.trace if event["action"] != "free_completed"]
    assert traced(one).notes


@settings(deadline=None, max_examples=60)
@given(STEPS)
def test_the_curve_begins_at_nothing_and_ends_at_what_is_there(program: list[Any]) -> None:
    one = Allocator(GIB)
    run(program, one, [])
    if not one.trace:
        return
    trace = traced(one)
    assert trace.whole
    assert trace.end.reserved_bytes == sum(held.size for held in one.segments)
    assert trace.end.live_bytes == sum(piece.requested for held in one.segments for piece in held.pieces)
    assert trace.peak.live_bytes == max(point.live_bytes for point in trace.curve)
    assert sum(held.bytes for held in trace.peak_owners) == trace.peak.live_bytes
    assert len(trace.curve) <= POINTS


def owner(*frames: dict[str, Any]) -> str:
    values = Allocator(GIB)
    values.malloc(MIB, frames=list(frames))
    (segment,) = parse(values.snapshot(), "").segments
    found = owner_of(segment.blocks[0].frames)
    return f"{found.file}:{found.line}" if found else NO_STACK


def test_the_owner_is_the_first_line_that_is_not_pytorchs() -> None:
    ours = frame("/srv/app/model.py", 12, "forward")
    for theirs in (
        frame("/usr/lib/python3.12/site-packages/torch/nn/functional.py", 1, "linear"),
        frame(r"C:\Python312\Lib\site-packages\torch\nn\functional.py", 1, "linear"),
        frame("/usr/lib/python3/dist-packages/torch/_ops.py", 1, "__call__"),
        frame("/build/pytorch/torch/_tensor.py", 1, "clone"),
        frame("??", 0, "at::native::empty_cuda"),
        frame("CUDACachingAllocator.cpp", 0, "c10::malloc"),
        frame("/usr/lib/libc10.so", 0, "c10::malloc"),
        frame("<frozen importlib._bootstrap>", 1, "f"),
        frame("", 0, ""),
    ):
        assert owner(theirs, ours) == "/srv/app/model.py:12"
    assert owner(frame("/opt/torch_tools/x.py", 3, "f"), ours) == "/opt/torch_tools/x.py:3"
    assert owner(frame("<stdin>", 1, "<module>")) == "<stdin>:1"
    only = frame("/usr/lib/python3.12/site-packages/torch/utils/data.py", 4, "f")
    assert owner(only) == "/usr/lib/python3.12/site-packages/torch/utils/data.py:4"
    assert owner() == NO_STACK
