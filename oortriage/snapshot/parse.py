"""Plain values to a snapshot: every field is checked, and an error says which one is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, cast, get_args

from oortriage.errors import InputError
from oortriage.snapshot.model import DEFAULT_POOL, Action, Block, Event, Frame, Frames, PoolId, Segment, Snapshot, State

#: Blocks, events and frames one snapshot may have in all: shared lists can stand for more than the file holds.
MAX_PARTS = 20_000_000
_ACTIONS = frozenset(get_args(Action))
#: The C++ writer (``torch/csrc/cuda/memory_snapshot.cpp``) has another word for the second state.
_STATES: dict[str, State] = {
    "active_allocated": "allocated",
    "active_awaiting_free": "awaiting_free",
    "active_pending_free": "awaiting_free",
    "inactive": "inactive",
}
#: Devices of one machine; a longer list of traces is no snapshot.
_MAX_DEVICES = 128


def parse(values: Any, form: str) -> Snapshot:
    """Make a snapshot of what a file held.

    Args:
        values: the file's plain values: the dictionary of ``_snapshot()``, or the list of ``memory_snapshot()``.
        form: how it was written, for the report.

    Raises:
        InputError: a field is missing or holds what it cannot hold; the message names it.
    """
    return _Parser().snapshot(values, form)


class _Parser:
    """One file's fields; ``frames`` remembers lists that many events share."""

    def __init__(self) -> None:
        self._frames: dict[int, Frames] = {}
        self._left = MAX_PARTS
        self._notes: dict[str, int] = {}

    def snapshot(self, values: Any, form: str) -> Snapshot:
        if isinstance(values, list):  # torch.cuda.memory_snapshot() gives the segments alone
            values = {"segments": values}
        if not isinstance(values, dict) or "segments" not in values:
            raise InputError("no memory snapshot: it has no `segments`")
        segments = tuple(self._segments(values["segments"]))
        listed = _list(values.get("device_traces") or [], "device_traces")
        if len(listed) > _MAX_DEVICES:
            raise InputError(f"no memory snapshot: device_traces has {len(listed):,} devices")
        traces = {device: tuple(self._events(device, events)) for device, events in enumerate(listed)}
        settings = values.get("allocator_settings")
        notes = tuple(f"{words} ({count:,} times)" if count > 1 else words for words, count in self._notes.items())
        return Snapshot(segments, traces, _settings(settings) if isinstance(settings, dict) else {}, form, notes)

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise InputError(f"no memory snapshot: more than {MAX_PARTS:,} blocks, events and frames")

    def _note(self, words: str) -> None:
        self._notes[words] = self._notes.get(words, 0) + 1

    def _segments(self, values: Any) -> Iterator[Segment]:
        for number, one in enumerate(_list(values, "segments")):
            self._count()
            where = f"segments[{number}]"
            table = _table(one, where)
            address = _whole(table, "address", where)
            size = _whole(table, "total_size", where)
            blocks = tuple(self._blocks(table.get("blocks"), where, address))
            total = sum(block.size for block in blocks)
            if total != size:
                self._note("a segment's blocks do not add up to its size")
            yield Segment(
                device=_whole(table, "device", where, least=0, most=_MAX_DEVICES, default=0),
                address=address,
                size=size,
                stream=_whole(table, "stream", where, least=-(2**63), default=0),
                kind=_kind(table.get("segment_type"), where),
                pool=_pool(table.get("segment_pool_id"), where) or DEFAULT_POOL,
                expandable=table.get("is_expandable") is True,
                blocks=blocks,
            )

    def _blocks(self, values: Any, where: str, address: int) -> Iterator[Block]:
        for number, one in enumerate(_list(values, f"{where}.blocks")):
            self._count()
            here = f"{where}.blocks[{number}]"
            table = _table(one, here)
            size = _whole(table, "size", here)
            word = table.get("state")
            state = _STATES.get(word) if isinstance(word, str) else None
            if state is None:
                raise InputError(f"no memory snapshot: {here}.state is {_shown(word)}")
            requested, frames = table.get("requested_size"), table.get("frames")
            history = table.get("history")  # PyTorch before 2.1
            if isinstance(history, list) and history and isinstance(history[0], dict):
                frames = history[0].get("frames") if frames is None else frames
                requested = history[0].get("real_size") if requested is None else requested
            known = type(requested) is int and 0 <= requested <= size
            # Blocks follow each other without gaps; releases before 2.1 write no addresses.
            yield Block(address, size, cast("int", requested) if known else size, state, self._stack(frames, here))
            address += size

    def _events(self, device: int, values: Any) -> Iterator[Event]:
        for number, one in enumerate(_list(values, f"device_traces[{device}]")):
            self._count()
            where = f"device_traces[{device}][{number}]"
            table = _table(one, where)
            action = table.get("action")
            if not isinstance(action, str) or action not in _ACTIONS:
                self._note("an event of an unknown kind was left out")
                continue
            free = _whole(table, "device_free", where) if action == "oom" and "device_free" in table else None
            yield Event(
                action=cast("Action", action),
                address=_whole(table, "addr", where, default=0),
                size=_whole(table, "size", where, default=0),
                stream=_whole(table, "stream", where, least=-(2**63), default=0),
                pool=_pool(table.get("pool_id"), where),
                time_us=_whole(table, "time_us", where, default=0) if "time_us" in table else None,
                device_free=free,
                frames=self._stack(table.get("frames"), where),
            )

    def _stack(self, values: Any, where: str) -> Frames:
        if not values:
            return ()
        if known := self._frames.get(id(values)):
            return known
        frames = []
        for one in _list(values, f"{where}.frames"):
            self._count()
            table = _table(one, f"{where}.frames")
            file, line, function = table.get("filename"), table.get("line"), table.get("name")
            frames.append(
                Frame(
                    file if isinstance(file, str) else "",
                    line if type(line) is int else 0,
                    function if isinstance(function, str) else "",
                )
            )
        self._frames[id(values)] = tuple(frames)
        return self._frames[id(values)]


