"""CUDA graphs: which batch sizes a release captures, and about how much memory they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oortriage.budget.figure import Figure
from oortriage.budget.memory import Engine

if TYPE_CHECKING:
    from oortriage.budget.model import Model


def capture_sizes(
    version: str, *, max_num_seqs: int, eager: bool = False, given: tuple[int, ...] = (), engine: Engine | None = None
) -> tuple[int, ...]:
    """List the batch sizes in tokens that the release captures."""
    raise NotImplementedError


def graph_memory(
    model: Model, *, version: str, sizes: tuple[int, ...], tp: int = 1, engine: Engine | None = None
) -> Figure:
    """Estimate what the captured graphs hold, bytes on one rank; 0 when nothing is captured."""
    raise NotImplementedError
