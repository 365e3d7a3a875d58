"""Bytes of a model's weights on one rank: from the checkpoint's own headers, else from the model's shape."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from oortriage.budget.figure import Figure

if TYPE_CHECKING:
    from oortriage.budget.model import Model


def weight_bytes(
    model: Model,
    *,
    dtype: str,
    tp: int = 1,
    pp: int = 1,
    quantization: dict[str, Any] | str | None = None,
    source: Path | None = None,
) -> Figure:
    """Return the bytes of the weights on the fullest rank."""
    raise NotImplementedError
