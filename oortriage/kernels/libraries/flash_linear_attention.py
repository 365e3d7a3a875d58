"""flash-linear-attention up to 0.3.1, when the operators were not yet a distribution of their own."""

from __future__ import annotations

from oortriage.kernels.libraries.fla_core import library

__all__ = ["library"]
