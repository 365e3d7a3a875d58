"""A kernel of the user's own: ``FILE.py:FUNCTION`` with its arguments as text."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from oortriage.errors import UsageError
from oortriage.kernels._interface import Library, Recipe, Shape, element_type
from oortriage.kernels.mock import Pointer

_REFERENCE = re.compile(r"(?P<file>.+\.py):(?P<function>[A-Za-z_]\w*)")
_POINTER = re.compile(r"\*(?P<dtype>\w*)")
#: How Triton's binder says that arguments are missing.
_MISSING = re.compile(r"missing \d+ required positional arguments?: (.+)")
_DTYPES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8e4nv": "float8e4nv",
    "fp8e5": "float8e5",
    "i1": "int1",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
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
    whole = path.resolve()  # the file may change the folder when it is imported

    def call(library: Library, shape: Shape) -> None:
        module = _load(whole, str(path))
        library.files.update(_own_files(whole.parent))
        kernel: Any = getattr(module, function, None)
        if not hasattr(kernel, "arg_names"):
            there = [name for name, one in vars(module).items() if hasattr(one, "arg_names")]
            raise UsageError(
                f"{path}: {function} is no @triton.jit kernel in there; it has {', '.join(there) or 'none'}"
            )
        names = list(kernel.arg_names)
        if unknown := [
            name for name in shape if name not in names and name not in ("num_warps", "num_stages", "num_ctas")
        ]:
            raise UsageError(f"{function} has no argument {', '.join(unknown)}; it has {', '.join(names)}")
        try:
            kernel[(1, 1, 1)](**{name: argument(text) for name, text in shape.items()})
        except TypeError as problem:
            if found := _MISSING.search(str(problem)):
                raise UsageError(
                    f"{function} needs {found.group(1)}: say --arg NAME=VALUE (*fp16 a pointer, i32, 128, true)"
                ) from problem
            raise

    return Recipe(name=reference, title=f"{function} in {path.name}", call=call, parameters=(), needs_torch=False)


def argument(text: Any) -> Any:
    """Read an argument: ``*fp16`` a pointer, ``i32``/``fp32`` a plain value, ``128``, ``0.5``, ``true``, else text.

    A number for a run-time argument is specialised by Triton as at a launch: 1 and multiples of 16 are
    compiled in.
    """
    if not isinstance(text, str):
        return text
    if found := _POINTER.fullmatch(text):
        named = found.group("dtype")
        dtype = _DTYPES.get(named) or element_type(named)
        if not dtype or dtype == "auto":
            raise UsageError(f"{text}: no pointer to that; there are {', '.join(f'*{one}' for one in _DTYPES)}")
        return Pointer(dtype)
    plain: dict[str, Any] = {"true": True, "false": False, "none": None, "i32": 17, "i64": 1 << 40 | 1, "fp32": 0.5}
    if text.lower() in plain:
        return plain[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _own_files(folder: Path) -> dict[str, str]:
    """Hash the Python files of this folder that were imported: a result is of these, not of the kernel's file alone."""
    files = {str(file) for one in list(sys.modules.values()) if (file := getattr(one, "__file__", None))}
    own = sorted(
        file
        for file in files
        if file.endswith(".py") and folder in Path(file).parents and "site-packages" not in Path(file).parts
    )
    return {file: hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in own}


@lru_cache
def _load(whole: Path, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"_oortriage_user_{whole.stem}", whole)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(whole.parent))
    try:
        spec.loader.exec_module(module)
    except (SyntaxError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path}: not Python: {problem}") from problem
    except (Exception, SystemExit) as problem:
        raise UsageError(f"{path}: cannot be imported: {type(problem).__name__}: {problem}") from problem
    return module
