"""Bounded memory: which stretches of a log are kept, with exact line numbers, whatever its size.

A small log is kept whole. Of a large one the head and the tail are kept, and a stretch of lines
round every place where an anchor of a rule occurs, up to fixed budgets of bytes: the first such
stretches and, in a ring, the last ones, because the root of a failure stands early and its end late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cached_property

import ahocorasick_rs
import msgspec

from oortriage.intake.source import CHUNK

#: A log up to this size is kept whole.
WHOLE = 1 << 20
#: Bytes kept at either end of a larger one.
EDGE = 128 << 10
#: Bytes before and after an anchor: about 100 and 60 lines of a traceback.
BEFORE = 14 << 10
AFTER = 8 << 10
#: Budgets in bytes for the first and for the last stretches.
FIRST_BUDGET = 1 << 20
LAST_BUDGET = 1 << 20
#: An anchor seen this often no longer opens a stretch in the first budget, so that one noisy
#: message cannot use it up.
FIRST_PER_ANCHOR = 8
#: An anchor seen this often is noise in this log and no longer looked for; its last occurrences
#: are found again where they matter, at the end of the log and beside other anchors.
NOISE_FACT = 64
NOISE_EVENT = 4096
#: Facts are single lines; they are kept with a margin of this many bytes.
FACT_MARGIN = 512


class Stretch(msgspec.Struct, frozen=True):
    """A run of bytes of the log.

    ``line`` is the 1-based number of the line its first byte is in, ``column`` the 0-based byte
    offset of that first byte within the line.
    """

    offset: int
    line: int
    column: int
    data: bytes


class Anchors(msgspec.Struct, frozen=True):
    """Literals to look for: those of events open a wide stretch, those of facts a single line."""

    events: tuple[str, ...]
    facts: tuple[str, ...]


class Gate:
    """The anchors as one automaton over lower-cased bytes; built when a large log first needs it."""

    def __init__(self, anchors: Anchors) -> None:
        """Keep the anchors, in lower case."""
        self._events = {anchor.lower().encode() for anchor in anchors.events}
        self._literals = sorted(self._events | {anchor.lower().encode() for anchor in anchors.facts})
        self.longest = max((len(literal) for literal in self._literals), default=1)

    @cached_property
    def _automaton(self) -> ahocorasick_rs.BytesAhoCorasick:
        return ahocorasick_rs.BytesAhoCorasick(self._literals, implementation=ahocorasick_rs.Implementation.DFA)

    def hits(self, data: bytes) -> list[tuple[bytes, int, bool]]:
        """Return ``(anchor, start, is_event)`` for every occurrence in order of its end."""
        return [
            (self._literals[index], start, self._literals[index] in self._events)
            for index, start, _ in self._automaton.find_matches_as_indexes(_folded(data), overlapping=True)
        ]

    def without(self, anchors: set[bytes]) -> Gate:
        """Return a gate that no longer looks for some anchors."""
        kept = [literal.decode() for literal in self._literals if literal not in anchors]
        events = {literal.decode() for literal in self._events}
        return Gate(
            Anchors(
                tuple(literal for literal in kept if literal in events),
                tuple(literal for literal in kept if literal not in events),
            )
        )


def _folded(data: bytes) -> bytes:
    """Lower case, and line breaks as spaces: a message may be broken inside an anchor, between two words.

    These are faster than one ``translate``.
    """
    lower = data.lower().replace(b"\n", b" ")
    return lower.replace(b"\r", b" ") if b"\r" in lower else lower


def keep(chunks: Iterator[bytes], gate: Gate, *, whole: int = WHOLE) -> list[Stretch]:
    """Read a log once and return the stretches worth reading closely, in order, not overlapping.

    Memory stays under about ``whole`` plus the budgets, whatever the size of the log and the
    length of its lines.

    Args:
        chunks: the log as UTF-8 bytes.
        gate: what to look for.
        whole: size in bytes up to which everything is kept.
    """
    head: list[bytes] = []
    size = 0
    for chunk in chunks:
        head.append(chunk)
        size += len(chunk)
        if size > whole:
            break
    else:
        return [Stretch(0, 1, 0, b"".join(head))] if size else []
    return _keep_large(_recut(head, chunks), gate)


def _recut(head: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    """Cut the input into even pieces: a decompressor gives small ones, a caller maybe huge ones."""
    pending: list[bytes] = []
    size = 0
    for source in (iter(head), rest):
        for chunk in source:
            pending.append(chunk)
            size += len(chunk)
            if size >= CHUNK:
                data = b"".join(pending)
                for start in range(0, len(data) - len(data) % CHUNK, CHUNK):
                    yield data[start : start + CHUNK]
                left = data[len(data) - len(data) % CHUNK :]
                pending, size = [left], len(left)
    if size:
        yield b"".join(pending)


def _keep_large(chunks: Iterator[bytes], gate: Gate) -> list[Stretch]:
    pools = _Pools()
    offset = 0
    #: The bytes just before the current chunk: room for a stretch's lead-in and a split anchor.
    carry = b""
    carry_at = (0, 1, 0)  # offset, line, column of the first carried byte
    tail: deque[tuple[int, int, int, bytes]] = deque()
    tail_size = 0
    #: Ranges that reach past the bytes read so far: where they end, and in which pool they go.
    unfinished: list[tuple[int, bool]] = []
    for chunk in chunks:
        buffer = carry + chunk
        base = carry_at[0]
        fresh_from = max(0, len(carry) - gate.longest)
        wanted = _wanted(gate, buffer, base, fresh_from, pools, offset == 0)
        if noise := pools.noise():
            gate = gate.without(noise)
        wanted += [(base + len(carry), high, late) for high, late in unfinished]
        ranges = list(_merged(wanted, base, base + len(buffer)))
        cut = max(0, len(buffer) - BEFORE)
        places = _places(buffer, carry_at, {low - base for low, _, _ in ranges} | {len(carry), cut})
        for low, high, late in ranges:
            pools.add(Stretch(low, *places[low - base], buffer[low - base : high - base]), late=late)
        end = base + len(buffer)
        unfinished = sorted({(high, late) for _, high, late in wanted if high > end})[-2:]
        tail.append((offset, *places[len(carry)], chunk))
        tail_size += len(chunk)
        while tail_size - len(tail[0][3]) >= EDGE:
            tail_size -= len(tail.popleft()[3])
        offset += len(chunk)
        carry, carry_at = buffer[cut:], (base + cut, *places[cut])
    last = b"".join(piece for _, _, _, piece in tail)
    skip = max(0, len(last) - EDGE)
    pools.edges.append(Stretch(tail[0][0] + skip, *_places(last, tail[0][:3], {skip})[skip], last[skip:]))
    return pools.joined()


def _wanted(
    gate: Gate, buffer: bytes, base: int, fresh_from: int, pools: _Pools, at_start: bool
) -> list[tuple[int, int, bool]]:
    """List the byte ranges (offsets in the log) that the anchors of this buffer ask for."""
    wanted: list[tuple[int, int, bool]] = []
    if at_start:
        wanted.append((0, EDGE, False))
    view = buffer[fresh_from:]
    for anchor, start, is_event in gate.hits(view):
        at = base + fresh_from + start
        if at + len(anchor) <= pools.searched:
            continue  # wholly in the bytes carried over, so it was found before
        late = pools.is_late(anchor, is_event=is_event)
        if is_event:
            wanted.append((at - BEFORE, at + AFTER, late))
        elif not late:
            wanted.append((at - FACT_MARGIN, at + FACT_MARGIN, late))
    pools.searched = base + len(buffer)
    return wanted


def _merged(wanted: list[tuple[int, int, bool]], low: int, high: int) -> Iterator[tuple[int, int, bool]]:
    """Clip ranges to what is in memory and join those that touch and go to the same pool."""
    current: tuple[int, int, bool] | None = None
    for asked_start, asked_end, late in sorted(wanted):
        start, end = max(asked_start, low), min(asked_end, high)
        if end <= start:
            continue
        if current and start <= current[1] and late == current[2]:
            current = (current[0], max(end, current[1]), late)
        else:
            if current:
                yield current
            current = (start, end, late)
    if current:
        yield current


def _places(buffer: bytes, origin: tuple[int, int, int], indexes: set[int]) -> dict[int, tuple[int, int]]:
    """Line and column of some bytes, given those of ``buffer[0]``; each newline is counted once."""
    _, line, column = origin
    places = {}
    done = 0
    for index in sorted(indexes):
        newlines = buffer.count(b"\n", done, index)
        if newlines:
            line += newlines
            column = index - buffer.rfind(b"\n", done, index) - 1
        else:
            column += index - done
        places[index] = line, column
        done = index
    return places


class _Pools:
    """The first stretches up to a budget, the last ones in a ring, and the edges of the log."""

    def __init__(self) -> None:
        self.edges: list[Stretch] = []
        #: Offset up to which the log has been searched.
        self.searched = 0
        self._first: list[Stretch] = []
        self._first_size = 0
        self._last: deque[Stretch] = deque()
        self._last_size = 0
        self._seen: dict[bytes, int] = {}
        self._noise: set[bytes] = set()

    def is_late(self, anchor: bytes, *, is_event: bool) -> bool:
        """Count an anchor; true once its share of the first budget is used."""
        seen = self._seen[anchor] = self._seen.get(anchor, 0) + 1
        if seen == (NOISE_EVENT if is_event else NOISE_FACT):
            self._noise.add(anchor)
        return seen > FIRST_PER_ANCHOR or self._first_size >= FIRST_BUDGET

    def noise(self) -> set[bytes]:
        """Hand over the anchors that have turned out to be noise, once."""
        noise, self._noise = self._noise, set()
        return noise

    def add(self, stretch: Stretch, *, late: bool) -> None:
        if not late:
            self._first.append(stretch)
            self._first_size += len(stretch.data)
            return
        self._last.append(stretch)
        self._last_size += len(stretch.data)
        while self._last_size > LAST_BUDGET and len(self._last) > 1:
            self._last_size -= len(self._last.popleft().data)

    def joined(self) -> list[Stretch]:
        """All stretches in order; those that overlap or touch become one."""
        ordered = sorted([*self._first, *self._last, *self.edges], key=lambda one: one.offset)
        result: list[Stretch] = []
        for stretch in ordered:
            if result and stretch.offset <= result[-1].offset + len(result[-1].data):
                before = result[-1]
                known = before.offset + len(before.data) - stretch.offset
                if known < len(stretch.data):
                    result[-1] = msgspec.structs.replace(before, data=before.data + stretch.data[known:])
            else:
                result.append(stretch)
        return result
