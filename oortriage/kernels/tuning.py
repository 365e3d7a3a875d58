"""Triton's autotuners keep what they chose; a cell that is compiled after another must choose afresh."""

from __future__ import annotations

import sys


def forget_tuning(package: str) -> None:
    """Empty the memory of every autotuner of a package, so that each call tries all configurations again.

    Args:
        package: the dotted name that its modules' names begin with.
    """
    from triton.runtime import Autotuner

    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            for function in list(vars(module).values()):
                layer = function
                while type(layer).__module__.startswith("triton."):  # it may be wrapped in heuristics
                    if isinstance(layer, Autotuner):
                        layer.cache.clear()
                    layer = getattr(layer, "fn", None)
