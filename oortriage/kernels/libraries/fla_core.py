"""flash-linear-attention in the child process (package ``fla``): its operators and helpers are real."""

from __future__ import annotations

import re
from types import ModuleType

from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.rearrange import provide_einops
from oortriage.kernels.source import Source
from oortriage.kernels.stand_in import SourceLibrary

#: ``fla``, ``fla.ops`` and ``fla.modules`` themselves import every model there is, so they stay empty.
_REAL = (
    r"fla\.utils(?:\.\w+)?",
    r"fla\.ops\.[\w.]+",
    r"fla\.backends(?:\.[\w.]+)?",
    r"fla\.modules\.(?:norm|l2norm).*",
)


def library(source: Source, card: Card, real: tuple[str, ...]) -> SourceLibrary:  # noqa: ARG001 (one signature for all)
    """Make fla's operators importable in this process.

    Args:
        source: its files.
        card: not asked here: fla asks Triton's driver and torch.
        real: patterns of further modules whose files are to be imported.
    """
    provide_einops()

    def top(module: ModuleType) -> None:
        module.__dict__["__version__"] = source.version

    pattern = re.compile("|".join((*_REAL, *real)))
    return SourceLibrary("fla", source, lambda name: bool(pattern.fullmatch(name)), {"fla": top}, set())
