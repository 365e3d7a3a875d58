"""The figures of one allocator's message, brought to the same few names; what is no size is left out."""

from __future__ import annotations

import re

import msgspec

from oortriage.evidence.values import GIB, SENTINEL_BYTES, parse_size
from oortriage.triage.case import Case

_PROCESS = re.compile(r"Process (\d+) has ([\d.]+ ?[KMGT]?i?B(?:ytes)?) memory in use")


class Figures(msgspec.Struct):
    """The figures of one message in bytes; None where the message does not print them.

    ``pool`` is what lies idle in private pools. PyTorch words it "allocated in private pools" and counts it into
    ``allocated`` (the message is put together in c10/cuda/CUDACachingAllocator.cpp from the pools' free blocks).
    ``dropped`` names figures that were no sizes.
    """

    requested: float | None
    capacity: float | None
    free: float | None
    allocated: float | None
    reserved: float | None
    idle: float | None
    allowed: float | None
    own: float | None
    pool: float | None
    others: list[tuple[int, int]]
    dropped: list[str] = []

    @property
    def outside(self) -> float | None:
        """Memory held by neither this process nor nobody, when a clause says what is its own."""
        if self.capacity is None or self.free is None or self.own is None:
            return None
        return self.capacity - self.free - self.own

    @property
    def not_ours(self) -> float | None:
        """Memory that the framework of this process did not reserve (its context included)."""
        if self.capacity is None or self.free is None or self.reserved is None:
            return None
        return self.capacity - self.free - self.reserved


def figures_of(case: Case) -> Figures:
    """Bring the fields of every generation of the message to the same few figures."""
    number = case.numbers.get
    allocated, reserved, idle = (
        number("allocated_bytes"),
        number("reserved_bytes"),
        number("unallocated_bytes"),
    )
    cached = number("cached_bytes")
    if idle is None and cached is not None:
        idle = cached  # PyTorch 1.0 to 1.3: "cached" leaves out what is allocated
    if idle is None and reserved is not None and allocated is not None:
        idle = reserved - allocated
    if reserved is None and allocated is not None and idle is not None:
        reserved = allocated + idle
    clauses = [
        (int(pid), parse_size(text.replace("bytes", "B"))) for pid, text in _PROCESS.findall(case.event.match.text)
    ]
    others = [(pid, size) for pid, size in clauses if size < SENTINEL_BYTES]
    figures = Figures(
        number("requested_bytes"),
        number("capacity_bytes"),
        number("free_bytes"),
        allocated,
        reserved,
        idle,
        number("allowed_bytes"),
        number("process_bytes"),
        number("private_pool_bytes"),
        others,
        [f"process {pid}" for pid, size in clauses if size >= SENTINEL_BYTES],
    )
    for name in (
        "requested",
        "capacity",
        "free",
        "allocated",
        "reserved",
        "idle",
        "allowed",
        "own",
    ):
        value = getattr(figures, name)
        if value is not None and abs(value) >= SENTINEL_BYTES and name != "requested":
            setattr(figures, name, None)
            figures.dropped.append(name)
    if figures.own is None:
        figures.own = _own_from_clauses(figures)
    return figures


def _own_from_clauses(figures: Figures) -> float | None:
    """Find the own process among clauses that all say "Process": a container sees host PIDs."""
    if not figures.others or figures.capacity is None or figures.free is None:
        return None
    used = figures.capacity - figures.free
    if len(figures.others) == 1 and used - figures.others[0][1] < 0.1 * GIB:
        own = figures.others.pop(0)
        return own[1]
    if figures.reserved:
        nearest = min(figures.others, key=lambda pair: abs(pair[1] - (figures.reserved or 0)))
        if 0 <= nearest[1] - figures.reserved < 2 * GIB:
            figures.others.remove(nearest)
            return nearest[1]
    return None
