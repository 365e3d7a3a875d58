"""Imports a library's kernel files in the child process, without importing the library.

A kernel file of vLLM imports ``vllm.envs``, ``vllm.logger`` and the like, and those import half of the
package and ask for a GPU. Here the packages on the way are empty, the kernel files are the real ones,
and what else they ask for is answered by small stand-ins. Which stand-ins were touched is noted: they
are assumptions of the result.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from oortriage.kernels.source import Source

Face = Callable[[ModuleType], None]


class StandIn:
    """Answers whatever it is asked for, and is false, empty and without effect; the asking is noted."""

    def __init__(self, name: str, noted: set[str]) -> None:
        """Stand in for an object of this name."""
        self.__dict__["_name"], self.__dict__["_noted"] = name, noted

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") and attribute.endswith("__"):
            raise AttributeError(attribute)
        name = f"{self._name}.{attribute}"
        self._noted.add(name)
        return StandIn(name, self._noted)

    def __call__(self, *arguments: Any, **_: Any) -> Any:
        """Serve as a decorator, else answer with another stand-in."""
        if len(arguments) == 1 and callable(arguments[0]) and not isinstance(arguments[0], StandIn):
            return arguments[0]
        return StandIn(f"{self._name}()", self._noted)

    def __bool__(self) -> bool:
        return False

    def __iter__(self) -> Any:
        return iter(())

    def __mro_entries__(self, _bases: Any) -> tuple[type, ...]:
        return ()  # as a base class it adds nothing, and may stand beside others

    def __or__(self, _other: Any) -> StandIn:  # annotations: Config | None
        return self

    __ror__ = __getitem__ = __or__


class SourceLibrary:
    """A library whose kernel files are read from a source; satisfies the ``Library`` interface.

    Args:
        name: the package: ``vllm``.
        source: where its files are.
        real: predicate on a dotted module name: import the real file.
        faces: functions that fill the stand-in of a module: the few names whose value matters.
        noted: collects the names that were asked of stand-ins.
    """

    def __init__(
        self, name: str, source: Source, real: Callable[[str], bool], faces: dict[str, Face], noted: set[str]
    ) -> None:
        """Install the finder; nothing is imported yet."""
        self.name, self.source, self.version = name, source, source.version
        self.noted = noted
        self.files: dict[str, str] = {}
        self.local: dict[str, str] = {}
        self._real, self._faces = real, faces
        sys.meta_path.insert(0, _Finder(self))

    def module(self, *names: str) -> Any:
        """Import the first module whose file the source has."""
        for name in names:
            if self._file(name):
                return importlib.import_module(name)
        raise LookupError(f"{self.name} {self.version} has no {' or '.join(names)}")

    def data(self, folder: str, *words: str) -> list[str]:
        """Make data files local that a module opens beside itself: tuned configurations of a shape.

        Args:
            folder: their folder in the package: ``vllm/model_executor/layers/fused_moe/configs``.
            words: what each file's name must contain.

        Returns:
            the paths in the package; empty when the source has none, and the module takes its default.
        """
        found = [path for path in self.source.names(folder) if all(word in path for word in words)]
        for path in found:
            local = self.source.fetch(path)
            self.local[str(local)] = path
            self.files[path] = hashlib.sha256(local.read_bytes()).hexdigest()
        return found

    def _file(self, name: str) -> str:
        base = name.replace(".", "/")
        return next((path for path in (f"{base}.py", f"{base}/__init__.py") if self.source.has(path)), "")

    def spec(self, name: str) -> importlib.machinery.ModuleSpec | None:
        """Say how a module of this library is loaded."""
        path = self._file(name) if self._real(name) else ""
        if path:
            local = self.source.fetch(path)
            self.local[str(local)] = path
            self.files[path] = hashlib.sha256(local.read_bytes()).hexdigest()
            return importlib.machinery.ModuleSpec(
                name,
                importlib.machinery.SourceFileLoader(name, str(local)),
                origin=str(local),
                is_package=path.endswith("__init__.py"),
            )
        return importlib.machinery.ModuleSpec(name, _StandInLoader(self), is_package=True)

    def fill(self, module: ModuleType) -> None:
        """Give a stand-in module its face."""
        name = module.__name__
        noted = self.noted

        def answer(attribute: str) -> Any:
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            inner = f"{name}.{attribute}"
            # ``from package import module`` asks here first; what has a file or a face is imported then.
            if inner in self._faces or (self._real(inner) and self._file(inner)):
                return importlib.import_module(inner)
            noted.add(inner)
            return StandIn(inner, noted)

        module.__path__ = []
        module.__getattr__ = answer  # type: ignore[method-assign]
        if name in self._faces:
            self._faces[name](module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, library: SourceLibrary) -> None:
        self._library = library

    def find_spec(self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> Any:
        if name != self._library.name and not name.startswith(f"{self._library.name}."):
            return None
        spec = self._library.spec(name)
        if spec is not None and spec.origin:
            spec.has_location = True
        return spec


class _StandInLoader(importlib.abc.Loader):
    def __init__(self, library: SourceLibrary) -> None:
        self._library = library

    def create_module(self, spec: Any) -> ModuleType:
        return ModuleType(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        self._library.fill(module)
