"""A snapshot to a report: each device's memory by pool, who holds it, how it went, and why a request failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from oortriage.errors import UsageError
from oortriage.evidence.values import format_bytes
from oortriage.snapshot.model import DEFAULT_POOL, PoolId, Segment, Snapshot
from oortriage.snapshot.moment import Moment, rewind
from oortriage.snapshot.owners import NO_STACK, Owner, owners
from oortriage.snapshot.remedies import NoRemedy, Remedy, remedies
from oortriage.snapshot.request import largest_idle
from oortriage.snapshot.trace import Oom, Trace, follow, oom_of
from oortriage.snapshot.verdict import Verdict, judge

SCHEMA_VERSION = 1
#: Cells of a pool's map.
MAP_CELLS = 120
#: The allocator's word for "no limit" in ``max_split_size``.
_NO_SPLIT_LIMIT = (-1, 2**64 - 1, 2**63 - 1)


class Kind(msgspec.Struct, frozen=True):
    """Segments of one kind: small, large or expandable."""

    segments: int
    bytes: int


class Pool(msgspec.Struct, frozen=True):
    """One pool. ``id`` is ``segment_pool_id``; all sizes in bytes.

    ``releasable_bytes``: segments without a live block. Those of a private pool stay while a graph or a MemPool holds
    it. ``idle_share``: idle bytes over reserved bytes. ``map``: the pool's segments end to end in order of address, cut
    into cells of the same size (``map_cell_bytes``); how much of each cell is not idle, in percent.
    """

    id: PoolId
    name: str
    streams: list[int]
    segments: int
    reserved_bytes: int
    allocated_bytes: int
    awaiting_free_bytes: int
    idle_bytes: int
    largest_idle_bytes: int
    releasable_bytes: int
    idle_share: float
    map: list[int]
    map_cell_bytes: int


class State(msgspec.Struct, frozen=True):
    """A device's memory at one moment, in bytes.

    ``allocated``: blocks in use; ``awaiting_free``: freed, in use by another stream; ``idle``: cached;
    ``rounding``: what blocks in use take beyond what was asked for; ``split_idle``: idle next to a live block, so that
    its segment cannot be given back.
    """

    reserved_bytes: int
    allocated_bytes: int
    awaiting_free_bytes: int
    idle_bytes: int
    rounding_bytes: int
    split_idle_bytes: int
    largest_idle_bytes: int
    kinds: dict[str, Kind]
    pools: list[Pool]
    owners: list[Owner]


class Device(msgspec.Struct, frozen=True):
    """One device: as written, at the failed request (where that is another moment), and the verdict on it.

    ``moment``: which moment the verdict is about.
    """

    device: int
    written: State
    at_request: State | None
    moment: str
    trace: Trace | None
    request: Oom | None
    verdict: Verdict | None
    remedies: list[Remedy]
    will_not_help: list[NoRemedy]
    notes: list[str]


class Report(msgspec.Struct, frozen=True):
    """One snapshot file. ``settings`` are the allocator's, as recorded."""

    schema_version: int
    file: str
    form: str
    settings: dict[str, Any]
    devices: list[Device]
    notes: list[str]

    @property
    def exit_code(self) -> int:
        """0: nothing failed, or the request would be served; 1: a cause was found; 3: it could not be told."""
        causes = {one.verdict.cause for one in self.devices if one.verdict}
        if causes - {"served", "undetermined"}:
            return 1
        return 3 if "undetermined" in causes else 0


def analyse(
    snapshot: Snapshot,
    file: str,
    *,
    request: int | None = None,
    free: int | None = None,
    device: int | None = None,
) -> Report:
    """Analyse a snapshot.

    Args:
        snapshot: the snapshot.
        file: its name, for the report.
        request: ask about a request of so many bytes in the state as written, instead of the recorded OOM.
        free: what the driver has free, in bytes, where the snapshot does not say.
        device: only this device.

    Raises:
        UsageError: there is no such device.
    """
    present = snapshot.devices()
    if device is not None and device not in present:
        listed = ", ".join(map(str, present)) or "none"
        raise UsageError(f"{file}: no device {device} in the snapshot; there are: {listed}")
    chosen = present if device is None else [device]
    notes = [*snapshot.notes]
    if not present:
        notes.append("the snapshot holds no segments and no events: nothing had been allocated")
    devices = [_device(snapshot, one, request, free) for one in chosen]
    return Report(SCHEMA_VERSION, file, snapshot.form, snapshot.settings, devices, notes)


