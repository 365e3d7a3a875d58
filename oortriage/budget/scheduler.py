"""How many tokens and sequences a release schedules at once when nobody says: they drive the profile run."""

from __future__ import annotations

from typing import Literal

import msgspec

from oortriage.budget.figure import Figure
from oortriage.budget.memory import Engine

#: Python's ``LLM`` class, or the API server (``vllm serve``).
Usage = Literal["llm", "server"]


class SchedulerDefaults(msgspec.Struct, frozen=True):
    """Tokens and sequences of one step."""

    max_num_batched_tokens: Figure
    max_num_seqs: Figure


def scheduler_defaults(
    version: str,
    *,
    total_bytes: int | None,
    card: str = "",
    usage: Usage = "server",
    max_model_len: int | None = None,
    max_num_seqs: int | None = None,
    chunked_prefill: bool | None = None,
    engine: Engine | None = None,
) -> SchedulerDefaults:
    """Return what the release chooses for itself."""
    raise NotImplementedError
