"""NVIDIA's management library, opened or told why not, and its sizes with "not known" as None."""

from __future__ import annotations

from typing import Any

from oortriage.gpu import nvml_trouble as trouble
from oortriage.gpu.nvml_trouble import Place

#: NVML marks "not known" with an unsigned -1 of 64 bits; nothing real comes near half of it.
_NOT_AVAILABLE = 1 << 60


def open_library(nvml: Any, place: Place) -> Any:
    """Initialise the library; whoever gets it calls ``nvmlShutdown``.

    Args:
        nvml: the module to ask; ``pynvml`` when it is None.
        place: where this runs.

    Returns:
        The module, or an ``Unavailable``.
    """
    if nvml is None:
        if trouble.on_macos():
            return trouble.no_such_system()
        try:
            import pynvml as nvml  # type: ignore[import-untyped,unused-ignore,no-redef]
        except Exception:  # noqa: BLE001 (a broken module is no better than none)
            return trouble.no_module()
    try:
        nvml.nvmlInit()
    except Exception as problem:  # noqa: BLE001 (whatever it is, it is a value here)
        return trouble.unavailable(problem, place)
    return nvml


def told(value: Any) -> int | None:
    """Return a number that the library gives; None where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def told_bytes(holder: Any, name: str) -> int | None:
    """Return a size in bytes of a structure; None where the driver does not know it."""
    value = told(getattr(holder, name, None))
    return None if value is None or value >= _NOT_AVAILABLE else value
