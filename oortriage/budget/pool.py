"""What a KV pool of a given size holds, and whether the engine starts: blocks, tokens, concurrency, admission."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import msgspec

from oortriage.budget import versions
from oortriage.budget.figure import Figure, Provenance
from oortriage.budget.groups import Request, blocks_per_request
from oortriage.budget.layout import KvLayout, whole_block_bytes
from oortriage.errors import UsageError

#: More than any machine has: 2**60 bytes, 2**40 tokens.
_MOST_BYTES, _MOST_TOKENS = 2.0**60, 1 << 40
_RULES = {
    "per_layer": "the sum over layers",
    "first_group": "the first group's blocks stand for every group's",
    "all_groups": "the sum over groups",
    "usable": "the sum over groups, against the pool less one block",
    "V0": "max_model_len against blocks x block size",
}


class Pool(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a KV pool holds. ``kv_tokens`` as the release logs them.

    ``needed_bytes`` is what the release's own start check asks for one request of ``max_model_len`` tokens, and
    ``admitted`` its answer; None where an estimate leaves it open. ``serves``: whether the pool really holds the blocks
    of such a request, at their most. ``traps`` tell where the two differ.
    """

    available_bytes: Figure
    num_blocks: Figure
    kv_tokens: Figure
    max_concurrency: Figure
    blocks_per_request: Figure
    needed_bytes: Figure
    max_model_len: int
    admitted: bool | None
    serves: bool | None
    admission: str
    traps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class _Counted(msgspec.Struct, frozen=True):
    """The figures of one size of the pool."""

    blocks: int
    tokens: int
    concurrency: float
    admitted: bool
    serves: bool


def pool(
    layout: KvLayout,
    available_bytes: Figure | float | Sequence[float],
    *,
    max_model_len: int,
    max_num_batched_tokens: int = 2048,
    blocks_override: int | None = None,
    async_scheduling: bool = True,
) -> Pool:
    """Divide ``available_bytes`` a rank into blocks, and say whether a request of ``max_model_len`` tokens fits.

    Several numbers are one a pipeline stage. The engine takes the fewest blocks of all ranks. ``blocks_override`` is
    ``--num-gpu-blocks-override``. An estimate's range is carried through.

    Raises:
        UsageError: a length below one token, or bytes that are no number.
    """
    check_count("max_model_len", max_model_len)
    check_count("max_num_batched_tokens", max_num_batched_tokens)
    if blocks_override is not None:
        check_count("num_gpu_blocks_override", blocks_override)
    size = _figure(available_bytes, len(layout.stages))
    in_flight, note = _in_flight(layout, max_num_batched_tokens, async_scheduling=async_scheduling)
    request = Request(max_model_len, in_flight, layout.context_ranks, layout.state_mode)
    task = _Task(layout, request, blocks_override)
    stages = _stages(available_bytes, len(layout.stages))
    best = task.count(stages)
    ends = [task.count([bound] * len(stages)) for bound in (size.low, size.high) if bound is not None]
    how, given = task.words(size), _provenance(size)

    def figure(value: float, unit: str, words: str, spread: list[float]) -> Figure:
        low, high = (min(spread), max(spread)) if spread else (None, None)
        return Figure(value, unit, given, words, low, high)

    everyone = [best, *ends]
    return Pool(
        available_bytes=size,
        num_blocks=figure(best.blocks, "blocks", how["blocks"], [one.blocks for one in ends]),
        kv_tokens=figure(best.tokens, "tokens", how["tokens"], [one.tokens for one in ends]),
        max_concurrency=figure(best.concurrency, "requests", how["concurrency"], [one.concurrency for one in ends]),
        blocks_per_request=Figure(task.per_request, "blocks", "derived", how["request"]),
        needed_bytes=Figure(task.needed, "bytes", "derived", task.admission),
        max_model_len=max_model_len,
        admitted=best.admitted if len({one.admitted for one in everyone}) == 1 else None,
        serves=best.serves if len({one.serves for one in everyone}) == 1 else None,
        admission=task.admission,
        traps=task.traps(best),
        notes=(note,) if note else (),
    )


