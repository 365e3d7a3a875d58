"""How many tokens and sequences a release schedules at once when nobody says: they drive the profile run."""

from __future__ import annotations

from typing import Literal

import msgspec

from oortriage.budget.figure import Figure
from oortriage.budget.kv import Engine
from oortriage.budget.versions import Fact, default_engine, holds
from oortriage.evidence.values import GIB

#: Python's ``LLM`` class, or the API server (``vllm serve``).
Usage = Literal["llm", "server"]

#: When a card counts as large (V1).
LARGE_BY_NAME = Fact("h100 or h200 in the card's name", "0.7.3", "0.8.0", "vLLM 0.8.0 engine/arg_utils.py:1690-1722")
LARGE_BY_SIZE = Fact("70 GiB or more", "0.8.5", "", "vLLM 0.8.5 engine/arg_utils.py:1591-1612")
A100_SMALL = Fact("an A100 is not large", "0.9.0", "", "vLLM 0.17.1 engine/arg_utils.py:1974")
HUGE_SINCE = Fact("160 GiB or more", "0.28.0", "", "vLLM 0.33.0 engine/arg_utils.py:2966-2977")
GB10_SMALL = Fact("a GB10 is not large", "0.33.0", "", "vLLM 0.33.0 engine/arg_utils.py:2980-2984")
#: V1 before: 1024 sequences on every card.
SEQS_BY_SIZE = Fact("max_num_seqs by card", "0.8.5", "", "vLLM 0.8.5 engine/arg_utils.py:1591-1630")
SEQS_AT_MOST_TOKENS = Fact("min(max_num_seqs, tokens)", "0.10.2", "", "vLLM 0.10.2 engine/arg_utils.py:1742")
TOKENS_AT_MOST_ALL = Fact(
    "min(tokens, max_num_seqs x max_model_len)", "0.11.2", "", "vLLM 0.17.1 engine/arg_utils.py:2140"
)
#: V0: chunked prefill by itself for models whose context is longer (tokens), and its step.
V0_LONG, V0_CHUNK, V0_LEAST, V0_SEQS = 32768, 512, 2048, 256
#: V0's step with chunked prefill grew to 2048 tokens.
V0_CHUNK_2048 = Fact("2048", "0.6.4.post1", "", "vLLM 0.6.6.post1 config.py SchedulerConfig")
_V0_SOURCE = "vLLM 0.6.3.post1 config.py:988-1018, engine/arg_utils.py:940-957"


class SchedulerDefaults(msgspec.Struct, frozen=True):
    """Tokens and sequences of one step."""

    max_num_batched_tokens: Figure
    max_num_seqs: Figure


def scheduler_defaults(
    version: str,
    *,
    total_bytes: float | None,
    card: str = "",
    usage: Usage = "server",
    max_model_len: int | None = None,
    max_num_seqs: int | None = None,
    max_num_batched_tokens: int | None = None,
    chunked_prefill: bool | None = None,
    engine: Engine | None = None,
) -> SchedulerDefaults:
    """Return what the release schedules a step: what is given, else its own choice.

    Args:
        version: vLLM's release.
        total_bytes: the card's memory, bytes; None when it is not known (then vLLM's choice for a small card).
        card: the card's name, as drivers print it.
        usage: ``llm`` for Python's LLM class, ``server`` for ``vllm serve``.
        max_model_len: tokens; it bounds the choice from 0.11.2 on, and makes it in V0.
        max_num_seqs: what the user set.
        max_num_batched_tokens: what the user set, tokens.
        chunked_prefill: what the user set; None: V1 on, V0 off up to 32,768 tokens of context.
        engine: V0 or V1; None: the release's default.
    """
    chosen = engine or default_engine(version)
    if chosen == "V0":
        tokens, seqs, source = _v0(version, max_model_len, chunked_prefill)
    else:
        tokens, seqs, source = _v1(version, total_bytes, card.lower(), usage)
        if chunked_prefill is False and max_model_len:
            tokens = max(tokens, max_model_len) if holds(version, TOKENS_AT_MOST_ALL) else max_model_len
        if max_model_len and holds(version, TOKENS_AT_MOST_ALL):
            tokens = min(tokens, (max_num_seqs or seqs) * max_model_len)
        if holds(version, SEQS_AT_MOST_TOKENS):
            seqs = min(seqs, max_num_batched_tokens or tokens)
    how = f"default of vLLM {version} ({source})"
    return SchedulerDefaults(
        Figure(max_num_batched_tokens, "tokens", "given", "--max-num-batched-tokens")
        if max_num_batched_tokens
        else Figure(tokens, "tokens", "derived", how),
        Figure(max_num_seqs, "requests", "given", "--max-num-seqs")
        if max_num_seqs
        else Figure(seqs, "requests", "derived", how),
    )


def _v0(version: str, max_model_len: int | None, chunked: bool | None) -> tuple[int, int, str]:
    length = max_model_len or 0
    if chunked if chunked is not None else length > V0_LONG:
        return (V0_LEAST if holds(version, V0_CHUNK_2048) else V0_CHUNK), V0_SEQS, _V0_SOURCE
    return max(length, V0_LEAST), V0_SEQS, _V0_SOURCE


def _v1(version: str, total: float | None, card: str, usage: Usage) -> tuple[int, int, str]:
    size = total or 0.0
    if holds(version, HUGE_SINCE) and size >= 160 * GIB:
        return 16384, 1024, HUGE_SINCE.source
    if holds(version, LARGE_BY_SIZE):
        small = (holds(version, A100_SMALL) and "a100" in card) or (
            holds(version, GB10_SMALL) and ("gb10" in card or "spark" in card)
        )
        large, source = size >= 70 * GIB and not small, LARGE_BY_SIZE.source
    else:
        large = holds(version, LARGE_BY_NAME) and ("h100" in card or "h200" in card)
        source = LARGE_BY_NAME.source
    tokens = (16384 if usage == "llm" else 8192) if large else (8192 if usage == "llm" else 2048)
    return tokens, 256 if holds(version, SEQS_BY_SIZE) and not large else 1024, source
