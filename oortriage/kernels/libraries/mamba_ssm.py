"""mamba_ssm in the child process: its Triton operators are real, its compiled extension is not there."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any

from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.rearrange import provide_einops
from oortriage.kernels.source import Source
from oortriage.kernels.stand_in import SourceLibrary

_REAL = (r"mamba_ssm\.ops\.triton\.\w+", r"mamba_ssm\.utils\.(?:torch|determinism)")


def library(source: Source, card: Card, real: tuple[str, ...]) -> SourceLibrary:  # noqa: ARG001 (one signature for all)
    """Make mamba_ssm's Triton files importable in this process.

    Args:
        source: its files.
        card: not asked: the kernels are tuned by trying.
        real: patterns of further modules whose files are to be imported.
    """
    provide_einops()
    einops = sys.modules.get("einops")
    if isinstance(einops, ModuleType) and not hasattr(einops, "repeat"):
        einops.__dict__["repeat"] = _repeat  # imported beside rearrange; only reference code calls it
    pattern = re.compile("|".join((*_REAL, *real)))
    return SourceLibrary("mamba_ssm", source, lambda name: bool(pattern.fullmatch(name)), {}, set())


def _repeat(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("einops.repeat: install einops")