def _device(snapshot: Snapshot, device: int, request: int | None, free: int | None) -> Device:
    segments = snapshot.of_device(device)
    events = snapshot.traces.get(device, ())
    trace = follow(segments, events)
    written = state_of(segments)
    notes = list(trace.notes) if trace else ["no events were recorded: nothing can be said about the time before"]
    last = next((number for number in range(len(events) - 1, -1, -1) if events[number].action == "oom"), None)
    verdict, failed, before, moment = None, None, None, "as written"
    if request is not None:
        split = max_split_of(snapshot.settings)
        verdict = judge(segments, request, device_free=free, max_split=split, failed=False)
        held = written
    elif last is not None:
        event = events[last]
        failed = oom_of(last, event)
        then = rewind(device, segments, events, last)
        moment = _moment_words(then, notes)
        before = state_of(then.segments) if then.undone else None
        held = before or written
        verdict = judge(
            then.segments,
            event.size,
            stream=event.stream,
            pool=event.pool or DEFAULT_POOL,
            device_free=event.device_free if event.device_free is not None else free,
            max_split=max_split_of(snapshot.settings),
        )
        if event.pool is None and len({seg.pool for seg in then.segments}) > 1:
            notes.append("this release does not record which pool a request was for: the default pool is assumed")
    cures: list[Remedy] = []
    vain: list[NoRemedy] = []
    if verdict:
        cures, vain = remedies(verdict, snapshot.settings, held.owners)
    if not any(block.frames for seg in segments for block in seg.blocks) and not any(one.frames for one in events):
        notes.append("no stacks were recorded; torch.cuda.memory._record_memory_history() records them")
    return Device(device, written, before, moment, trace, failed, verdict, cures, vain, notes)


def _moment_words(then: Moment, notes: list[str]) -> str:
    if not then.undone:
        return "at the failed request, as written"
    if then.odd:
        notes.append(
            f"{then.odd:,} of the {then.undone:,} events after the failed request did not fit the state as written: "
            "the state at the request is only as good as they are"
        )
    return f"at the failed request: the {then.undone:,} events after it were taken back"


def max_split_of(settings: dict[str, Any]) -> int | None:
    """Read ``max_split_size`` in bytes; None where there is no limit."""
    value = settings.get("max_split_size")
    return value if type(value) is int and value not in _NO_SPLIT_LIMIT and value > 0 else None


def state_of(segments: Sequence[Segment]) -> State:
    """Add up one device's segments."""
    kinds: dict[str, list[int]] = {}
    for seg in segments:
        entry = kinds.setdefault("expandable" if seg.expandable else seg.kind, [0, 0])
        entry[0] += 1
        entry[1] += seg.size
    pools: dict[PoolId, list[Segment]] = {}
    for seg in segments:
        pools.setdefault(seg.pool, []).append(seg)
    blocks = [block for seg in segments for block in seg.blocks]
    idle = sum(block.size for block in blocks if block.state == "inactive")
    whole = sum(seg.size for seg in segments if _is_idle(seg))
    return State(
        reserved_bytes=sum(seg.size for seg in segments),
        allocated_bytes=sum(block.size for block in blocks if block.state == "allocated"),
        awaiting_free_bytes=sum(block.size for block in blocks if block.state == "awaiting_free"),
        idle_bytes=idle,
        rounding_bytes=sum(block.size - block.requested for block in blocks if block.state == "allocated"),
        split_idle_bytes=idle - whole,
        largest_idle_bytes=largest_idle(segments),
        kinds={name: Kind(*entry) for name, entry in sorted(kinds.items())},
        pools=[_pool(one, held) for one, held in sorted(pools.items())],
        owners=owners(segments),
    )


def _is_idle(segment: Segment) -> bool:
    return all(block.state == "inactive" for block in segment.blocks)


def _pool(pool: PoolId, segments: Sequence[Segment]) -> Pool:
    reserved = sum(seg.size for seg in segments)
    idle = sum(seg.bytes_in("inactive") for seg in segments)
    cell = -(-reserved // MAP_CELLS)
    return Pool(
        id=pool,
        name="default" if pool == DEFAULT_POOL else "private",
        streams=sorted({seg.stream for seg in segments}),
        segments=len(segments),
        reserved_bytes=reserved,
        allocated_bytes=sum(seg.bytes_in("allocated") for seg in segments),
        awaiting_free_bytes=sum(seg.bytes_in("awaiting_free") for seg in segments),
        idle_bytes=idle,
        largest_idle_bytes=largest_idle(segments),
        releasable_bytes=sum(seg.size for seg in segments if _is_idle(seg)),
        idle_share=round(idle / reserved, 4) if reserved else 0.0,
        map=_map(segments, cell) if cell else [],
        map_cell_bytes=cell,
    )


def _map(segments: Sequence[Segment], cell: int) -> list[int]:
    """Lay segments end to end and tell how full each cell is, in percent; a cell in use shows at least 1."""
    used = [0] * -(-sum(seg.size for seg in segments) // cell)
    at = 0
    for seg in segments:
        for block in seg.blocks:
            start = at + block.address - seg.address
            if block.state == "inactive":
                continue
            for number in range(start // cell, min(len(used) - 1, (start + block.size - 1) // cell) + 1):
                low, high = max(start, number * cell), min(start + block.size, (number + 1) * cell)
                used[number] += max(0, high - low)
        at += seg.size
    return [min(100, max(1 if held else 0, round(100 * held / cell))) for held in used]


def summary_of(device: Device) -> str:
    """Say one device's memory in a sentence."""
    state = device.at_request or device.written
    holders = [one for one in state.owners if one.where != NO_STACK]
    most = f"; {holders[0].where} holds {format_bytes(holders[0].bytes)}" if holders else ""
    return (
        f"{format_bytes(state.reserved_bytes)} reserved: {format_bytes(state.allocated_bytes)} in use, "
        f"{format_bytes(state.idle_bytes)} idle{most}"
    )
