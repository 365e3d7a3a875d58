"""Waits for Triton to be imported, and then for a kernel that does not fit: nothing else is touched.

What is hooked is the making of the exception ``OutOfResources``, so a launch that succeeds runs no line of
ours, and the traceback of one that fails holds no frame of ours. Inductor launches some kernels without
Triton; there the function that gives up when no configuration can be loaded is wrapped.

Every Python process imports this file: it imports nothing that Python has not loaded by itself.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_complained: list[str] = []
#: The capsule of a choice that Inductor only tried; written when it has none left.
_held: list[dict[str, Any]] = []


def install() -> None:
    """Watch for the modules in question; those that are there already are hooked at once."""
    waiting = {}
    for name, hook in _HOOKS.items():
        if name in sys.modules:
            safely(hook, sys.modules[name])
        else:
            waiting[name] = hook
    if not any(isinstance(one, _Watch) for one in sys.meta_path):
        sys.meta_path.insert(0, _Watch(waiting))


def safely(work: Callable[..., Any], *arguments: Any) -> None:
    """Do some work of ours; if it fails, say so once a process in one line, and let the program go on."""
    try:
        work(*arguments)
    except Exception as problem:  # noqa: BLE001
        text = " ".join(f"{type(problem).__name__}: {problem}".split())
        if not _complained:
            _complained.append(text)
            try:
                sys.stderr.write(f"oortriage capture: failed, nothing was written: {text}\n")
            except Exception:  # noqa: BLE001, S110 (there is nobody left to tell)
                pass


class _Watch:
    """Sees imports first, hands each on to whoever does it, and hooks the module once it is there."""

    def __init__(self, waiting: dict[str, Callable[[Any], None]]) -> None:
        self._waiting = waiting

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        hook = self._waiting.pop(name, None)
        if hook is None:
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                safely(_after_loading, spec, hook)
                return spec
        return None


def _after_loading(spec: Any, hook: Callable[[Any], None]) -> None:
    """Hook a module when its own loader has run; the loader itself stays what it is."""
    loader = spec.loader
    run = loader.exec_module

    def exec_module(module: Any) -> None:
        vars(loader).pop("exec_module", None)
        run(module)
        safely(hook, module)

    loader.exec_module = exec_module


def _writer() -> Any:
    """Load what writes capsules: only now, and by its place, for the program may have changed the module path."""
    for name in ("oortriage_capture_source", "oortriage_capture_capsule"):
        if name not in sys.modules:
            from importlib.util import module_from_spec, spec_from_file_location

            path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
            spec: Any = spec_from_file_location(name, path)
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            sys.modules[name] = module
    return sys.modules["oortriage_capture_capsule"]


def _named_as(ours: Any, original: Any) -> Any:
    """Let a function of ours be called what the one it stands for is."""
    import functools

    return functools.update_wrapper(ours, original)


def _watch_triton(module: Any) -> None:
    """Look at each OutOfResources as it is made."""
    kind = module.OutOfResources
    make = kind.__init__

    def __init__(self: Any, *arguments: Any, **named: Any) -> None:  # noqa: N807
        make(self, *arguments, **named)
        safely(_made, self, sys._getframe(1))  # noqa: SLF001

    kind.__init__ = _named_as(__init__, make)


def _made(error: Any, frame: Any) -> None:
    _writer().out_of_resources(error, frame, _held)


def _watch_inductor(module: Any) -> None:
    """Look at a kernel of Inductor's of which no configuration can be loaded."""
    kind = module.CachingAutotuner
    make = getattr(kind, "_make_launchers", None)
    if make is None:  # before PyTorch 2.7
        return

    def _make_launchers(self: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return make(self, *arguments, **named)
        except Exception as problem:
            safely(_gave_up, self, problem, sys._getframe(1))  # noqa: SLF001
            raise

    kind._make_launchers = _named_as(_make_launchers, make)  # noqa: SLF001


def _gave_up(tuner: Any, problem: BaseException, frame: Any) -> None:
    _writer().inductor_gave_up(tuner, problem, frame, _held)


def _watch_choices(module: Any) -> None:
    """Look at Inductor when it has no choice left."""
    kind = getattr(module, "NoValidChoicesError", None)
    if kind is None:
        return
    make = kind.__init__

    def __init__(self: Any, *arguments: Any, **named: Any) -> None:  # noqa: N807
        make(self, *arguments, **named)
        safely(_no_choice)

    kind.__init__ = _named_as(__init__, make)


def _no_choice() -> None:
    if _held:
        _writer().write(_held.pop())


_HOOKS: dict[str, Callable[[Any], None]] = {
    "triton.runtime.errors": _watch_triton,
    "torch._inductor.runtime.triton_heuristics": _watch_inductor,
    "torch._inductor.select_algorithm": _watch_choices,
}
