"""What must change for a length or a concurrency, by the model's own layout: exact where the memory is."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import msgspec

from oortriage.budget import versions
from oortriage.budget.figure import Figure, Provenance
from oortriage.budget.kv import KvLayout, Pool, kv_layout, pool
from oortriage.budget.memory import Available
from oortriage.budget.plan import Planned
from oortriage.budget.releases import before, since
from oortriage.budget.solution import Solution
from oortriage.budget.solve import FP8_CAPABILITY, Want
from oortriage.budget.sums import high, low
from oortriage.budget.versions import AUTO_LENGTH_SINCE, GATE_SINCE, GIVEN_SINCE
from oortriage.budget.window import HIGHEST, Window, round_up, size_words
from oortriage.errors import OortriageError, UsageError

#: Where the model's config states no length.
_ANY_LENGTH = 1 << 24
_MOST_BYTES = 1 << 58


class Card(msgspec.Struct, frozen=True):
    """A card's memory in bytes, the share in force (0 to 1), and what was free when the engine started."""

    total: Figure
    utilization: float
    free: Figure | None = None
    #: CUDA graphs that must fit beside the share.
    graphs: Figure | None = None


def card_of(memory: Available | None) -> Card | None:
    """Take a planner's memory for a card; None where the bytes for the KV cache were given."""
    if memory is None or memory.formula == "given":
        return None
    return Card(
        memory.total,
        memory.utilization.value,
        memory.gate.free if memory.gate else None,
        None if memory.graphs_charged else memory.graphs,
    )


class _Asked:
    """One layout, one wish, and how many bytes it takes on one rank."""

    def __init__(self, planned: Planned, want: Want, layout: KvLayout | None = None) -> None:
        self.planned, self.layout = planned, layout or planned.layout
        self.length = want.length or planned.max_model_len
        self.concurrency = want.concurrency or 1.0

    def hold(self, size: Figure | float, length: int = 0) -> Pool:
        return pool(
            self.layout,
            size,
            max_model_len=length or self.length,
            max_num_batched_tokens=int(self.planned.max_num_batched_tokens.value),
            blocks_override=self.planned.settings.blocks_override,
        )

    def does(self, size: float, length: int = 0) -> bool:
        held = self.hold(size, length)
        return bool(held.admitted and held.serves and held.max_concurrency.value >= self.concurrency - 1e-9)

    def bytes_needed(self) -> int:
        """Return the fewest bytes with which the engine starts and the wish is served, found by halving."""
        blocks = self.hold(0.0).blocks_per_request.value + 2
        most = int(math.ceil(blocks * self.concurrency) + 2) * max(self.layout.bytes_per_block)
        while most > _MOST_BYTES or not self.does(most):
            if most > _MOST_BYTES:
                raise UsageError(f"{self.length:,} tokens {self.concurrency:g} times: more than any machine holds")
            most *= 2
        return _least(lambda size: self.does(float(size)), most)

    def words(self) -> str:
        many = f"{self.concurrency:g} requests" if self.concurrency != 1 else "one request"
        return f"{many} of {self.length:,} tokens"


def _least(does: Callable[[int], bool], most: int) -> int:
    least = 0
    while least < most:
        middle = (least + most) // 2
        if does(middle):
            most = middle
        else:
            least = middle + 1
    return least


def solve_plan(
    planned: Planned, kv_memory: Figure, want: Want | None = None, card: Card | None = None
) -> tuple[Solution, ...]:
    """List what makes a length or a concurrency possible, the mildest change first.

    Args:
        planned: the layout and the settings.
        kv_memory: bytes that one rank has for the KV cache now; the low end of an estimate counts.
        want: the wish; the planned length, once, where it is None.
        card: the card, to solve for the share of it.

    Raises:
        UsageError: a wish beyond any machine.
    """
    wish = want or Want()
    if not wish.capability and (named := re.fullmatch(r"\d{1,2}\.\d", planned.settings.capability)):
        wish = msgspec.structs.replace(wish, capability=float(named.group()))
    if planned.settings.blocks_override is not None or not planned.layout.groups:
        return ()
    asked = _Asked(planned, wish)
    guess: Provenance = "estimated" if kv_memory.provenance == "estimated" else "derived"
    needed = asked.bytes_needed()
    fits = needed <= low(kv_memory)
    found = []
    if fits:
        effect = f"{asked.words()}: {size_words(needed)} of the {size_words(kv_memory.value)} of KV cache"
        found.append(Solution("fits", "", effect, guess))
    found += _length(asked, kv_memory, guess, fits=fits)
    found += _share(asked, kv_memory, needed, card, guess, fits=fits)
    if not fits:
        found += _fixed(asked, needed, planned, _most(kv_memory, card))
        found += _fp8(asked, kv_memory, wish, planned, guess)
    return tuple(found)


