"""Kernels launched on a real card, with forced settings; what was loaded is noted."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from oortriage.gpu.card.emulate import emulating
from oortriage.gpu.virtual.driver import Card
from oortriage.gpu.virtual.session import Session, active


class Loaded(msgspec.Struct, frozen=True):
    """A kernel as the card loaded it: shared memory in bytes, registers and spills (bytes) a thread."""

    name: str
    shared_bytes: int
    registers: int
    spills: int
    warps: int


class CardSession(Session):
    """Forces settings as the virtual session does, and launches in earnest."""

    def __init__(self, card: Card, overrides: dict[str, Any], *, emulated: bool) -> None:
        """Prepare for a card; ``emulated``: the card that is there plays it."""
        super().__init__(card, overrides)
        self._emulated = emulated
        self.loaded: dict[str, Loaded] = {}

    @contextlib.contextmanager
    def run(self) -> Iterator[CardSession]:
        """Launch within the block."""
        from triton.runtime import JITFunction

        with contextlib.ExitStack() as stack:
            if self._emulated:
                stack.enter_context(emulating(self.card))
            stack.enter_context(active(self))
            stack.callback(setattr, JITFunction, "run", JITFunction.run)
            JITFunction.run = self._overriding(self._noting(JITFunction.run))
            yield self

    def compile(self, source: Any, target: Any = None, options: Any = None, **_: Any) -> Any:
        """Compile in earnest a kernel that comes as Triton's own source object."""
        import triton
        from triton.runtime import driver

        return triton.compile(source, target=target or driver.active.get_current_target(), options=options)

    def launched(self, kernel: Any) -> None:
        """Load it on the card, which refuses what it has no room for; there is no data to launch it with."""
        kernel._init_handles()  # noqa: SLF001 (what Triton does first at a launch)
        self._note(kernel.src.fn.__name__, kernel)

    def _note(self, name: str, kernel: Any) -> None:
        self.loaded[name] = Loaded(
            name,
            int(kernel.metadata.shared),
            int(kernel.n_regs or 0),
            int(kernel.n_spills or 0),
            int(kernel.metadata.num_warps),
        )

    def _noting(self, run: Any) -> Any:
        def noted(function: Any, *arguments: Any, **named: Any) -> Any:
            kernel = run(function, *arguments, **named)
            if getattr(kernel, "metadata", None) is not None:  # an interpreted one has none
                self._note(function.fn.__name__, kernel)
            return kernel

        return noted


def driver_bytes(call: Callable[[], Any]) -> dict[str, int]:
    """Ask the driver's own profiler how much shared memory each kernel of a call was launched with, in bytes.

    Empty where profiling is not allowed on this machine.
    """
    import torch

    found: dict[str, int] = {}
    # A profiler that is not there or not allowed raises many things; the call itself has run before.
    with contextlib.suppress(Exception):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            call()
            torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "trace.json")
            profiler.export_chrome_trace(str(path))
            events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
        for event in events:
            if event.get("cat") == "kernel":
                found[event["name"]] = int(event["args"]["shared memory"])
    return found
