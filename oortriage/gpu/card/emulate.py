"""A newer NVIDIA card plays an older one: its target is compiled for, its limit holds.

Triton compiles for the older target; the text of that (PTX) is handed to the driver, which compiles it for
the card that is there; and the limit of the older card is what a launch is compared with. Arithmetic and
bytes are the older card's; speed is not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from oortriage.gpu.virtual.adapter import gpu_target
from oortriage.gpu.virtual.driver import Card


class _Instead:
    """An object with some answers of its own; all else is the real one's, which is asked for when it is needed."""

    def __init__(self, real: Callable[[], Any], **answers: Any) -> None:
        self._real, self._answers = real, answers

    def __getattr__(self, name: str) -> Any:
        return self._answers[name] if name in self._answers else getattr(self._real(), name)


@contextlib.contextmanager
def emulating(card: Card) -> Iterator[None]:
    """Let the card that is there play another within the block.

    Nothing here starts CUDA: a process that is to be forked may be in the block as well. The cache of
    compiled kernels must be one of its own: its key does not know that the binary is text.
    """
    import torch
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.compiler import compiler
    from triton.runtime import driver

    # Up to Triton 3.4 `active` is a plain attribute; later a property that makes a driver when asked.
    before = driver._active if hasattr(driver, "_active") else driver.active  # noqa: SLF001

    @cache
    def real() -> Any:
        return before if before is not None else driver.default

    def properties(device: int) -> dict[str, Any]:
        return {**real().utils.get_device_properties(device), "max_shared_mem": card.limit_bytes}

    played = _Instead(
        real,
        get_current_target=lambda: gpu_target(card.target),
        get_device_capability=lambda *_: card.capability,
        utils=_Instead(lambda: real().utils, get_device_properties=properties),
    )
    with contextlib.ExitStack() as stack:
        driver.set_active(played)
        stack.callback(driver.set_active, before)
        for owner, name, value in (
            (CUDABackend, "make_cubin", _text_instead_of_code),
            (torch.cuda, "get_device_capability", lambda *_a, **_k: card.capability),
        ):
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)
        _forget_limits(compiler)
        stack.callback(_forget_limits, compiler)
        yield


def _text_instead_of_code(_backend: Any, source: Any, *_: Any) -> bytes:
    """Take PTX for the binary: the driver compiles text that ends with a zero byte."""
    text = source if isinstance(source, bytes) else str(source).encode()
    return text + b"\0"


def _forget_limits(compiler: Any) -> None:
    """Triton remembers a device's limits; they change when another card is played."""
    for name in ("max_shared_mem",):
        forget = getattr(getattr(compiler, name, None), "cache_clear", None)
        if forget:
            forget()
