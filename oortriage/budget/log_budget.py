"""A run's memory decision as a log gives it: figures, pieces of the card, sums held against what was printed."""

from __future__ import annotations

from typing import Literal

import msgspec

from oortriage.budget.figure import Figure
from oortriage.budget.span import Span

#: The engine that wrote the log; empty where it does not tell.
Engine = Literal["V0", "V1", ""]
PartKind = Literal[
    "weights", "activations", "non_torch", "graphs", "other", "kv", "outside", "missing", "others", "free"
]


class Part(msgspec.Struct, frozen=True):
    """A piece of the card's memory. ``size`` and ``start`` (from the card's first byte, as if laid out) in bytes.

    ``missing`` is what reaches over the end of the share, or over what is free: it lies on top of other pieces.
    """

    kind: PartKind
    name: str
    size: Figure
    start: float = 0.0


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """A printed figure held against the sum of others. ``deviation`` is printed minus computed, in ``unit``.

    ``agrees`` allows for the rounding of every figure that goes in. ``why`` names the rule behind a deviation.
    """

    what: str
    unit: str
    printed: float
    computed: float
    low: float
    high: float
    agrees: bool
    how: str
    why: str = ""
    line: int = 0

    @property
    def deviation(self) -> float:
        """Printed minus computed."""
        return self.printed - self.computed


class PoolUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was set aside for the KV cache against what requests held at the highest reading.

    ``peak_share`` is a share of the pool (0 to 1); bytes and tokens are None where the pool's size is unknown.
    """

    peak_share: float
    line: int
    readings: int
    running: int | None = None
    pool_bytes: Figure | None = None
    used_bytes: Figure | None = None
    idle_bytes: Figure | None = None
    pool_tokens: Figure | None = None
    used_tokens: Figure | None = None


class LogBudget(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run's memory decision, rebuilt. ``figures`` by name: measured ones name their line, derived ones the sum."""

    version: str
    engine: Engine
    figures: dict[str, Figure]
    #: Settings that are words: dtype, kv_cache_dtype, model, quantization and so on.
    words: dict[str, str] = {}
    #: Whether the estimate of CUDA graphs was taken off the KV cache; None where that is unknown.
    graphs_counted: bool | None = None
    parts: tuple[Part, ...] = ()
    checks: tuple[Check, ...] = ()
    use: PoolUse | None = None
    notes: tuple[str, ...] = ()

    def value(self, name: str) -> float | None:
        """Return a bare figure; None where it could not be had."""
        figure = self.figures.get(name)
        return None if figure is None else figure.value

    def span(self, name: str) -> Span | None:
        """Return a figure with its bounds."""
        figure = self.figures.get(name)
        if figure is None:
            return None
        low = figure.value if figure.low is None else figure.low
        high = figure.value if figure.high is None else figure.high
        return Span(figure.value, low, high)
