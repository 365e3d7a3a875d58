"""oortriage: which GPU memory ran out, proved by the line, and what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oortriage.version import __version__

__all__ = ["Analyzer", "Diagnosis", "__version__", "analyze"]

if TYPE_CHECKING:
    from oortriage.api import Analyzer, analyze
    from oortriage.triage.diagnosis import Diagnosis

_WHERE = {
    "analyze": "oortriage.api",
    "Analyzer": "oortriage.api",
    "Diagnosis": "oortriage.triage.diagnosis",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for on first use, so that ``import oortriage`` costs next to nothing."""
    if name in _WHERE:
        from importlib import import_module

        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
