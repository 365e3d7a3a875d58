"""What must change for a length, or for a number of requests at once: exact flags in the release's spelling.

All from a rebuilt budget: what is left for the KV cache, what a token takes, and where the share of the card
ends. A solution is ``derived`` where every figure in it is printed and the model is known to take the same for
every token, else ``estimated``.
"""

from __future__ import annotations

import math

import msgspec

from oortriage.budget.figure import Provenance
from oortriage.budget.log_budget import LogBudget
from oortriage.budget.releases import since
from oortriage.budget.solution import Solution
from oortriage.budget.span import Span, exactly
from oortriage.budget.versions import ADMISSION_USABLE, AUTO_LENGTH_SINCE, GIVEN_SINCE, TOKENS_SERVED
from oortriage.budget.window import round_down, round_up, size_words, window

#: fp8 in the KV cache needs native conversion in most attention backends (8.9 and later).
FP8_CAPABILITY = 8.9
#: From this share of the pool on it counts as full.
FULL_POOL = 0.9
_ELEMENT_BYTES = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2}


class Want(msgspec.Struct, frozen=True):
    """What is asked for: tokens a request, requests at once; 0 for what the log has. ``capability`` 0: unknown."""

    length: int = 0
    concurrency: float = 0.0
    capability: float = 0.0


class _Ask:
    """A budget and a wish, with the sums that several solutions need."""

    def __init__(self, budget: LogBudget, want: Want) -> None:
        self.budget = budget
        self.version = budget.version
        self.capability = want.capability
        self.length = want.length or int(budget.value("max_model_len") or 0)
        self.concurrency = want.concurrency or 1.0
        self.block = max(1.0, budget.value("block_size") or 16.0)
        self.available = budget.span("kv_available_bytes")
        self.tokens = budget.span("kv_tokens_by_concurrency") or budget.span("kv_tokens")
        self.uniform = _uniform(budget)
        self.need = self._need()

    def _need(self) -> Span | None:
        """Bytes on one rank for the wish."""
        if not self.length:
            return None
        padded = math.ceil(self.length / self.block) * self.block
        needed, length = self.budget.span("kv_needed_bytes"), self.budget.value("max_model_len")
        extra = exactly(self._null_block())
        if needed and length:
            if int(length) == self.length and self.concurrency == 1:
                return needed
            return needed * exactly(self.length / length * self.concurrency) + extra
        block = self.budget.span("kv_block_bytes")
        if block and self.budget.engine == "V0":
            return block * exactly(math.ceil(self.length / self.block) * self.concurrency)
        each = self.budget.span("kv_bytes_per_token")
        return each * exactly(padded * self.concurrency) + extra if each else None

    def _null_block(self) -> float:
        each = self.budget.value("kv_bytes_per_token") or 0.0
        return each * self.block if since(self.version, ADMISSION_USABLE.since) else 0.0

    def provenance(self) -> Provenance:
        """Tell whether the need is arithmetic on printed figures."""
        return "derived" if self.uniform else "estimated"

    def words(self) -> str:
        """Name the wish."""
        many = f"{self.concurrency:g} requests" if self.concurrency != 1 else "one request"
        return f"{many} of {self.length:,} tokens"


def solve(budget: LogBudget, want: Want | None = None) -> tuple[Solution, ...]:
    """List what makes a length or a concurrency possible, the mildest change first.

    Args:
        budget: a rebuilt budget.
        want: the wish; the log's own length, once, where it is None.

    Returns:
        ``fits`` first where nothing need change. Nothing at all where the log prints neither what is left for the
        KV cache nor what a request takes.
    """
    ask = _Ask(budget, want or Want())
    found: list[Solution] = []
    short = ask.need - ask.available if ask.need and ask.available else None
    fits = short is not None and (short.high <= 0 or (short.value <= 0 and _admitted(ask)))
    if fits and ask.available and ask.need:
        found.append(
            Solution(
                "fits", "",
                f"{ask.words()} need{'s' * (ask.concurrency == 1)} {size_words(ask.need)} of the "
                f"{size_words(ask.available)} of KV cache",
                ask.provenance(),
            )
        )  # fmt: skip
    found += _length(ask, fits=fits)
    found += _share(ask, short, fits=fits)
    if not fits:
        found += _fixed_memory(ask, short)
        found += _fp8(ask)
    found += _requests(budget)
    return tuple(found)


