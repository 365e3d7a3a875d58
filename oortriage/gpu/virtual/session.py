"""A session on the virtual GPU: Python wrappers run as they are, and every kernel they launch is noted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec

from oortriage.gpu.virtual.adapter import Allocation, allocate, gpu_target
from oortriage.gpu.virtual.driver import Card, VirtualDriver, call_once


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
        self._tuning = 0
        self._stack = contextlib.ExitStack()
        self._tuners: set[int] = set()

    @contextlib.contextmanager
    def run(self) -> Iterator[Session]:
        """Stand in for the card within the block."""
        import triton
        from triton import compiler
        from triton.runtime import Autotuner, JITFunction, driver

        self._tuners.clear()
        with self._stack as stack:
            # Up to 3.4 `active` is a plain attribute; later it is a property that makes a driver when asked.
            before = driver._active if hasattr(driver, "_active") else driver.active  # noqa: SLF001
            driver.set_active(VirtualDriver(self.card, _device_number(self.card)))
            stack.callback(driver.set_active, before)
            compile_here = _compiling(compiler.compile)
            for owner, name, value in (
                (compiler, "compile", compile_here),
                (triton, "compile", compile_here),
                (JITFunction, "run", self._overriding(JITFunction.run)),
                (Autotuner, "run", self._forgetting(Autotuner.run)),
                (Autotuner, "_bench", self._noting_trials(Autotuner._bench)),  # noqa: SLF001
            ):
                stack.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, value)
            stack.enter_context(active(self))
            yield self

    def _overriding(self, run: Any) -> Any:
        def overridden(function: Any, *arguments: Any, grid: Any, warmup: bool, **named: Any) -> Any:
            given = list(arguments)
            parameters = list(function.arg_names)
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

    def _forgetting(self, run: Any) -> Any:
        """Let an autotuner try anew in each session, keep nothing on disk, and neither clear nor copy tensors."""

        def forgetful(tuner: Any, *arguments: Any, **named: Any) -> Any:
            if id(tuner) not in self._tuners:
                self._tuners.add(id(tuner))
                self._stack.callback(vars(tuner).update, dict(vars(tuner)))
                self._stack.callback(vars(tuner).clear)
                # Our benchmark would stand in for a measurement, in this process and in the user's own cache.
                tuner.cache, tuner.cache_results = {}, False
                tuner.reset_to_zero, tuner.restore_value = [], []
                vars(tuner)["do_bench"] = call_once
            return run(tuner, *arguments, **named)

        return forgetful

    def _noting_trials(self, bench: Any) -> Any:
        def noted(tuner: Any, *arguments: Any, **named: Any) -> Any:
            self._tuning += 1
            try:
                return bench(tuner, *arguments, **named)
            finally:
                self._tuning -= 1

        return noted

    def compile(self, source: Any, target: Any = None, options: Any = None, **_: Any) -> _Kernel:
        """Allocate instead of compiling; takes the place of ``triton.compile``."""
        if target is not None and target != gpu_target(self.card.target):
            raise ValueError(f"compiled for {target}, the virtual GPU is {self.card.target.name}")
        given = {name: value for name, value in dict(options or {}).items() if value is not None}
        return _Kernel(source, allocate(source, self.card.target, given), given)

    def launch(self, source: Any, options: dict[str, Any]) -> None:
        """Compile and launch what comes as Triton's own source object, without a wrapper that could be overridden."""
        names, constants = list(source.fn.arg_names), dict(source.constants)
        declared = {one.name for one in source.fn.params if one.is_constexpr}
        given = dict(options)
        for name, value in self.overrides.items():
            if name in declared and (names.index(name),) in constants:
                constants[(names.index(name),)] = value
            elif name in _OPTIONS:
                given[name] = value
            else:
                continue
            self.taken.add(name)
        again = type(source)(source.fn, source.signature, constants, source.attrs)
        self.launched(self.compile(again, options=given))

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


def _compiling(before: Any) -> Any:
    """Make what stands for ``triton.compile``: a kernel keeps it for good, so it asks which session is on."""

    def compiled(*arguments: Any, **named: Any) -> Any:
        return _active[-1].compile(*arguments, **named) if _active else before(*arguments, **named)

    return compiled


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


@contextlib.contextmanager
def active(session: Session) -> Iterator[None]:
    """Let a session be the one that launches go to, within the block."""
    _active.append(session)
    try:
        yield
    finally:
        _active.pop()


def launch(source: Any, options: dict[str, Any]) -> None:
    """Launch a kernel in the session that is on; see :meth:`Session.launch`."""
    _active[-1].launch(source, options)


_active: list[Session] = []
_devices: dict[Card, int] = {}


def _device_number(card: Card) -> int:
    return _devices.setdefault(card, len(_devices))
