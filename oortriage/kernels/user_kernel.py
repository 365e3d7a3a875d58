"""A kernel of the user's own: ``FILE.py:FUNCTION`` with its arguments as text."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

from oortriage.errors import UsageError
from oortriage.kernels._interface import Library, Recipe, Shape
from oortriage.kernels.mock import Pointer

_REFERENCE = re.compile(r"(?P<file>.+\.py):(?P<function>[A-Za-z_]\w*)")
_POINTER = re.compile(r"\*(?P<dtype>[a-z]\w*)")
_DTYPES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "i8": "int8",
    "i32": "int32",
    "i64": "int64",
}


def is_user_kernel(name: str) -> bool:
    """Tell a file and function from a recipe's name."""
    return bool(_REFERENCE.fullmatch(name))


def user_recipe(reference: str) -> Recipe:
    """Make a recipe of ``FILE.py:FUNCTION``; the file is imported when it is called, in the child.

    Raises:
        UsageError: the file is not there or not Python.
    """
    found = _REFERENCE.fullmatch(reference)
    if not found:
        raise UsageError(f"{reference}: write FILE.py:FUNCTION")
    path, function = Path(found.group("file")), found.group("function")
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")

    def call(_library: Library, shape: Shape) -> None:
        kernel: Any = getattr(_load(path), function, None)
        if not hasattr(kernel, "arg_names") and not hasattr(getattr(kernel, "fn", None), "arg_names"):
            raise UsageError(f"{path}: {function} is no @triton.jit kernel in there")
        names = list(kernel.arg_names)
        if unknown := [
            name for name in shape if name not in names and name not in ("num_warps", "num_stages", "num_ctas")
        ]:
            raise UsageError(f"{function} has no argument {', '.join(unknown)}; it has {', '.join(names)}")
        kernel[(1, 1, 1)](**{name: argument(text) for name, text in shape.items()})

    return Recipe(name=reference, title=f"{function} in {path.name}", call=call, parameters=(), needs_torch=False)


def argument(text: Any) -> Any:
    """Read an argument: ``*fp16`` a pointer, ``i32``/``fp32`` a plain value, ``128``, ``0.5``, ``true``, else text.

    A number for a run-time argument is specialised by Triton as at a launch: 1 and multiples of 16 are
    compiled in.
    """
    if not isinstance(text, str):
        return text
    if found := _POINTER.fullmatch(text):
        return Pointer(_DTYPES.get(found.group("dtype"), found.group("dtype")))
    plain: dict[str, Any] = {"true": True, "false": False, "none": None, "i32": 17, "i64": 1 << 40 | 1, "fp32": 0.5}
    if text.lower() in plain:
        return plain[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"_oortriage_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except SyntaxError as problem:
        raise UsageError(f"{path}: not Python: {problem}") from problem
    except Exception as problem:
        raise UsageError(f"{path}: cannot be imported: {type(problem).__name__}: {problem}") from problem
    return module
