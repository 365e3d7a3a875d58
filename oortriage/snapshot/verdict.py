"""Why a request failed, by what the snapshot holds: each test in order, with its arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from oortriage.evidence.values import format_bytes
from oortriage.ledger.decision import Step
from oortriage.ledger.shortage import IDLE_SHARE, LARGEST_CARD, ROUNDING
from oortriage.snapshot.model import DEFAULT_POOL, PoolId, Segment
from oortriage.snapshot.request import Need, Offer, need, offer

Cause = Literal[
    "served",
    "absurd_request",
    "limit",
    "fragmentation",
    "stranded_pool",
    "stranded_stream",
    "awaiting_free",
    "capacity",
    "undetermined",
]


class Verdict(msgspec.Struct, frozen=True):
    """The answer for one request. ``short_bytes``: what was missing when all idle memory is counted; 0 where none."""

    cause: Cause
    summary: str
    request_bytes: int
    rounded_bytes: int
    pool: PoolId
    stream: int
    device_free_bytes: int | None
    offer: Offer
    short_bytes: int
    steps: list[Step]


def judge(
    segments: Sequence[Segment],
    size: int,
    *,
    stream: int = 0,
    pool: PoolId = DEFAULT_POOL,
    device_free: int | None = None,
    max_split: int | None = None,
    failed: bool = True,
) -> Verdict:
    """Say why a request fails, or that it would be served.

    Args:
        segments: one device's segments at that moment.
        size: the request in bytes.
        stream: the stream that asks.
        pool: the pool that is asked.
        device_free: what the driver has free, in bytes; None where nobody said.
        max_split: the allocator's ``max_split_size`` in bytes, where one is set.
        failed: the request did fail (an OOM event); False for a question about one that was not made.
    """
    wanted = need(size, stream, pool)
    seen = offer(segments, wanted, max_split)
    reserved, whole = sum(one.size for one in segments), 0
    if not failed and seen.largest < wanted.rounded:
        # Before the allocator fails it gives its pool's whole idle segments back; at a recorded failure it has.
        kept = [one for one in segments if one.pool != pool or one.bytes_in("inactive") < one.size]
        whole = reserved - sum(one.size for one in kept)
        seen = offer(kept, wanted, max_split)
    judged = _Judge(wanted, seen, device_free, reserved, whole, failed=failed)
    cause, summary = judged.decide()
    return Verdict(
        cause, summary, size, wanted.rounded, pool, stream, device_free, seen, judged.short, judged.steps
    )  # fmt: skip


class _Judge:
    """The tests, in order; the first that holds gives the cause."""

    def __init__(self, wanted: Need, seen: Offer, free: int | None, reserved: int, whole: int, *, failed: bool) -> None:
        self.wanted, self.seen, self.reserved, self.failed = wanted, seen, reserved, failed
        #: Bytes of whole idle segments, which count as free.
        self.whole = whole
        self.free = free + whole if free is not None else None
        self.steps: list[Step] = []
        self.short = 0

    def step(self, test: str, figures: str, holds: bool | None, answer: str) -> bool:
        """Note a test; returns whether it holds."""
        self.steps.append(Step(test, figures, holds, answer))
        return holds is True

    def decide(self) -> tuple[Cause, str]:
        wanted, seen, free = self.wanted, self.seen, self.free
        size, said = wanted.rounded, format_bytes(wanted.rounded)
        if self.step(
            "is the request larger than any card",
            f"{format_bytes(wanted.bytes)} asked for; the largest card has {format_bytes(LARGEST_CARD)}",
            wanted.bytes > LARGEST_CARD,
            "a wrong shape or an overflow" if wanted.bytes > LARGEST_CARD else "no",
        ):
            return "absurd_request", f"One request of {format_bytes(wanted.bytes)} is more than any single card has."
        where = f"{_pool_words(wanted.pool)}, stream {wanted.stream}, {wanted.kind} blocks"
        fits = seen.largest >= size
        self.step(
            "is one idle block large enough",
            f"the largest idle block for it ({where}) has {format_bytes(seen.largest)}; {said} wanted",
            None if fits and self.failed else fits,
            ("yes, and yet it was refused" if self.failed else "yes, served from the cache") if fits else "no",
        )
        if fits and not self.failed:
            return "served", f"{said} would be served by an idle block of {format_bytes(seen.largest)}."
        if fits:
            return "undetermined", (
                f"An idle block of {format_bytes(seen.largest)} was there for a request of {said}: the snapshot is of "
                "another moment, or the allocator passed a fitting block over "
                "(https://github.com/pytorch/pytorch/issues/189504)."
            )
        if free is None and self.whole < wanted.segment_bytes:
            return self._without_free()
        free = self.whole if free is None else free
        if self._enough_free(free):
            if not self.failed:
                return "served", f"{said} would be served by the driver, with {format_bytes(free)} free{self._given()}."
            return "limit", (
                f"{format_bytes(free)} were free on the card for a request of {said}: not a shortage of memory but a "
                "limit, most often torch.cuda.set_per_process_memory_fraction, or the largest single mapping."
            )
        return self._shortage(free)

    def _enough_free(self, free: int) -> bool:
        segment = self.wanted.segment_bytes
        enough = free >= segment and (not self.failed or free - segment >= ROUNDING)
        close = free >= segment and not enough
        return self.step(
            "had the driver enough for a new segment",
            f"{format_bytes(free)} free{self._given()}; a segment for it takes {format_bytes(segment)}",
            enough,
            "yes" if enough else "only just: rounding or a race may have taken it" if close else "no",
        )

    def _given(self) -> str:
        """Say how much of the free memory is whole idle segments that the allocator gives back first."""
        return f" ({format_bytes(self.whole)} of it idle segments given back first)" if self.whole else ""

    def _without_free(self) -> tuple[Cause, str]:
        wanted, seen = self.wanted, self.seen
        self.step(
            "had the driver enough for a new segment",
            f"a segment for it takes {format_bytes(wanted.segment_bytes)}; idle segments would give back "
            f"{format_bytes(self.whole)}; nobody says what else is free",
            None,
            "could not tell",
        )
        enough = seen.usable >= wanted.rounded
        scattered = f"{format_bytes(seen.usable)} idle in {seen.usable_blocks:,} blocks"
        if self.step(
            "would its own idle memory hold it in one piece",
            f"{scattered}; {format_bytes(wanted.rounded)} wanted",
            enough,
            "yes: scattered" if enough else "no",
        ):
            return "fragmentation", (
                f"{scattered} would hold {format_bytes(wanted.rounded)}, but the largest block has "
                f"{format_bytes(seen.largest)}."
            )
        return "undetermined", (
            f"No idle block holds {format_bytes(wanted.rounded)}; whether the driver has "
            f"{format_bytes(wanted.segment_bytes)} free is not in the snapshot."
        )

    def _shortage(self, free: int) -> tuple[Cause, str]:
        wanted, seen = self.wanted, self.seen
        size, sofar, told = wanted.rounded, free, f"{format_bytes(free)} free"
        parts: tuple[tuple[Cause, str, int, str], ...] = (
            (
                "fragmentation",
                "would it fit with its own idle blocks joined to the free memory",
                seen.usable,
                f"idle in {seen.usable_blocks:,} blocks, the largest of {format_bytes(seen.largest)}",
            ),
            ("stranded_pool", "with the idle memory of other pools, too", seen.other_pools, "idle in other pools"),
            (
                "stranded_stream",
                "with what is idle on other streams and in blocks of the other kind, too",
                seen.other_streams + seen.other_kind,
                "idle out of reach",
            ),
            (
                "awaiting_free",
                "with what was freed and waits for another stream, too",
                seen.awaiting,
                "waiting for another stream",
            ),
        )
        for cause, test, more, words in parts:
            joined = sofar + more
            enough = joined >= size
            much = self.reserved > 0 and more >= IDLE_SHARE * self.reserved
            figures = f"{told} + {format_bytes(more)} {words} = {format_bytes(joined)} {'>=' if enough else '<'} "
            figures += format_bytes(size)
            if enough:
                figures += f"; that is {more / max(1, self.reserved):.0%} of the {format_bytes(self.reserved)} reserved"
            answer = "yes" if enough and much else "in sum, but this is little of it" if enough else "no"
            if self.step(test, figures, enough and much, answer):
                return self._found(cause, free)
            sofar, told = joined, format_bytes(joined)
        if sofar >= size:
            full = 1 - (sofar - free) / max(1, self.reserved)
            return "capacity", (
                f"{format_bytes(size)} wanted, {format_bytes(free)} free: {full:.0%} of what is reserved is in use; "
                "only with every idle byte in one piece would this one request fit."
            )
        self.short = size - sofar
        self.step(
            "what is missing",
            f"{format_bytes(size)} - {format_bytes(sofar)} = {format_bytes(self.short)}",
            True,
            "short, even with every idle byte",
        )
        return "capacity", (
            f"{format_bytes(size)} wanted; all that is free or idle together is {format_bytes(sofar)}: "
            f"{format_bytes(self.short)} short."
        )

    def _found(self, cause: str, free: int) -> tuple[Cause, str]:
        wanted, seen = self.wanted, self.seen
        size, left = format_bytes(wanted.rounded), format_bytes(free)
        if cause == "fragmentation":
            return "fragmentation", (
                f"{format_bytes(seen.usable)} of the pool lies idle in {seen.usable_blocks:,} blocks; with {left} "
                f"free it would hold {size}, but the largest single block has {format_bytes(seen.largest)}."
            )
        if cause == "stranded_pool":
            return "stranded_pool", (
                f"{format_bytes(seen.other_pools)} lie idle in pools that a request of {_pool_words(wanted.pool)} "
                f"may not use; {left} were free for {size}."
            )
        if cause == "stranded_stream":
            return "stranded_stream", (
                f"{format_bytes(seen.other_streams)} lie idle on other streams and {format_bytes(seen.other_kind)} in "
                f"blocks of the other kind, out of the reach of stream {wanted.stream}; {left} were free for {size}."
            )
        return "awaiting_free", (
            f"{format_bytes(seen.awaiting)} had been freed and waited for another stream (record_stream); {left} were "
            f"free for {size}."
        )


def _pool_words(pool: PoolId) -> str:
    return "the default pool" if pool == DEFAULT_POOL else f"private pool ({pool[0]}, {pool[1]})"


def pool_words(pool: PoolId) -> str:
    """Name a pool. Ids are those of ``segment_pool_id``."""
    return _pool_words(pool)