def _shown(value: Any) -> str:
    """Name a wrong value; of a list or a dictionary only the type, which may stand for more than can be written."""
    if isinstance(value, (str, float, bool, type(None))):
        return repr(value)[:60]
    return (
        str(value)[:60] if isinstance(value, int) and abs(value) < 2**256 else f"a value of type {type(value).__name__}"
    )


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise InputError(f"no memory snapshot: {where} is no list but {type(value).__name__}")
    return list(value)


def _table(value: Any, where: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise InputError(f"no memory snapshot: {where} is no dictionary but {type(value).__name__}")
    return value


def _whole(
    table: dict[Any, Any], name: str, where: str, *, least: int = 0, most: int = 2**64, default: int | None = None
) -> int:
    value = table.get(name, default)
    if isinstance(value, float) and value.is_integer():  # JSON made by other programs
        value = int(value)
    if type(value) is not int or not least <= value < most:
        raise InputError(f"no memory snapshot: {where}.{name} is {_shown(value)}")
    return value


def _kind(value: Any, where: str) -> Literal["small", "large"]:
    if value == "small":
        return "small"
    if value == "large":
        return "large"
    raise InputError(f"no memory snapshot: {where}.segment_type is {_shown(value)}")


def _pool(value: Any, where: str) -> PoolId | None:
    if value is None:
        return None
    pair = _list(value, f"{where}: the pool's id")
    if len(pair) != 2 or any(type(one) is not int for one in pair):
        raise InputError(f"no memory snapshot: {where}: the pool's id is {_shown(value)}")
    return pair[0], pair[1]


def _settings(table: dict[Any, Any]) -> dict[str, Any]:
    """Keep the settings that are plain values, by name; what is no number goes as its word."""
    plain = {str(name): value for name, value in table.items() if isinstance(value, (str, int, float, bool))}
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in plain.items()
    }
