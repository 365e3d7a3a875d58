"""What is installed beside an interpreter, asked of that interpreter without importing any of it.

Importing torch or vllm would take seconds, load a driver, and can fail for the very reasons that are looked for.
"""

from __future__ import annotations

import ast
import re
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

#: Runs in the other interpreter: standard library only, Python 3.8 and later, nothing imported from the packages.
_PROGRAM = r"""
import sys
sys.path = [one for one in sys.path if one]
import json, mmap, os, platform, re
import importlib.metadata as metadata, importlib.util as util
READ = set(json.loads(sys.argv[1]))
def plain(name):
    return re.sub(r"[-_.]+", "-", name or "").lower()
versions, requires, twice = {}, {}, []
for one in metadata.distributions():
    try:
        name, version = plain(one.metadata["Name"]), one.version
    except Exception:
        continue
    if not name or not version:
        continue
    if name in versions:
        if versions[name] != version and name in READ:
            twice.append([name, versions[name], version])
        continue
    versions[name] = version
    if name in READ:
        requires[name] = list(one.requires or [])
def folder(name):
    try:
        found = util.find_spec(name)
        return list(found.submodule_search_locations or [])[0] if found else ""
    except Exception:
        return ""
def text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4000000)
    except OSError:
        return ""
def architectures(root):
    path = os.path.join(root, "lib", "libtorch_python.so")
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            # From the literal on: a scan of 30 MB takes 30 ms so, and seconds with an alternative in front.
            for found in re.finditer(rb"sm_[0-9]+[af]?(?: (?:sm|compute)_[0-9]+[af]?)*\x00", data):
                if found.start() and data[found.start() - 1] == 0:
                    return found.group()[:-1].decode().split()
            return []
    except (OSError, ValueError):
        return []
torch = folder("torch")
torch_says = text(os.path.join(torch, "version.py")) if torch else ""
with_cuda = re.search(r"^cuda\b[^=\n]*= *['\"]", torch_says, re.MULTILINE)
vllm = folder("vllm")
print(json.dumps({
    "python": platform.python_version(),
    "implementation": platform.python_implementation(),
    "machine": platform.machine(),
    "platform": sys.platform,
    "marker": {
        "implementation_name": sys.implementation.name,
        "implementation_version": platform.python_version(),
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "platform_python_implementation": platform.python_implementation(),
        "python_version": "%d.%d" % sys.version_info[:2],
        "sys_platform": sys.platform,
    },
    "versions": versions, "requires": requires, "twice": twice,
    "torch_version_py": torch_says,
    "torch_architectures": architectures(torch) if with_cuda else [],
    "vllm_envs_py": text(os.path.join(vllm, "envs.py")) if vllm else "",
}))
"""


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
    ``twice`` packages whose metadata is there in two versions. ``vllm_variables`` are the variables that the
    installed vLLM reads; None where it cannot be told.
    """

    python: str
    marker: dict[str, str]
    versions: dict[str, str]
    requires: dict[str, tuple[str, ...]]
    twice: tuple[tuple[str, str, str], ...] = ()
    torch: TorchBuild | None = None
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
    vllm_envs_py: str


def look(python: str, environment: dict[str, str] | None = None) -> Installed | Unread:
    """Ask an interpreter what is installed beside it.

    Args:
        python: the interpreter, as a path.
        environment: variables of the child; ours when left out.
    """
    names = msgspec.json.encode(READ).decode()
    # -P would keep this folder's modules out, and is there from Python 3.11 only; the program does it itself.
    done = run([python, "-c", _PROGRAM, names], SECONDS, environment)
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