def _uniform(budget: LogBudget) -> bool:
    """Tell whether every token takes the same: V0 always; V1 where tokens over length is the concurrency."""
    if budget.engine == "V0":
        return True
    if "kv_tokens_by_concurrency" in budget.figures or since(budget.version, TOKENS_SERVED.since):
        return False
    return any(one.what == "requests of full length" and one.agrees for one in budget.checks)


def _admitted(ask: _Ask) -> bool:
    concurrency = ask.budget.value("kv_concurrency")
    return bool(
        concurrency is not None
        and concurrency >= ask.concurrency
        and ask.length <= (ask.budget.value("max_model_len") or 0)
    )


def largest_length(budget: LogBudget, concurrency: float = 1.0) -> tuple[int, Provenance, str] | None:
    """Return the longest request that fits ``concurrency`` times, in tokens, with its provenance and source.

    The engine's own printed estimate stands before a quotient; both are lower bounds for a model whose layers
    have windows. None where nothing tells.
    """
    ask = _Ask(budget, Want(concurrency=concurrency))
    estimate = budget.value("estimated_max_model_len")
    if estimate and concurrency == 1:
        return int(estimate), "derived", "the engine's own estimate"
    if ask.tokens and ask.tokens.low > 0:
        spare = ask.block if since(ask.version, ADMISSION_USABLE.since) else 0.0
        tokens = (ask.tokens.low - spare) / concurrency
        if budget.engine != "V0":
            tokens = tokens // ask.block * ask.block
        provenance = ask.provenance()
        if budget.figures.get("kv_tokens") and budget.figures["kv_tokens"].provenance == "estimated":
            provenance = "estimated"
        return max(0, int(tokens)), provenance, "the tokens of the pool"
    if ask.available and ask.need and ask.need.low > 0 and ask.length:
        low = ask.length * max(0.0, ask.available.low) / ask.need.high
        return int(low // ask.block * ask.block), "estimated", "length x KV memory / memory for one request"
    return None


def _length(ask: _Ask, *, fits: bool) -> list[Solution]:
    found = largest_length(ask.budget, ask.concurrency)
    if not found or found[0] < 1:
        return []
    tokens, provenance, how = found
    now = ask.budget.value("max_model_len")
    own = ask.budget.value("derived_max_model_len")
    if own and tokens > own:
        tokens, how = int(own), "the model's own length"
    once = "one request" if ask.concurrency == 1 else f"{ask.concurrency:g} requests"
    verb = "fits" if ask.concurrency == 1 else "fit"
    solutions = [
        Solution(
            "length",
            f"--max-model-len {tokens}",
            f"the longest with which {once} {verb}: {how}" + (f"; now {int(now):,}" if now else ""),
            provenance,
            float(tokens),
            "longer requests are refused" if not fits else "",
            "safe",
            "the engine starts; `Maximum concurrency` is 1 or more",
        )
    ]
    if not fits and since(ask.version, AUTO_LENGTH_SINCE.since) and ask.concurrency == 1:
        solutions.append(
            Solution(
                "auto",
                "--max-model-len auto",
                "the engine takes the longest length that fits in the pool it finds",
                "derived",
                None,
                "longer requests are refused",
                "safe",
                "the log names the length that was chosen",
            )
        )
    return solutions


def _share(ask: _Ask, short: Span | None, *, fits: bool) -> list[Solution]:
    """Propose the smallest share that works, or say that none does."""
    if "kv_memory_flag_bytes" in ask.budget.figures:
        return []
    known = short
    if known is None and ask.available and ask.available.value <= 0:
        # Nothing tells what a token takes: the least is that anything is left at all.
        known = exactly(0.0) - ask.available
    found = window(ask.budget, known) if known else None
    if not found or known is None:
        return []
    now = ask.budget.value("gpu_memory_utilization") or 0.0
    guess = "estimated" in (
        ask.budget.figures["capacity_bytes"].provenance,
        ask.budget.figures["gpu_memory_utilization"].provenance,
    )
    provenance: Provenance = "estimated" if guess or (short is not None and not ask.uniform) else "derived"
    value = next((one for step in (100, 1000) if (one := round_up(found.low, step)) <= found.high + 1e-9), None)
    what = ask.words() if short is not None else "a single KV block"
    if value is None:
        return [
            Solution(
                "no_window", "",
                f"no --gpu-memory-utilization works for {what}: it needs {found.low:.3f} or more and at most "
                f"{max(0.0, found.high):.3f} can be had, because {found.high_from}",
                provenance if found.high_known or found.low > 1 else "estimated", found.low,
            )
        ]  # fmt: skip
    if value <= 0 or (fits and value >= now):
        return []
    change = ask.budget.span("capacity_bytes") or exactly(0.0)
    moved = (value - now) * change.value
    if fits:
        effect = f"the smallest share with which {what} still fit{'s' * (ask.concurrency == 1)} (now {now:g})"
        return [
            Solution(
                "utilization", f"--gpu-memory-utilization {value:g}", effect, provenance, value,
                f"the KV cache shrinks by {size_words(-moved)}", "safe", "the engine starts",
            )
        ]  # fmt: skip
    upto = "" if not found.high_known else f"; up to {round_down(found.high):g} passes, because {found.high_from}"
    return [
        Solution(
            "utilization",
            f"--gpu-memory-utilization {value:g}",
            f"the smallest share that works for {what}: it adds {size_words(moved)} to the KV cache, "
            f"{size_words(known)} are missing{upto}",
            provenance,
            value,
            "less room for anything beside the engine",
            "safe",
            "the engine starts",
        )
    ]


def _requests(budget: LogBudget) -> list[Solution]:
    """Where the pool was nearly full: how many requests as large as those that filled it fit."""
    use = budget.use
    if use is None or not use.running or not FULL_POOL <= use.peak_share <= 1:
        return []
    fit = max(1, int(use.running / use.peak_share))
    return [
        Solution(
            "requests",
            f"--max-num-seqs {fit}",
            f"{use.running:,} running requests held {use.peak_share:.1%} of the pool (line {use.line}): that many of "
            "their size fit",
            "estimated",
            float(fit),
            "more requests wait",
            "costs_speed",
            "no preemption is counted",
        )
    ]


def _fixed_memory(ask: _Ask, short: Span | None) -> list[Solution]:
    """Set the KV memory itself, where the release can and the card has that much outside of the share."""
    if not since(ask.version, GIVEN_SINCE.since) or not ask.need or short is None:
        return []
    need = math.ceil(ask.need.high)
    most = ask.budget.value("kv_full_bytes")
    total, share = ask.budget.span("capacity_bytes"), ask.budget.span("budget_bytes")
    if most is None and total and share and ask.available:
        free = ask.budget.value("free_bytes")
        taken = 0.0 if free is None else max(0.0, total.value - free)
        graphs = 0.0 if ask.budget.graphs_counted else (ask.budget.value("cudagraph_bytes") or 0.0)
        most = ask.available.low + (total.low - share.high) - graphs - taken
        source = "what the card has outside of the share"
    else:
        source = "what the engine printed as the most that fits"
    if most is None or need > most:
        return []
    return [
        Solution(
            "kv_memory",
            f"--kv-cache-memory-bytes {need}",
            f"gives {ask.words()} exactly {size_words(float(need))}; {size_words(most)} is {source}; the utilisation "
            "is then ignored and nothing is checked",
            "estimated",
            float(need),
            "graphs and other buffers must fit beside it, unchecked",
            "risky",
            "the log says that KV memory was set and profiling skipped",
        )
    ]


def _fp8(ask: _Ask) -> list[Solution]:
    """Halve the bytes of an element, where card and release can and that is enough."""
    words = ask.budget.words
    now = words.get("kv_cache_dtype", "auto")
    if "fp8" in now or now not in ("auto", "float16", "bfloat16", "") or not ask.need or not ask.available:
        return []
    if ask.capability and ask.capability < FP8_CAPABILITY:
        return []
    size = _ELEMENT_BYTES.get(words.get("dtype", "").removeprefix("torch."), 2)
    after = ask.need / exactly(size)
    if after.high > ask.available.low:
        return []
    known = bool(ask.capability and words.get("dtype"))
    unsure = "" if ask.capability else "; needs a card of compute capability 8.9 or later, which the log does not name"
    return [
        Solution(
            "kv_dtype",
            "--kv-cache-dtype fp8",
            f"{ask.words()} then need{'s' * (ask.concurrency == 1)} {size_words(after)}{unsure}",
            "derived" if known and ask.uniform else "estimated",
            after.value,
            "some accuracy; the attention backend must support it",
            "changes_output",
            "the start-up log names the KV cache type",
        )
    ]
