"""What the profile run of start-up holds at its peak beside the weights: an estimate with its range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oortriage.budget.figure import Figure

if TYPE_CHECKING:
    from oortriage.budget.kv import Engine
    from oortriage.budget.model import Model


def activation_peak(
    model: Model,
    *,
    version: str,
    dtype: str,
    max_num_batched_tokens: int,
    max_num_seqs: int,
    tp: int = 1,
    pp: int = 1,
    eager: bool = False,
    engine: Engine | None = None,
) -> Figure:
    """Estimate torch's peak during the profile run above the weights, bytes on one rank."""
    raise NotImplementedError
