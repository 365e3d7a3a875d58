"""A kernel out of a capsule: built again from its own source text, in the child process only.

Replaying a capsule runs its source, as importing a file runs that file. Nothing of it is run anywhere else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import types
from importlib import import_module
from pathlib import Path
from typing import Any

from oortriage.cache import cache_folder
from oortriage.capture.capsule import Capsule, CapsuleFunction, read_capsule
from oortriage.errors import UsageError
from oortriage.kernels._interface import Library, Recipe, Shape


def captured_recipe(name: str) -> Recipe:
    """Make a recipe of a capsule; its source is built when it is called, in the child.

    Raises:
        InputError: the file is no capsule.
    """
    capsule = read_capsule(name)
    path = Path(name).resolve()

    def call(library: Library, _shape: Shape) -> None:
        from oortriage.gpu.virtual.session import launch

        library.files[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
        local = vars(library).setdefault("local", {})
        launch(kernel_source(capsule, local), _options(capsule))

    return Recipe(
        name=name, title=f"{capsule.kernel} as captured", call=call, parameters=(),
        kernels=(capsule.kernel,), needs_torch=False,
    )  # fmt: skip


def kernel_source(capsule: Capsule, local: dict[str, str]) -> Any:
    """Build Triton's own source object of a capsule: function, signature, constants, attributes.

    Args:
        capsule: what was captured.
        local: takes the files written here, each with the name it had where it was captured.

    Raises:
        UsageError: the capsule lacks its source, or is of a language that is not rebuilt.
    """
    from triton.compiler import ASTSource

    if capsule.language != "triton":
        raise UsageError(f"the capsule holds a kernel in {capsule.language}; only Triton's own language is rebuilt")
    built = _Functions(capsule, local)
    kernel = built.functions.get(capsule.entry)
    if kernel is None:
        raise UsageError("the capsule holds no source text: the kernel was not compiled from a Python function")
    return ASTSource(
        fn=kernel,
        signature={name: _tuples(kind) for name, kind in capsule.signature.items()},
        constexprs={tuple(path): built.value(value) for path, value in capsule.constants},
        attrs={tuple(path): value for path, value in capsule.attributes},
    )


def _options(capsule: Capsule) -> dict[str, Any]:
    return {name: _tuples(value) for name, value in capsule.options.items()}


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value


class _Functions:
    """The capsule's functions, each in a module and a file of its own, on the line it had."""

    def __init__(self, capsule: Capsule, local: dict[str, str]) -> None:
        self._folder = _folder(capsule)
        self._local = local
        self._modules: dict[str, types.ModuleType] = {}
        self.functions: dict[str, Any] = {}
        for one in capsule.functions:
            self.functions[one.id] = self._make(one)
        for one in capsule.functions:
            vars(self._modules[one.id]).update({name: self.value(value) for name, value in one.globals.items()})

    def _make(self, one: CapsuleFunction) -> Any:
        """Run a function's ``def`` as a module does that holds it alone, and let Triton take it."""
        import triton

        path = self._folder / f"{one.id}.py"
        # Annotations stay text, so that `def` needs no name but those of its defaults.
        above = "\n" * max(1, one.line - 1)
        text = f"from __future__ import annotations{above}{one.source}\n"
        _write(path, text)
        self._local[str(path)] = one.file or path.name
        module = types.ModuleType(f"_oortriage_capsule_{one.id}")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module
        self._modules[one.id] = module
        vars(module).update(_early(one, self))
        try:
            exec(compile(text, str(path), "exec"), vars(module))  # noqa: S102 (its source is what a capsule is for)
        except Exception as problem:
            raise UsageError(f"{one.name}: cannot be built: {type(problem).__name__}: {problem}") from problem
        function = vars(module).get(one.name)
        if function is None:
            raise UsageError(f"{one.name}: the capsule's source defines no such function")
        if one.kind == "ConstexprFunction":
            return triton.constexpr_function(function)
        return triton.jit(function, noinline=one.noinline or None)

    def value(self, encoded: Any) -> Any:
        """Decode a value; what could not be captured becomes an object that says so when it is used."""
        if not isinstance(encoded, dict):
            return encoded
        held: Any
        kind, held = next(((str(key), one) for key, one in encoded.items()), ("unknown", "value"))
        if kind == "constexpr":
            from triton.language import constexpr

            return constexpr(self.value(held))
        if kind == "dtype":
            from triton.language import dtype

            return dtype(held)
        if kind == "float":
            return float(held)
        if kind == "function":
            return self.functions.get(held)
        if kind == "tuple":
            return tuple(self.value(one) for one in held)
        if kind == "namespace":
            return _namespace({name: self.value(one) for name, one in held.items()})
        if kind in ("module", "import"):
            return _triton(str(held))
        return Uncaptured(str(held))


def _early(one: CapsuleFunction, functions: _Functions) -> dict[str, Any]:
    """Return what the ``def`` itself may need: everything but other functions of the capsule."""
    return {
        name: functions.value(value)
        for name, value in one.globals.items()
        if not (isinstance(value, dict) and set(value) & {"function", "namespace"})
    }


class Uncaptured:
    """Stands for a value that a capsule could not hold."""

    def __init__(self, kind: str) -> None:
        """Remember what it was."""
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UsageError(f"the capsule could not hold a value of type {self._kind} that its source uses (.{name})")

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Refuse."""
        raise UsageError(f"the capsule could not hold a value of type {self._kind} that its source calls")


def _namespace(held: dict[str, Any]) -> types.ModuleType:
    """Make a module of names: Triton looks a name up in a module and refuses other objects."""
    made = types.ModuleType("_oortriage_capsule_names")
    vars(made).update(held)
    return made


def _triton(place: str) -> Any:
    """Return a module of Triton's, or something in it; nothing outside Triton is imported."""
    module, _, name = place.partition(":")
    if module.split(".")[0] != "triton":
        raise UsageError(f"the capsule names {place}, which is no part of Triton")
    try:
        found = import_module(module)
        return getattr(found, name) if name else found
    except (ImportError, AttributeError) as problem:
        raise UsageError(f"this Triton has no {place.replace(':', '.')}: try the capsule's own release") from problem


def _write(path: Path, text: str) -> None:
    """Write a file whole: another child may be reading the same one."""
    data = text.encode("utf-8", "surrogatepass")
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            return
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(temporary).replace(path)


def _folder(capsule: Capsule) -> Path:
    """Return a folder for the capsule's source: the same for the same source, else a fresh one."""
    folder = cache_folder() / "capsules" / capsule.source_hash[:24]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return Path(tempfile.mkdtemp(prefix="oortriage-capsule-"))
    return folder
