"""The plugin of vLLM: nothing on disk changes, and a process that does not ask for it does not notice it.

vLLM calls ``register`` in the front end, the engine core and every worker, and an exception in it would end
the engine: so everything is caught, CUDA is not touched, and vLLM's own module is left to be imported when
vLLM imports it.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import logging
import multiprocessing
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

VARIABLE = "OORTRIAGE_TILE_POLICY"

_log = logging.getLogger("vllm.oortriage")


def register() -> None:
    """Put the policy that the environment names in place; the entry point of ``vllm.general_plugins``."""
    wanted = ""
    try:
        wanted = os.environ.get(VARIABLE, "").strip()
        if wanted:
            _register(wanted)
    except Exception as problem:  # noqa: BLE001 (an exception here ends vLLM's engine)
        _warn(f"{VARIABLE}={wanted} is not in force: {type(problem).__name__}: {problem}")


def _register(wanted: str) -> None:
    from oortriage.fix.hooks import MODULES
    from oortriage.fix.rules import find_rule

    if any(isinstance(one, _Finder) for one in sys.meta_path):
        return  # called before in this process, or in the one it was forked from
    rule = find_rule(wanted)
    # A line a process, whether it computes attention or not; vLLM names its processes (EngineCore, VllmWorker-0).
    where = multiprocessing.current_process().name
    _log.info("oortriage: tile policy %s is on in process %d (%s): %s", rule.title, os.getpid(), where, rule.summary)
    finder = _Finder(rule)
    sys.meta_path.insert(0, finder)
    for name in MODULES:
        if name in sys.modules:
            finder.loaded(sys.modules[name])


def _warn(text: str) -> None:
    with contextlib.suppress(Exception):  # a broken log handler is no reason either
        _log.warning("oortriage: %s", text)


class _Finder(importlib.abc.MetaPathFinder):
    """Waits for the modules that hold the policy; every other import passes by."""

    def __init__(self, rule: Any) -> None:
        self._rule = rule
        self._looking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not name.endswith(".attention.ops.triton_unified_attention") or self._looking:
            return None
        self._looking = True
        try:
            spec = _next_spec(self, name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader, self)
            return spec
        finally:
            self._looking = False

    def loaded(self, module: ModuleType) -> None:
        """Put the rule in place; a module that has no policy is left alone, and it is said."""
        from oortriage.fix.hooks import install

        try:
            if not install(module, self._rule) and not hasattr(module, "oortriage_rule"):
                _warn(
                    f"{module.__name__} chooses no tile (vLLM up to 0.10.2: the tile is the KV block; use "
                    "--block-size 16), or is none this release knows"
                )
        except Exception as problem:  # noqa: BLE001 (as in register)
            _warn(f"the tile policy stays as it was: {type(problem).__name__}: {problem}")


def _next_spec(
    own: _Finder, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> importlib.machinery.ModuleSpec | None:
    """Ask the finders after us, as Python would."""
    finders = list(sys.meta_path)
    for finder in finders[finders.index(own) + 1 :]:
        spec = finder.find_spec(name, path, target)
        if spec is not None:
            return spec
    return None


class _Loader(importlib.abc.Loader):
    """The module's own loader, and the rule after it."""

    def __init__(self, loader: Any, finder: _Finder) -> None:
        self._loader, self._finder = loader, finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # get_source and the like: tracebacks and inspect need them

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._finder.loaded(module)
