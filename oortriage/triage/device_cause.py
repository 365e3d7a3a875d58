"""Which of the ways to run out of the card's memory it was, by arithmetic on the message's figures.

How often the order of the tests reproduces hand labels of public reports stands in docs/evidence/oom-causes.md; the
thresholds were chosen on the same reports. That idle memory of private pools is counted as allocated was seen on a card
(docs/evidence/snapshots.md).
"""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec

from oortriage.evidence.values import GIB, MIB, SENTINEL_BYTES, format_bytes
from oortriage.ledger.decision import Step
from oortriage.ledger.shortage import IDLE_SHARE, LARGEST_CARD, ROUNDING
from oortriage.triage.case import Case
from oortriage.triage.device_figures import Figures

#: A request this many times the card is a wrong shape or an overflow, not a shortage.
ABSURD = 50
#: Share of the allocated memory in private pools from which they are blamed for a refusal with enough free.
POOL_SHARE = 0.3
#: Unexplained memory from which another process is believed when no clause names one.
UNEXPLAINED = 2.5 * GIB

#: ``nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv``
_SMI_ROW = re.compile(r"(?m)^(\d+), ([^,\n]{1,200}), (\d+) MiB$")
_UNIFIED = re.compile(r"GB10|DGX Spark|Jetson|Orin|Thor|Strix Halo|Ryzen AI Max", re.IGNORECASE)


class Decision(msgspec.Struct, frozen=True):
    """The cause (``capacity`` when nothing more special fits), one sentence of arithmetic, and every test made."""

    cause: str
    reason: str
    steps: list[Step]


def decide(case: Case, figures: Figures) -> Decision:
    """Name the cause of an allocation failure, by tests in a fixed order, and the arithmetic of each."""
    walk = _Walk(case, figures)
    cause, reason = walk.decide()
    return Decision(cause, reason, walk.steps)


