"""A session on the virtual GPU: Python wrappers run as they are, and every kernel they launch is noted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec

from oortriage.gpu.virtual.adapter import Allocation, allocate, gpu_target
from oortriage.gpu.virtual.driver import Card, VirtualDriver


class Launch(msgspec.Struct, frozen=True):
    """One kernel as it was launched.

    ``settings`` are its constants and launch options. ``tuning`` marks a configuration that an
    autotuner tried. ``source`` and ``target`` go back into the compiler (for registers).
    """

    kernel: str
    settings: dict[str, Any]
    allocation: Allocation
    source: Any
    options: dict[str, Any]
    tuning: bool = False


class Session:
    """Installs the virtual GPU in this process; one at a time, and the process is a child of ours."""

    def __init__(self, card: Card, overrides: dict[str, Any] | None = None) -> None:
        """Prepare; nothing is touched before :meth:`run`.

        Args:
            card: the card to stand in for.
            overrides: constants or launch options (``TILE_SIZE``, ``num_warps``) that every kernel
                which has them gets instead of what its caller gives.
        """
        self.card, self.overrides = card, dict(overrides or {})
        self.launches: list[Launch] = []
        self.taken: set[str] = set()
        self.seen: dict[str, set[str]] = {}
        self._tuning = 0

    @contextlib.contextmanager
    def run(self) -> Iterator[Session]:
        """Stand in for the card within the block."""
        import triton
        from triton import compiler
        from triton.runtime import Autotuner, JITFunction, driver

        with contextlib.ExitStack() as stack:
            before = driver._active if hasattr(driver, "_active") else None  # noqa: SLF001 (no getter without side effect)
            driver.set_active(VirtualDriver(self.card, _device_number(self.card)))
            stack.callback(driver.set_active, before)
            for owner, name, value in (
                (compiler, "compile", self._compile),
                (triton, "compile", self._compile),
                (JITFunction, "run", self._overriding(JITFunction.run)),
                (Autotuner, "_bench", self._noting_trials(Autotuner._bench)),  # noqa: SLF001
            ):
                stack.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, value)
            _active.append(self)
            stack.callback(_active.pop)
            yield self

    def _overriding(self, run: Any) -> Any:
        def overridden(function: Any, *arguments: Any, grid: Any, warmup: bool, **named: Any) -> Any:
            given = list(arguments)
            parameters = list(function.arg_names)
            known = self.seen.setdefault(function.fn.__name__, set())
            known.update(_constants(function), _OPTIONS)
            for name, value in self.overrides.items():
                if name in parameters:
                    index = parameters.index(name)
                    if index < len(given):
                        given[index] = value
                    else:
                        named[name] = value
                elif name in _OPTIONS:
                    named[name] = value
                else:
                    continue
                self.taken.add(name)
            return run(function, *given, grid=grid, warmup=warmup, **named)

        return overridden

    def _noting_trials(self, bench: Any) -> Any:
        def noted(tuner: Any, *arguments: Any, **named: Any) -> Any:
            self._tuning += 1
            try:
                return bench(tuner, *arguments, **named)
            finally:
                self._tuning -= 1

        return noted

    def _compile(self, source: Any, target: Any = None, options: Any = None, **_: Any) -> _Kernel:
        if target is not None and target != gpu_target(self.card.target):
            raise ValueError(f"compiled for {target}, the virtual GPU is {self.card.target.name}")
        given = {name: value for name, value in dict(options or {}).items() if value is not None}
        return _Kernel(source, allocate(source, self.card.target, given), given)

    def launched(self, kernel: _Kernel) -> None:
        """Note a launch; an autotuner learns what does not fit, as on the card."""
        allocation = kernel.allocation
        settings = _settings(kernel.source, allocation)
        launch = Launch(
            kernel.source.fn.__name__, settings, allocation, kernel.source, kernel.options, self._tuning > 0
        )
        self.launches.append(launch)
        if self._tuning and allocation.shared_bytes > self.card.limit_bytes:
            from triton.runtime.errors import OutOfResources

            raise OutOfResources(allocation.shared_bytes, self.card.limit_bytes, "shared memory")


class _Kernel:
    """What Triton takes for a compiled kernel."""

    function = None
    packed_metadata = ()

    def __init__(self, source: Any, allocation: Allocation, options: dict[str, Any]) -> None:
        self.source, self.allocation, self.options = source, allocation, options
        self.metadata = SimpleNamespace(shared=allocation.shared_bytes, name=source.fn.__name__, **allocation.metadata)
        self.asm: dict[str, str] = {"ttgir": allocation.text}
        self.n_regs = self.n_spills = 0

    def launch_metadata(self, *_: Any) -> None:
        return None

    def run(self, *_: Any) -> None:
        _active[-1].launched(self)  # Triton keeps a compiled kernel longer than a session lives

    def __getitem__(self, _grid: Any) -> Any:
        return self.run


_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu", "matrix_instr_nonkdim", "kpack")


def _constants(function: Any) -> list[str]:
    return [parameter.name for parameter in function.params if parameter.is_constexpr]


def _settings(source: Any, allocation: Allocation) -> dict[str, Any]:
    names = source.fn.arg_names
    settings: dict[str, Any] = {}
    for path, value in source.constants.items():
        index = path[0] if isinstance(path, tuple) else path
        if not isinstance(path, tuple) or len(path) == 1:
            settings[names[index]] = _plain(value)
    for option in ("num_warps", "num_stages"):
        settings[option] = allocation.metadata.get(option)
    return settings


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else str(getattr(value, "value", value))


_active: list[Session] = []
_devices: dict[Card, int] = {}


def _device_number(card: Card) -> int:
    return _devices.setdefault(card, len(_devices))