class _Task:
    """One layout and one request, for any number of bytes."""

    def __init__(self, layout: KvLayout, request: Request, override: int | None) -> None:
        self.layout, self.request, self.override = layout, request, override
        admission = versions.fact(layout.version, versions.ADMISSION)
        self.rule = "V0" if layout.engine == "V0" else admission.value
        self.source = "vLLM 0.6.3.post1 worker/worker.py" if self.rule == "V0" else admission.source
        self.group_blocks = [blocks_per_request(group.page, request) for group in layout.groups]
        self.per_request = sum(self.group_blocks)
        self.needed_by_stage = [self._needed(stage) for stage in range(len(layout.stages))]
        self.needed = max(self.needed_by_stage)

    @property
    def admission(self) -> str:
        """Say how the release checks at start that a request fits, and where that stands."""
        alone = len(self.layout.groups) == 1 and self.rule in ("first_group", "all_groups", "per_layer")
        return f"{'blocks a request x bytes a block' if alone else _RULES[self.rule]}, {self.source}"

    def _needed(self, stage: int) -> int:
        """Return the bytes that the start check asks for on a stage."""
        layout = self.layout
        if self.rule == "per_layer":
            return sum(one.bytes * blocks_per_request(one.page, self.request) for one in layout.stages[stage])
        blocks = self.per_request if self.rule != "first_group" else sum(self.group_blocks[:1])
        whole = self.rule != "V0" and versions.holds(layout.version, versions.WHOLE_CHECK)
        return blocks * (whole_block_bytes(layout.groups) if whole else layout.bytes_per_block[stage])

    def count(self, available: Sequence[float]) -> _Counted:
        """Count what bytes a stage give."""
        layout, length = self.layout, self.request.tokens
        if not layout.groups:
            return _Counted(1, 0, 0.0, admitted=True, serves=True)
        fitting = [
            max(0, int(size) // block)
            for size, block in zip(available, layout.bytes_per_block, strict=True)
            if block  # a stage without attention holds no cache
        ]
        blocks = self.override or min(fitting)
        if layout.engine == "V0":
            return self._v0(blocks)
        spare = 1  # the pool keeps one block for itself (the null block)
        return _Counted(
            blocks,
            self._tokens(blocks),
            self._concurrency(blocks, length),
            self._admits(available),
            self.per_request <= blocks - spare,
        )

    def _v0(self, blocks: int) -> _Counted:
        layout, length = self.layout, self.request.tokens
        tokens = blocks * layout.block_size
        real = blocks // layout.pp * layout.block_size
        checked = real if versions.holds(layout.version, versions.PIPELINE_CHECK_SINCE) else tokens
        return _Counted(blocks, tokens, tokens / length, blocks > 0 and length <= checked, length <= real)

    def _tokens(self, blocks: int) -> int:
        """Count the tokens of the line in the log."""
        layout = self.layout
        rule = versions.fact(layout.version, versions.TOKEN_COUNT).value
        if rule == "served":
            return int(self._concurrency(blocks, self.request.tokens) * self.request.tokens)
        if rule == "blocks" or (len(layout.groups) == 1 and not versions.holds(layout.version, versions.DEALT_SINCE)):
            return blocks * layout.block_size * layout.context_ranks
        smallest = min(group.page.block_size or self.request.tokens for group in layout.groups)
        # the first release with context parallelism multiplies by its ranks only where one group holds all layers
        ranks = layout.context_ranks if versions.holds(layout.version, versions.DEALT_SINCE) else 1
        return blocks // len(layout.groups) * smallest * ranks

    def _concurrency(self, blocks: int, length: int) -> float:
        if versions.fact(self.layout.version, versions.TOKEN_COUNT).value == "blocks":
            return blocks * self.layout.block_size / length
        return blocks / self.per_request

    def _admits(self, available: Sequence[float]) -> bool:
        """Do the release's own start check, on every stage."""
        layout = self.layout
        for size, needed, block in zip(available, self.needed_by_stage, layout.bytes_per_block, strict=True):
            have = size
            if self.override is not None and versions.holds(layout.version, versions.OVERRIDE_CHECKED_SINCE):
                have = self.override * block
            if self.rule == "usable":
                have -= block
            if block and (have <= 0 or needed > have):
                return False
        return True

    def words(self, size: Figure) -> dict[str, str]:
        """Write down the arithmetic of each figure."""
        layout, length = self.layout, self.request.tokens
        per_block = max(layout.bytes_per_block)
        taken = f" (rules of {layout.rules_from})" if layout.rules_from != layout.version else ""
        counting = (
            "--num-gpu-blocks-override"
            if self.override is not None
            else f"{size.value:,.0f} // {per_block:,} bytes a block{taken}"
        )
        kinds = Counter(
            (group.page.kind, blocks) for group, blocks in zip(layout.groups, self.group_blocks, strict=True)
        )
        parts = " + ".join(
            f"{blocks:,} ({kind})" if count == 1 else f"{count} x {blocks:,} ({kind})"
            for (kind, blocks), count in kinds.items()
        )
        rule = versions.fact(layout.version, versions.TOKEN_COUNT)
        tokens = {
            "served": f"concurrency x {length:,}",
            "blocks": f"blocks x {layout.block_size}",
            "share": f"blocks // {len(layout.groups)} groups x block size x {layout.context_ranks} context ranks"
            if layout.context_ranks > 1
            else f"blocks // {len(layout.groups)} groups x block size"
            if len(layout.groups) > 1
            else f"blocks x {layout.block_size}",
        }["blocks" if layout.engine == "V0" else rule.value]
        old = layout.engine == "V0" or rule.value == "blocks"
        return {
            "blocks": counting,
            "tokens": f"{tokens}, {rule.source}" if layout.engine == "V1" else tokens,
            "concurrency": f"tokens / {length:,}" if old else f"blocks / {self.per_request:,} blocks a request",
            "request": parts or "no layer keeps tokens",
        }

    def traps(self, found: _Counted) -> tuple[str, ...]:
        """Say where the release's own check lets through what cannot be served, or the log misleads."""
        layout, said = self.layout, []
        usable = found.blocks - (layout.engine == "V1")
        if found.admitted and not found.serves and layout.groups:
            said.append(
                f"the engine starts, but one request of {self.request.tokens:,} tokens takes up to "
                f"{self.per_request:,} blocks and {max(0, usable):,} can be given out: it would wait for ever"
            )
        if layout.engine == "V1" and len(layout.groups) > 1:
            if versions.fact(layout.version, versions.TOKEN_COUNT).value == "share":
                said.append(
                    f"the logged tokens are too few: they are the blocks divided by {len(layout.groups)} groups, "
                    "although layers with a window take only few; concurrency is the figure to go by"
                )
            if self.rule == "first_group":
                said.append("the start check counts one group of several, and asks for too little")
        if layout.engine == "V1" and layout.pp > 1:
            if versions.holds(layout.version, versions.WHOLE_CHECK):
                said.append(f"{versions.WHOLE_CHECK.value}: it refuses what would fit")
            if versions.holds(layout.version, versions.WHOLE_PAGES) and any(group.mixed for group in layout.groups):
                said.append(f"{versions.WHOLE_PAGES.value}, and the rest of the memory is left empty")
        return tuple(said)


def check_count(name: str, value: int) -> None:
    """Refuse what is no count of tokens, blocks or sequences.

    Raises:
        UsageError: it is below one, or more than any machine has.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_TOKENS:
        raise UsageError(f"{name} {value}: not a count of at least one")


def _figure(available: Figure | float | Sequence[float], stages: int) -> Figure:
    if isinstance(available, Figure):
        for one in (available.value, available.low, available.high):
            if one is not None:
                _finite(one)
        return available
    least = min(_stages(available, stages))
    return Figure(least, "bytes", "given")


def _stages(available: Figure | float | Sequence[float], stages: int) -> list[float]:
    if isinstance(available, Figure):
        return [_finite(available.value)] * stages
    if isinstance(available, int | float):
        return [_finite(available)] * stages
    if len(available) != stages:
        raise UsageError(f"{len(available)} sizes of the pool for {stages} pipeline stages")
    return [_finite(one) for one in available]


def _finite(value: float) -> float:
    if isinstance(value, bool) or not math.isfinite(value) or abs(value) > _MOST_BYTES:
        raise UsageError(f"{value} is no number of bytes")
    return value


def _provenance(size: Figure) -> Provenance:
    return "estimated" if size.provenance == "estimated" else "derived"


def _in_flight(layout: KvLayout, batched: int, *, async_scheduling: bool) -> tuple[int, str]:
    """Return the tokens that a window holds beside itself (vLLM 0.28.0 config/vllm.py max_in_flight_tokens)."""
    windowed = any(group.page.window for group in layout.groups)
    if not versions.holds(layout.version, versions.IN_FLIGHT_SINCE):
        return batched, ""
    batches = layout.pp
    if async_scheduling:
        batches = layout.pp + 1
    note = f"windows hold {batches} batches in flight: asynchronous scheduling" if windowed and async_scheduling else ""
    return batches * batched, note