def _length(asked: _Asked, kv_memory: Figure, guess: Provenance, *, fits: bool) -> list[Solution]:
    ceiling = asked.planned.model.max_position_embeddings or _ANY_LENGTH
    size = low(kv_memory)
    tokens = _least(lambda length: not asked.does(size, length + 1), ceiling) if asked.does(size, 1) else 0
    if tokens < 1:
        return []
    once = "one request" if asked.concurrency == 1 else f"{asked.concurrency:g} requests"
    end = "; the model's own length" if tokens == ceiling != _ANY_LENGTH else ""
    effect = f"the longest with which {once} fit{'s' * (asked.concurrency == 1)}{end}"
    check = "the engine starts; `Maximum concurrency` is high enough"
    found = [Solution("length", f"--max-model-len {tokens}", effect, guess, float(tokens), verify=check)]
    if not fits and asked.concurrency == 1 and since(asked.planned.settings.version, AUTO_LENGTH_SINCE.since):
        words = "the engine takes the longest length that fits in the pool it finds"
        found.append(Solution("auto", "--max-model-len auto", words, "derived", verify="the log names the length"))
    return found


def _share(
    asked: _Asked, kv_memory: Figure, needed: int, card: Card | None, guess: Provenance, *, fits: bool
) -> list[Solution]:
    if card is None or low(card.total) <= 0:
        return []
    total = card.total.value
    # The worst case of an estimate: the least memory now.
    least = card.utilization + (needed - low(kv_memory)) / (low(card.total) if not fits else high(card.total))
    ends = [(HIGHEST, "some of every card is taken before the engine measures", False)]
    if card.free is not None and not before(asked.planned.settings.version, GATE_SINCE.since):
        words = f"{size_words(card.free.value)} of {size_words(total)} are free at start"
        ends.append((low(card.free) / total, words, card.free.provenance != "estimated"))
    if card.graphs is not None:
        words = f"the CUDA graphs ({size_words(card.graphs.value)}) are captured outside of the share"
        ends.append((1 - high(card.graphs) / total, words, card.graphs.provenance != "estimated"))
    window = Window(max(0.0, least), *min(ends))
    value = next((one for step in (100, 1000) if (one := round_up(window.low, step)) <= window.high + 1e-9), None)
    sure: Provenance = guess if window.high_known or window.low > 1 else "estimated"
    if value is None:
        effect = (
            f"no --gpu-memory-utilization works for {asked.words()}: it needs {window.low:.3f} or more and at most "
            f"{max(0.0, window.high):.3f} can be had, because {window.high_from}"
        )
        return [Solution("no_window", "", effect, sure, window.low)]
    if value <= 0 or (fits and value >= card.utilization):
        return []
    effect = f"the smallest share that works for {asked.words()} (now {card.utilization:g})"
    return [Solution("utilization", f"--gpu-memory-utilization {value:g}", effect, guess, value, verify="it starts")]


def _most(kv_memory: Figure, card: Card | None) -> float:
    """Return the most that the KV cache could have: with all of the card that is outside of the share."""
    if card is None:
        return math.inf
    taken = 0.0 if card.free is None else max(0.0, card.total.value - card.free.value)
    graphs = 0.0 if card.graphs is None else card.graphs.value
    return kv_memory.value + (1 - card.utilization) * card.total.value - graphs - taken


def _fixed(asked: _Asked, needed: int, planned: Planned, most: float) -> list[Solution]:
    if not since(planned.settings.version, GIVEN_SINCE.since) or needed > most:
        return []
    effect = (
        f"exactly what {asked.words()} take{'s' * (asked.concurrency == 1)} ({size_words(needed)} on each rank); the "
        "utilisation is then ignored and nothing is checked"
    )
    cost = "weights, activations and graphs must fit beside it, unchecked"
    return [
        Solution("kv_memory", f"--kv-cache-memory-bytes {needed}", effect, "derived", float(needed), cost, "risky",
                 "the log says that KV memory was set")
    ]  # fmt: skip


def _fp8(asked: _Asked, kv_memory: Figure, want: Want, planned: Planned, guess: Provenance) -> list[Solution]:
    settings = planned.settings
    if planned.layout.kv_dtype not in ("float16", "bfloat16", "auto") or "fp8" not in versions.kv_dtypes(
        settings.version
    ):
        return []
    if want.capability and want.capability < FP8_CAPABILITY:
        return []
    try:
        layout = kv_layout(
            planned.model, settings.version, dtype=settings.dtype, kv_dtype="fp8", block_size=settings.block_size,
            tp=settings.tp, pp=settings.pp, dcp=settings.dcp, pcp=settings.pcp, hybrid=settings.hybrid,
            engine=settings.engine, attention_backend=settings.attention_backend,
        )  # fmt: skip
        needed = _Asked(planned, want, layout).bytes_needed()
    except OortriageError:
        return []
    if needed > low(kv_memory):
        return []
    unsure = "" if want.capability else "; needs a card of compute capability 8.9 or later"
    effect = f"{asked.words()} then take{'s' * (asked.concurrency == 1)} {size_words(needed)}{unsure}"
    return [
        Solution("kv_dtype", "--kv-cache-dtype fp8", effect, guess, float(needed), "some accuracy", "changes_output",
                 "the start-up log names the KV cache type")
    ]  # fmt: skip