class _Walk:
    """The tests on one message's figures, in order; the first that holds names the cause."""

    def __init__(self, case: Case, figures: Figures) -> None:
        self.case, self.figures = case, figures
        self.steps: list[Step] = []

    def step(self, test: str, figures: str, holds: bool | None, answer: str = "") -> bool:
        """Note a test; returns whether it holds."""
        said = answer or {True: "yes", False: "no", None: "could not tell"}[holds]
        self.steps.append(Step(test, figures, holds, said))
        return holds is True

    def decide(self) -> tuple[str, str]:
        wanted, free = self.figures.requested, self.figures.free
        if self.figures.dropped:
            names = ", ".join("this process" if one == "own" else one for one in self.figures.dropped)
            self.step(
                "are all figures sizes", f"2^60 bytes or more are printed for: {names}", None, "left out: no size"
            )
        if wanted is None or free is None:
            held = held_by_others(self.case)
            if held and self.step(
                "does nvidia-smi in the log list other processes",
                f"they hold {_size(held)}",
                held > 5 * (wanted or 0),
            ):
                return "other_process", f"nvidia-smi in the log lists {_size(held)} held by other processes"
        if wanted is None:
            return "capacity", ""
        return self._too_large(wanted) or self._by_free(wanted)

    def _too_large(self, wanted: float) -> tuple[str, str] | None:
        """Test for requests that no arrangement of memory could serve, and for a card that has spilled over."""
        total, reserved = self.figures.capacity, self.figures.reserved
        if total is None:
            absurd, many = wanted >= SENTINEL_BYTES, wanted > LARGEST_CARD
            self.step(
                "is it larger than any card",
                f"tried {_size(wanted)}; no capacity printed, the largest card sold has {_size(LARGEST_CARD)}",
                absurd or many,
            )
            if absurd:
                return "absurd_request", f"one request of {_size(wanted)}: a wrong shape or an overflow"
            return (
                ("exceeds_card", f"one request of {_size(wanted)} is more than any single card has") if many else None
            )
        times = f"{wanted / total:,.{0 if wanted >= 10 * total else 2}f} times the card" if total else ""
        printed = f"tried {_size(wanted)}; the card has {_size(total)}" + (f": {times}" if times else "")
        if wanted >= SENTINEL_BYTES or (total and wanted > ABSURD * total):
            self.step(f"is it more than {ABSURD} times the card", printed, True)
            said = f", {wanted / total:,.0f} times the card" if total else ""
            return "absurd_request", f"one request of {_size(wanted)}{said}: a wrong shape or an overflow"
        if self.step("is it larger than the whole card", printed, bool(total) and wanted > total):
            return "exceeds_card", f"one request of {_size(wanted)} is more than the whole card ({_size(total)})"
        if self.step(
            "has PyTorch reserved more than the card has",
            f"reserved {_size(reserved)}; the card has {_size(total)}",
            None if reserved is None else bool(total) and reserved > total,
        ):
            return "system_memory_spill", (
                f"PyTorch has reserved {_size(reserved)} on a card of {_size(total)}: "
                "the driver has spilled into system memory"
            )
        return None

    def _by_free(self, wanted: float) -> tuple[str, str]:
        total, free = self.figures.capacity, self.figures.free
        enough = None if free is None else free >= wanted
        self.step("was enough free", f"tried {_size(wanted)}; free {_size(free)}", enough)
        if free is None or total is None:
            return "capacity", ""
        if free >= wanted:
            return self._free_enough(wanted, free)
        found = (
            self._idle(wanted, free)
            or (None if self._shares_ram() else self._someone_else(wanted, total))
            or self._idle_in_pools(wanted, free)
        )
        if found:
            return found
        short = wanted - free
        self.step("what is missing", f"{_size(wanted)} - {_size(free)} = {_size(short)}", True, "a plain shortage")
        return "capacity", f"{_size(short)} short: {_size(wanted)} wanted, {_size(free)} free"

    def _shares_ram(self) -> bool:
        """Tell whether the memory is the machine's RAM, where what nobody explains proves nobody."""
        if not _is_unified(self.case):
            return False
        self.step("is a large part held by others", "the device shares the machine's RAM", None)
        return True

    def _free_enough(self, wanted: float, free: float) -> tuple[str, str]:
        """Explain a refusal although enough is free."""
        figures = self.figures
        said = f"{_size(free)} were free for a request of {_size(wanted)}"
        if self.step(
            "is the process held to less than the card",
            f"{_size(figures.allowed)} allowed" if figures.allowed is not None else "no `allowed` figure printed",
            figures.allowed is not None,
        ):
            return "per_process_limit", f"{said}, but this process is allowed {_size(figures.allowed)}"
        share = figures.pool / figures.allocated if figures.pool and figures.allocated else 0.0
        if self.step(
            f"is more than {POOL_SHARE:.0%} of what is allocated in private pools",
            f"{_size(figures.pool or 0)} of {_size(figures.allocated)} = {share:.0%}",
            share > POOL_SHARE,
        ):
            said += f"; {_size(figures.pool)} of the allocated memory is stranded in private pools"
            return "private_pool", said
        if self.step(
            "is the surplus lost to rounding",
            f"{_size(free)} - {_size(wanted)} = {_size(free - wanted)}; segments are cut in steps of 2 and 20 MiB, so "
            f"less than {_size(ROUNDING)} may be",
            free - wanted < ROUNDING,
        ):
            return "capacity", f"{said}: the difference is lost to rounding to whole segments"
        self.step("what else refuses", f"{_size(free - wanted)} more were free than asked for", True, "a limit")
        return "single_allocation_limit", f"{said}: not a shortage, but a limit on one block, a mapping or the host"

    def _idle(self, wanted: float, free: float) -> tuple[str, str] | None:
        idle, reserved = self.figures.idle, self.figures.reserved
        test = f"would it fit with what lies idle, and is that {IDLE_SHARE:.0%} of what is reserved"
        if idle is None or not reserved:
            self.step(test, "idle or reserved memory is not printed", None)
            return None
        both, share = free + idle, idle / reserved
        large = f"{share:.0%} of the {_size(reserved)} reserved"
        holds = both >= wanted and share >= IDLE_SHARE
        reason = "in sum, but it is too little of it" if both >= wanted and not holds else ""
        if self.step(
            test,
            f"{_size(free)} free + {_size(idle)} reserved but unallocated = {_size(both)} "
            f"{'>=' if both >= wanted else '<'} {_size(wanted)} tried; idle is {large}",
            holds,
            reason or ("yes: it is there, but in no single piece" if holds else "no"),
        ):
            return "fragmentation", (
                f"{_size(idle)} ({share:.0%}) of what PyTorch reserved lies idle; with the free "
                f"{_size(free)} it would hold the {_size(wanted)}, but in no single piece"
            )
        return None

    def _idle_in_pools(self, wanted: float, free: float) -> tuple[str, str] | None:
        """Test whether memory that lies idle in private pools would have made the difference."""
        pool, reserved = self.figures.pool, self.figures.reserved
        if not pool or not reserved:
            return None
        idle = self.figures.idle or 0
        whole, share = free + idle + pool, pool / reserved
        if self.step(
            f"would it fit with what lies idle in private pools, too, and is that {IDLE_SHARE:.0%} of what is reserved",
            f"{_size(free + idle)} + {_size(pool)} in private pools = {_size(whole)} "
            f"{'>=' if whole >= wanted else '<'} {_size(wanted)} tried; that is {share:.0%} of the "
            f"{_size(reserved)} reserved",
            whole >= wanted and share >= IDLE_SHARE,
        ):
            return "private_pool", (
                f"{_size(pool)} ({share:.0%}) of what PyTorch reserved is stranded in private pools, where this "
                f"request of {_size(wanted)} may not use it; {_size(free)} were free"
            )
        return None

    def _someone_else(self, wanted: float, total: float) -> tuple[str, str] | None:
        figures = self.figures
        if figures.outside is not None:
            least = max(0.1 * total, wanted)
            held = self.step(
                "is a large part held outside this process",
                f"{_size(total)} - {_size(figures.free)} free - {_size(figures.own)} its own = "
                f"{_size(figures.outside)}; {_size(least)} (the larger of a tenth of the card and "
                "the request) would prove it",
                figures.outside >= least,
            )
            return self._whose(figures.outside) if held else None
        unexplained = figures.not_ours
        least = max(0.25 * total, UNEXPLAINED)
        if unexplained is None:
            self.step("is a large part held outside PyTorch", "what is reserved is not printed", None)
            return None
        if self.step(
            "is a large part held outside PyTorch",
            f"{_size(total)} - {_size(figures.free)} free - {_size(figures.reserved)} reserved = {_size(unexplained)}; "
            f"{_size(least)} (a quarter of the card) would prove another process",
            unexplained >= least,
        ):
            said = f"{_size(unexplained)} of the used memory was not reserved by PyTorch in this process"
            return "other_process", said
        return None

    def _whose(self, outside: float) -> tuple[str, str]:
        """Tell ranks of one job from strangers: the ids of ranks follow each other."""
        pids = sorted(pid for pid, _ in self.figures.others)
        if len(pids) >= 2 and self.step(
            "do the processes' ids follow each other",
            ", ".join(map(str, pids[:12])),
            all(b - a <= 2 for a, b in pairwise(pids)),
        ):
            return "sibling_ranks", (
                f"{len(pids)} processes with consecutive ids ({pids[0]} to {pids[-1]}) hold "
                f"{_size(outside)} on this card: ranks of one job bound to one device"
            )
        return "other_process", f"{_size(outside)} is held outside this process"


def _size(count: float | None) -> str:
    """Write a size of a message; what is not printed is said to be so."""
    return "(not printed)" if count is None else format_bytes(int(count))


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


def _is_unified(case: Case) -> bool:
    return bool(_UNIFIED.search(case.facts.text("gpu"))) or case.text_has(r"(?i)unified memory")
