"""Which of the ways to run out of the card's memory it was, by arithmetic on the message's figures.

The order of the tests reproduces hand labels of 42 in 49 public reports that print their figures;
the thresholds were chosen on the same reports.
"""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec

from oortriage.evidence.values import GIB, MIB, SENTINEL_BYTES, format_bytes, parse_size
from oortriage.triage.case import Case

#: A request this many times the card is a wrong shape or an overflow, not a shortage.
ABSURD = 50
#: Share of the reserved memory that must lie idle before fragmentation is believed.
IDLE_SHARE = 0.20
#: Segments are cut in steps of 2 and 20 MiB; a surplus below this may be rounding.
ROUNDING = 50 * MIB
#: Bytes of the largest single GPU sold (B300 and MI355X, 288 GB; NVIDIA and AMD data sheets, 2026-11-29).
LARGEST_CARD = 288 * 10**9
#: Unexplained memory from which another process is believed when no clause names one.
UNEXPLAINED = 2.5 * GIB

_PROCESS = re.compile(r"Process (\d+) has ([\d.]+ ?[KMGT]?i?B(?:ytes)?) memory in use")
#: ``nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv``
_SMI_ROW = re.compile(r"(?m)^(\d+), ([^,\n]{1,200}), (\d+) MiB$")
_UNIFIED = re.compile(r"GB10|DGX Spark|Jetson|Orin|Thor|Strix Halo|Ryzen AI Max", re.IGNORECASE)


class Figures(msgspec.Struct):
    """The figures of one message in bytes; None where the message does not print them."""

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
    others = [
        (int(pid), size)
        for pid, text in _PROCESS.findall(case.event.match.text)
        if (size := parse_size(text.replace("bytes", "B"))) < SENTINEL_BYTES
    ]
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


def decide(case: Case, figures: Figures) -> tuple[str, str]:
    """Name the cause of an allocation failure, and the arithmetic that says so.

    Returns:
        The cause (``capacity`` when nothing more special fits) and one sentence.
    """
    wanted, total, free = figures.requested, figures.capacity, figures.free
    if wanted is None or free is None:
        held = held_by_others(case)
        if held and held > 5 * (wanted or 0):
            return (
                "other_process",
                f"nvidia-smi in the log lists {format_bytes(held)} held by other processes",
            )
    if wanted is None:
        return "capacity", ""
    if wanted >= SENTINEL_BYTES or (total and wanted > ABSURD * total):
        times = f", {wanted / total:,.0f} times the card" if total else ""
        return (
            "absurd_request",
            f"one request of {format_bytes(int(wanted))}{times}: a wrong shape or an overflow",
        )
    if total is None and wanted > LARGEST_CARD:
        said = f"one request of {format_bytes(int(wanted))} is more than any single card has"
        return "exceeds_card", said
    if total and wanted > total:
        return (
            "exceeds_card",
            f"one request of {format_bytes(int(wanted))} is more than the whole card ({format_bytes(int(total))})",
        )
    if total and figures.reserved and figures.reserved > total:
        return (
            "system_memory_spill",
            (
                f"PyTorch has reserved {format_bytes(int(figures.reserved))} on a card of {format_bytes(int(total))}: "
                "the driver has spilled into system memory"
            ),
        )
    if free is None or total is None:
        return "capacity", ""
    if free >= wanted:
        return _free_enough(figures, wanted, free)
    idle, reserved = figures.idle, figures.reserved
    if idle is not None and reserved and free + idle >= wanted and idle / reserved >= IDLE_SHARE:
        return (
            "fragmentation",
            (
                f"{format_bytes(int(idle))} ({idle / reserved:.0%}) of what PyTorch reserved lies idle; with the free "
                f"{format_bytes(int(free))} it would hold the {format_bytes(int(wanted))}, but in no single piece"
            ),
        )
    if not _is_unified(case):
        verdict = _someone_else(figures, wanted, total)
        if verdict:
            return verdict
    short = wanted - free
    return (
        "capacity",
        f"{format_bytes(int(short))} short: {format_bytes(int(wanted))} wanted, {format_bytes(int(free))} free",
    )


def held_by_others(case: Case) -> int:
    """Add up what an ``nvidia-smi`` listing in the log gives to processes other than the failed one.

    The failed process is the one whose command names the script of the traceback; without it nothing
    can be said, and 0 comes back.
    """
    frames = next((one.frames for stream in case.log.streams for one in stream.raised if one.frames), ())
    script = frames[0].file.replace("\\", "/").rpartition("/")[2] if frames else ""
    rows = [(name, int(size) * MIB) for stream in case.log.streams for _, name, size in _SMI_ROW.findall(stream.text)]
    if not script or not any(script in name for name, _ in rows):
        return 0
    return sum(size for name, size in rows if script not in name)


def _free_enough(figures: Figures, wanted: float, free: float) -> tuple[str, str]:
    """Explain a refusal although enough is free."""
    said = f"{format_bytes(int(free))} were free for a request of {format_bytes(int(wanted))}"
    if figures.allowed is not None:
        return (
            "per_process_limit",
            f"{said}, but this process is allowed {format_bytes(int(figures.allowed))}",
        )
    if figures.pool and figures.allocated and figures.pool / figures.allocated > 0.3:
        return (
            "private_pool",
            f"{said}; {format_bytes(int(figures.pool))} of the allocated memory is stranded in private pools",
        )
    if free - wanted < ROUNDING:
        return "capacity", f"{said}: the difference is lost to rounding to whole segments"
    return (
        "single_allocation_limit",
        f"{said}: not a shortage, but a limit on one block, a mapping or the host",
    )


def _someone_else(figures: Figures, wanted: float, total: float) -> tuple[str, str] | None:
    if figures.outside is not None:
        if figures.outside >= max(0.1 * total, wanted):
            pids = sorted(pid for pid, _ in figures.others)
            if len(pids) >= 2 and all(b - a <= 2 for a, b in pairwise(pids)):
                return (
                    "sibling_ranks",
                    (
                        f"{len(pids)} processes with consecutive ids ({pids[0]} to {pids[-1]}) hold "
                        f"{format_bytes(int(figures.outside))} on this card: ranks of one job bound to one device"
                    ),
                )
            return (
                "other_process",
                f"{format_bytes(int(figures.outside))} is held outside this process",
            )
        return None
    unexplained = figures.not_ours
    if unexplained is not None and unexplained >= max(0.25 * total, UNEXPLAINED):
        return (
            "other_process",
            f"{format_bytes(int(unexplained))} of the used memory was not reserved by PyTorch in this process",
        )
    return None


def _is_unified(case: Case) -> bool:
    return bool(_UNIFIED.search(case.facts.text("gpu"))) or case.text_has(r"(?i)unified memory")
