"""What is installed beside an interpreter, asked of that interpreter without importing any of it.

Importing torch or vllm would take seconds, load a driver, and can fail for the very reasons that are looked for.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import msgspec

from oortriage.doctor.outside import Ran, Unread, run

SECONDS = 60.0
#: Packages whose requirements are read. The rest is only named with its version.
READ = (
    "vllm", "torch", "torchvision", "torchaudio", "triton", "pytorch-triton", "xformers", "flashinfer-python",
    "flashinfer-jit-cache", "flashinfer-cubin", "flash-attn", "sglang", "sgl-kernel", "sglang-kernel", "lmcache",
    "bitsandbytes", "deepspeed",
)  # fmt: skip

#: Runs in the other interpreter, as ``-c``: as a file it would find its neighbours before the standard library.
_PROGRAM = Path(__file__).with_name("look_inside.py")


class TorchBuild(msgspec.Struct, frozen=True):
    """What torch says of itself in ``version.py``; ``cuda`` "13.0" is what it was built with, empty for none."""

    version: str = ""
    cuda: str = ""
    hip: str = ""
    xpu: str = ""
    architectures: tuple[str, ...] = ()


class Installed(msgspec.Struct, frozen=True):
    """An environment.

    ``versions`` holds every package by its normalised name, ``requires`` the requirements of those that matter,
    ``twice`` packages whose metadata is there in two versions. ``cudart`` is the major release of the CUDA runtime
    that a package's kernels are linked to. ``vllm_variables`` are the variables that the installed vLLM reads; None
    where it cannot be told.
    """

    python: str
    marker: dict[str, str]
    versions: dict[str, str]
    requires: dict[str, tuple[str, ...]]
    twice: tuple[tuple[str, str, str], ...] = ()
    torch: TorchBuild | None = None
    cudart: dict[str, str] = {}
    vllm_variables: frozenset[str] | None = None

    def version(self, name: str) -> str:
        """Return the version of a package; empty when it is not installed."""
        return self.versions.get(name, "")


class _Told(msgspec.Struct):
    python: str
    marker: dict[str, str]
    versions: dict[str, str]
    requires: dict[str, list[str]]
    twice: list[tuple[str, str, str]]
    torch_version_py: str
    torch_architectures: list[str]
    cudart: dict[str, str]
    vllm_envs_py: str


def look(python: str, environment: dict[str, str] | None = None) -> Installed | Unread:
    """Ask an interpreter what is installed beside it.

    Args:
        python: the interpreter, as a path.
        environment: variables of the child; ours when left out.
    """
    names = msgspec.json.encode(READ).decode()
    try:
        program = _PROGRAM.read_text(encoding="utf-8")
    except OSError as problem:
        return Unread(f"{_PROGRAM}: {problem.strerror or problem}; install oortriage unzipped")
    done = run([python, "-c", program, names], SECONDS, environment)
    if isinstance(done, Unread):
        return done
    return told(done)


def told(done: Ran) -> Installed | Unread:
    """Read what the child printed."""
    try:
        answer = msgspec.json.decode(done.out.strip().splitlines()[-1].encode(), type=_Told)
    except (IndexError, msgspec.DecodeError):
        last = (done.err.strip().splitlines() or [""])[-1][-200:]
        return Unread(f"the interpreter ended with {done.code} and no answer: {last}")
    return Installed(
        python=answer.python,
        marker=answer.marker,
        versions=answer.versions,
        requires={name: tuple(listed) for name, listed in answer.requires.items()},
        twice=tuple(answer.twice),
        torch=torch_build(answer.torch_version_py, tuple(answer.torch_architectures))
        if answer.torch_version_py
        else None,
        cudart=answer.cudart,
        vllm_variables=variables_of(answer.vllm_envs_py),
    )


def torch_build(text: str, architectures: tuple[str, ...] = ()) -> TorchBuild:
    """Read torch's ``version.py``: assignments of strings or None, with or without a type."""

    def value(name: str) -> str:
        found = re.search(rf"^{name}(?:\s*:[^=\n]*)?\s*=\s*['\"]([^'\"\n]*)['\"]", text, re.MULTILINE)
        return found.group(1) if found else ""

    return TorchBuild(value("__version__"), value("cuda"), value("hip"), value("xpu"), architectures)


def variables_of(text: str) -> frozenset[str] | None:
    """List the names that vLLM's ``envs.py`` knows: the keys of its table, found without running it."""
    if not text:
        return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        target: Any = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if (
            isinstance(node, (ast.Assign, ast.AnnAssign))
            and isinstance(target, ast.Name)
            and target.id == "environment_variables"
            and isinstance(node.value, ast.Dict)
        ):
            keys = [one.value for one in node.value.keys if isinstance(one, ast.Constant)]
            return frozenset(one for one in keys if isinstance(one, str)) or None
    return None
