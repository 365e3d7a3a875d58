"""Collects the source text of a kernel, of the kernels it calls, and the global values that they name."""

from __future__ import annotations

import ast
import hashlib
import inspect
import math
import os
import re
import sys
from typing import Any

_LONGEST_TEXT, _MOST_FUNCTIONS, _DEEPEST = 200, 400, 6
#: What Inductor's generated files call by these names; needed where their functions came from another process.
_INDUCTOR = {
    "triton": "triton",
    "tl": "triton.language",
    "triton_helpers": "torch._inductor.runtime.triton_helpers",
    "libdevice": "torch._inductor.runtime.triton_helpers:libdevice",
    "tl_math": "torch._inductor.runtime.triton_helpers:math",
}


class Functions:
    """The functions of one capsule; each is there once, with the globals it names."""

    def __init__(self, file: Any = None) -> None:
        """Begin with none.

        Args:
            file: the file that Inductor generated a kernel in, for one without its globals.
        """
        self.found: list[dict[str, Any]] = []
        self._file = file if isinstance(file, str) else None
        self._numbers: dict[int, str] = {}
        self._kept: list[Any] = []

    def add(self, fn: Any) -> str:
        """Take a jitted function with all it calls, and return its name in the capsule."""
        if id(fn) in self._numbers:
            return self._numbers[id(fn)]
        if len(self.found) >= _MOST_FUNCTIONS:
            raise ValueError(f"the kernel calls more than {_MOST_FUNCTIONS} functions")
        name = f"f{len(self.found)}"
        self._numbers[id(fn)] = name
        self._kept.append(fn)  # so that no other object gets its id
        python = getattr(fn, "fn", None)
        path = python.__code__.co_filename if python is not None else (self._file or "")
        made: dict[str, Any] = {
            "id": name,
            "name": str(getattr(fn, "__name__", "")),
            "module": str(getattr(fn, "__module__", "") or ""),
            "kind": type(fn).__name__,
            "file": shown(path),
            "sha256": digest(path),
            "line": _line(fn),
            "noinline": bool(getattr(fn, "noinline", False)),
            "source": str(fn.src),
            "globals": {},
        }
        self.found.append(made)
        made["globals"] = self._globals(fn, made["source"])
        return name

    def _globals(self, fn: Any, text: str) -> dict[str, Any]:
        scope = self._scope(fn)
        found = {}
        for name, paths in _named(text).items():
            if name in scope:
                found[name] = self._value(scope[name], paths, 0)
        return found

    def _scope(self, fn: Any) -> dict[str, Any]:
        python = getattr(fn, "fn", None)
        if python is None:
            return self._generated()
        scope = dict(python.__globals__)
        scope.update(inspect.getclosurevars(python).nonlocals)
        return scope

    def _generated(self) -> dict[str, Any]:
        """Stand in for the globals of a function that came from a compiling process: its file and fixed names."""
        scope: dict[str, Any] = {}
        for name, place in _INDUCTOR.items():
            module, _, attribute = place.partition(":")
            if module in sys.modules:
                value = sys.modules[module]
                scope[name] = getattr(value, attribute, None) if attribute else value
        if self._file and os.path.isfile(self._file):
            with open(self._file, encoding="utf-8") as file:
                text = file.read()
            for node in ast.parse(text).body:
                if isinstance(node, ast.FunctionDef) and any("jit" in ast.dump(one) for one in node.decorator_list):
                    scope[node.name] = _FromFile(node, text)
        return scope

    def value(self, value: Any) -> Any:
        """Encode a constant."""
        return self._value(value, set(), 0)

    def _value(self, value: Any, paths: set[tuple[str, ...]], depth: int) -> Any:
        """Encode what a name stands for; of a module only what is taken of it (``paths``) counts."""
        if value is None or isinstance(value, (bool, int, float)):
            return number(value)
        if isinstance(value, str):
            return value if len(value) <= _LONGEST_TEXT else {"unknown": "a long text"}
        if depth > _DEEPEST:
            return {"unknown": type(value).__name__}
        kind = type(value).__name__
        module = str(getattr(value, "__module__", "") or "")
        if inspect.ismodule(value):
            return self._module(value, paths, depth)
        if kind == "constexpr":
            return {"constexpr": self._value(value.value, set(), depth + 1)}
        if kind == "dtype" and module.startswith("triton"):
            return {"dtype": str(value)}
        if module.partition(".")[0] == "triton" and (name := _importable(module, value)):
            return {"import": name}
        if hasattr(value, "src") and (hasattr(value, "arg_names") or kind == "ConstexprFunction"):
            return {"function": self.add(value)}
        if isinstance(value, (tuple, list)):
            return {"tuple": [self._value(one, set(), depth + 1) for one in value]}
        return {"unknown": kind}

    def _module(self, module: Any, paths: set[tuple[str, ...]], depth: int) -> Any:
        if module.__name__.split(".")[0] == "triton":
            return {"module": module.__name__}
        taken: dict[str, set[tuple[str, ...]]] = {}
        for path in paths:
            if path:
                taken.setdefault(path[0], set()).add(path[1:])
        return {
            "namespace": {
                name: self._value(getattr(module, name), rest, depth + 1)
                for name, rest in taken.items()
                if hasattr(module, name)
            }
        }


class _FromFile:
    """A jitted function known from its file's text alone."""

    fn = None
    noinline = False

    def __init__(self, node: ast.FunctionDef, text: str) -> None:
        self.__name__ = node.name
        self.__module__ = ""
        self.src = ast.get_source_segment(text, node) or ""
        self.arg_names = [one.arg for one in node.args.args]
        self.starting_line_number = node.lineno
        self.raw_src = self.src.splitlines(keepends=True)


def _named(text: str) -> dict[str, set[tuple[str, ...]]]:
    """List the names in a function's text, each with what is taken of it: ``a.b.c`` gives a: {(b, c)}."""
    found: dict[str, set[tuple[str, ...]]] = {}
    inner: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        path: list[str] = []
        one: Any = node
        while isinstance(one, ast.Attribute):
            path.insert(0, one.attr)
            inner.add(id(one.value))
            one = one.value
        if isinstance(one, ast.Name) and id(node) not in inner:
            found.setdefault(one.id, set()).add(tuple(path))
    return found


def _importable(module: str, value: Any) -> str:
    """Return ``module:name`` where that is this very object."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    there = getattr(sys.modules.get(module), str(name), None) if name else None
    return f"{module}:{name}" if there is value else ""


def _line(fn: Any) -> int:
    """Return the line of ``def``; decorators stand above it."""
    raw = list(getattr(fn, "raw_src", None) or [])
    above = next((index for index, line in enumerate(raw) if re.match(r"\s*def\s", line)), 0)
    return int(getattr(fn, "starting_line_number", None) or 1) + above


def shown(path: str) -> str:
    """Name a file without what is of this machine alone: below its site-packages, its module path or the home."""
    plain = path.replace("\\", "/")
    for mark in ("/site-packages/", "/dist-packages/"):
        if mark in plain:
            return plain.rpartition(mark)[2]
    roots = sorted((one.replace("\\", "/").rstrip("/") for one in sys.path if one), key=len, reverse=True)
    for root in roots:
        if plain.startswith(root + "/"):
            return plain[len(root) + 1 :]
    return plain.rpartition("/")[2]


def digest(path: str) -> str:
    """Hash a file; empty where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except (OSError, ValueError):
        return ""


def number(value: Any) -> Any:
    """Encode a number; JSON has no infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value
