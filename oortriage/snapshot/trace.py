"""What the recorded events tell: how live and reserved memory went, the peak, and what is still there at the end."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from oortriage.snapshot.model import Event, Frames, Segment
from oortriage.snapshot.owners import NO_STACK, SHOWN, Key, Owner, add_up, key_of

#: Points of the curve that a report keeps.
POINTS = 60
#: OOM events that a report lists.
_OOMS = 20


class Point(msgspec.Struct, frozen=True):
    """The memory after an event, in bytes: asked for and not yet free (``live``), and held from the driver."""

    event: int
    live_bytes: int
    reserved_bytes: int


class Oom(msgspec.Struct, frozen=True):
    """A request that failed: its bytes, what the driver had free (None where not recorded), and who made it."""

    event: int
    request_bytes: int
    device_free_bytes: int | None
    stream: int
    pool: tuple[int, int] | None
    where: str
    function: str
    called_from: str


class Grown(msgspec.Struct, frozen=True):
    """A line whose allocations of the trace are still there at its end.

    ``thirds``: its bytes after each third of the events; ``steady`` when each third added to them; ``called_from``: the
    line that called its function for most of them.
    """

    where: str
    function: str
    bytes: int
    blocks: int
    thirds: list[int]
    steady: bool
    called_from: str


class Trace(msgspec.Struct, frozen=True):
    """One device's events. ``whole``: they go back to the first allocation. Bytes are as asked for, not rounded."""

    events: int
    actions: dict[str, int]
    seconds: float | None
    whole: bool
    start: Point
    end: Point
    peak: Point
    peak_owners: list[Owner]
    curve: list[Point]
    grown: list[Grown]
    ooms: list[Oom]
    notes: list[str] = []


def follow(segments: Sequence[Segment], events: Sequence[Event]) -> Trace | None:
    """Follow one device's events to the state that was written; None where nothing was recorded."""
    if not events:
        return None
    final_live = sum(one.requested for seg in segments for one in seg.blocks if one.state != "inactive")
    final_reserved = sum(seg.size for seg in segments)
    changes = [_change(event) for event in events]
    live = final_live - sum(one for one, _ in changes)
    reserved = final_reserved - sum(one for _, one in changes)
    notes = []
    if live < 0 or reserved < 0:
        notes.append(
            "the events free more than they allocate and the blocks hold: some kinds of events were not recorded, so "
            "the curve is only as good as they are"
        )
    start = Point(-1, live, reserved)
    points, peak = [start], start
    for number, (more_live, more_reserved) in enumerate(changes):
        live, reserved = live + more_live, reserved + more_reserved
        points.append(Point(number, live, reserved))
        if live > peak.live_bytes:
            peak = points[-1]
    times = [event.time_us for event in events if event.time_us]
    actions: dict[str, int] = {}
    for event in events:
        actions[event.action] = actions.get(event.action, 0) + 1
    return Trace(
        events=len(events),
        actions=dict(sorted(actions.items())),
        seconds=(times[-1] - times[0]) / 1e6 if len(times) > 1 and times[-1] >= times[0] else None,
        whole=not start.live_bytes and not start.reserved_bytes,
        start=start,
        end=points[-1],
        peak=peak,
        peak_owners=_at_peak(segments, events, peak.event),
        curve=_thinned(points),
        grown=_grown(events),
        ooms=[oom_of(number, event) for number, event in enumerate(events) if event.action == "oom"][-_OOMS:],
        notes=notes,
    )


def oom_of(number: int, event: Event) -> Oom:
    """Describe a failed request."""
    key = key_of(event.frames, {})
    return Oom(number, event.size, event.device_free, event.stream, event.pool, key.where, key.function, key.caller)


def _change(event: Event) -> tuple[int, int]:
    """Tell by how much an event changes live and reserved memory, in bytes."""
    if event.action == "alloc":
        return event.size, 0
    if event.action == "free_completed":
        return -event.size, 0
    if event.action in ("segment_alloc", "segment_map"):
        return 0, event.size
    if event.action in ("segment_free", "segment_unmap"):
        return 0, -event.size
    return 0, 0


def _thinned(points: Sequence[Point]) -> list[Point]:
    """Keep as many points as a curve needs; of each stretch the highest."""
    if len(points) <= POINTS:
        return list(points)
    step = len(points) / (POINTS - 2)
    kept = [points[0]]
    for number in range(POINTS - 2):
        stretch = points[int(number * step) : max(int(number * step) + 1, int((number + 1) * step))]
        kept.append(max(stretch, key=lambda one: one.live_bytes))
    return [*kept, points[-1]]


def _at_peak(segments: Sequence[Segment], events: Sequence[Event], peak: int) -> list[Owner]:
    """Say who held the memory at the peak, in bytes as asked for."""
    held: dict[int, tuple[int, Frames]] = {}
    for seg in segments:
        for block in seg.blocks:
            if block.state != "inactive":
                held[block.address] = (block.requested, block.frames)
    for event in reversed(events[peak + 1 :]):
        if event.action == "alloc":
            held.pop(event.address, None)
        elif event.action == "free_completed":
            held[event.address] = (event.size, ())
    stacks = {event.address: event.frames for event in events[: peak + 1] if event.action == "alloc"}
    seen: dict[int, Key] = {}
    return add_up((key_of(frames or stacks.get(address, ()), seen), size) for address, (size, frames) in held.items())


def _grown(events: Sequence[Event]) -> list[Grown]:
    """Say which lines' allocations of the trace were still there after each third of it."""
    seen: dict[int, Key] = {}
    held: dict[int, tuple[Key, int]] = {}
    sums: dict[tuple[str, str], list[int]] = {}
    marks = [len(events) // 3, 2 * len(events) // 3, len(events)]
    thirds: list[dict[tuple[str, str], int]] = []
    for number, event in enumerate(events, 1):
        if event.action == "alloc":
            key = key_of(event.frames, seen)
            held[event.address] = (key, event.size)
            entry = sums.setdefault(key[:2], [0, 0])
            entry[0] += event.size
            entry[1] += 1
        elif event.action == "free_completed" and event.address in held:
            key, size = held.pop(event.address)
            sums[key[:2]][0] -= size
            sums[key[:2]][1] -= 1
        while len(thirds) < 3 and number >= marks[len(thirds)]:
            thirds.append({owner: entry[0] for owner, entry in sums.items()})
    callers: dict[tuple[str, str], dict[str, int]] = {}
    for key, size in held.values():
        above = callers.setdefault(key[:2], {})
        above[key.caller] = above.get(key.caller, 0) + size
    grown = []
    for owner, (size, blocks) in sorted(sums.items(), key=lambda one: -one[1][0])[:SHOWN]:
        if size <= 0 or owner[0] == NO_STACK:
            continue
        each = [table.get(owner, 0) for table in thirds]
        steady = len(events) >= 30 and 0 < each[0] < each[1] < each[2]
        most = max(callers[owner].items(), key=lambda one: one[1])[0] if owner in callers else ""
        grown.append(Grown(owner[0], owner[1], size, blocks, each, steady, most))
    return grown
