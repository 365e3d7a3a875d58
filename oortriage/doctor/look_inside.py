"""Says what is installed beside the interpreter that runs it, as JSON. Nothing of it is imported.

Runs in any Python from 3.8 on, as ``python -c``, with the names of the packages that matter as its argument:
standard library only, no syntax newer than that.
"""

from __future__ import annotations

import sys

sys.path = [one for one in sys.path if one]  # the current folder may hold anything, a module named json too

import json
import mmap
import os
import platform
import re
from importlib import metadata, util
from typing import Any, Callable

#: Packages whose own libraries hold kernels.
WITH_KERNELS = ("vllm", "torchvision", "xformers", "sgl_kernel")
MOST_TEXT = 4000000


def plain(name: str | None) -> str:
    """Normalise a package's name."""
    return re.sub(r"[-_.]+", "-", name or "").lower()


def packages(read: set[str]) -> tuple[dict[str, str], dict[str, list[str]], list[list[str]]]:
    """Return versions by name, requirements of those that are to be read, and packages that are there twice."""
    versions: dict[str, str] = {}
    requires: dict[str, list[str]] = {}
    twice: list[list[str]] = []
    for one in metadata.distributions():
        try:
            name, version = plain(one.metadata["Name"]), one.version
            wanted = list(one.requires or []) if name in read else []
        except Exception:  # noqa: BLE001, S112 (broken metadata of one package)
            continue
        if not name or not version:
            continue
        if name in versions:
            if versions[name] != version and name in read:
                twice.append([name, versions[name], version])
            continue
        versions[name] = version
        if name in read:
            requires[name] = wanted
    return versions, requires, twice


def folder(name: str) -> str:
    """Return where a package stands; empty when it is not there."""
    try:
        found = util.find_spec(name)
        places = list(found.submodule_search_locations or []) if found else []
        return places[0] if places else ""
    except Exception:  # noqa: BLE001 (finders of editable installations may raise anything)
        return ""


def text(*path: str) -> str:
    """Read a file; empty when it cannot be."""
    try:
        with open(os.path.join(*path), encoding="utf-8", errors="replace") as file:
            return file.read(MOST_TEXT)
    except OSError:
        return ""


def mapped(path: str, look: Callable[[Any], Any]) -> Any:
    """Look into a file as bytes; None when it cannot be."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return look(data)
    except (OSError, ValueError):
        return None


def architectures(root: str) -> list[str]:
    """Find what torch was compiled for: the longest list of architectures that ends a text in its Python library.

    What stands before it is no mark: in 2.8.0 and 2.9.1 another constant does, without a zero between. The search
    begins with the literal: a scan of 30 MB takes 30 ms so, and seconds with an alternative in front.
    """

    def look(data: Any) -> list[str]:
        found = (one.group() for one in re.finditer(rb"sm_[0-9]+[af]?(?: (?:sm|compute)_[0-9]+[af]?)*\x00", data))
        return max((one[:-1].decode().split() for one in found), key=len, default=[])

    return mapped(os.path.join(root, "lib", "libtorch_python.so"), look) or []


def cudart(root: str) -> str:
    """Find the CUDA runtime that a package's kernels are linked to: the number in libcudart.so.13."""

    def look(data: Any) -> str:
        found = re.search(rb"libcudart\.so\.([0-9]+)", data)
        return found.group(1).decode() if found else ""

    try:
        names = sorted(one for one in os.listdir(root) if re.match(r"(?:_C|common_ops).*\.so$", one))
    except OSError:
        return ""
    for name in names:
        found: str | None = mapped(os.path.join(root, name), look)
        if found:
            return found
    return ""


def main() -> None:
    """Print what is there."""
    versions, requires, twice = packages(set(json.loads(sys.argv[1])))
    torch, vllm = folder("torch"), folder("vllm")
    torch_says = text(torch, "version.py") if torch else ""
    linked = {name: cudart(folder(name)) for name in WITH_KERNELS if folder(name)}
    answer = {
        "python": platform.python_version(),
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
        "versions": versions,
        "requires": requires,
        "twice": twice,
        "torch_version_py": torch_says,
        "torch_architectures": architectures(torch)
        if re.search(r"^cuda\b[^=\n]*= *['\"]", torch_says, re.MULTILINE)
        else [],
        "cudart": {name: found for name, found in linked.items() if found},
        "vllm_envs_py": text(vllm, "envs.py") if vllm else "",
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
