"""Finds the vLLM whose file is to be patched: an unpacked tree, another environment, or this one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import msgspec

from oortriage.errors import OortriageError, UsageError
from oortriage.kernels.source import SourceError, SourceSpec, find_source, open_source
from oortriage.kernels.source.folder import folder_spec, installed_spec

#: Where the policy's file is: from 0.14.1 on, and up to 0.13.0.
PATHS = ("vllm/v1/attention/ops/triton_unified_attention.py", "vllm/attention/ops/triton_unified_attention.py")
#: What else the file imports; what is not there is stood in for.
_BESIDE = (
    "vllm/_version.py",
    "vllm/envs.py",
    "vllm/scalar_type.py",
    "vllm/utils/math_utils.py",
    "vllm/v1/kv_cache_interface.py",
    "vllm/v1/attention/ops/triton_attention_helpers.py",
)
_SECONDS = 60
#: Finds the package without importing it: that would start half of CUDA.
_LOOK = """
import importlib.metadata, importlib.util, json, sys
sys.path = [one for one in sys.path if one]
try:
    found = importlib.util.find_spec("vllm")
    places = list(found.submodule_search_locations or []) if found else []
except Exception:
    places = []
try:
    version = importlib.metadata.version("vllm")
except Exception:
    version = ""
print(json.dumps([places, version]))
"""


class NoVllmError(OortriageError):
    """There is no vLLM where one was looked for."""


class Tree(msgspec.Struct, frozen=True):
    """A vLLM on disk.

    ``root`` is the folder that holds the package ``vllm``; ``found`` says how it was found; ``python`` is the
    interpreter of another environment, where one was named.
    """

    root: Path
    version: str
    found: str
    python: str = ""

    @property
    def spec(self) -> SourceSpec:
        """The tree as a source for the compiler."""
        return SourceSpec("vllm", self.version, "folder", str(self.root))

    @property
    def named(self) -> str:
        """Name it for people."""
        return f"vLLM {self.version or '(version unknown)'}, {self.found}"


def find_tree(folder: Path | None = None, python: Path | None = None) -> Tree:
    """Find a vLLM.

    Args:
        folder: an unpacked tree: the folder that holds the package, or the package.
        python: an interpreter of another environment.

    Raises:
        NoVllmError: there is none.
        UsageError: both are given, or the interpreter cannot be run.
    """
    if folder and python:
        raise UsageError("--vllm-source and --python name two places; give one")
    if folder:
        try:
            spec = folder_spec("vllm", folder, "")
        except SourceError as problem:
            raise NoVllmError(f"{folder}: no vLLM in there: it holds no package vllm") from problem
        return Tree(Path(spec.location), spec.version or _told_by_metadata(Path(spec.location)), f"in {folder}")
    if python:
        return _of_interpreter(python)
    installed = installed_spec("vllm")
    if installed is None:
        raise NoVllmError(
            "no vLLM is installed beside oortriage: name another environment (--python /path/to/venv/bin/python) or "
            "an unpacked tree (--vllm-source DIR)"
        )
    return Tree(Path(installed.location), installed.version, "installed here")


def _of_interpreter(python: Path) -> Tree:
    try:
        done = subprocess.run(  # noqa: S603 (the interpreter that the user names)
            [str(python), "-c", _LOOK], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        places, version = json.loads(done.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise UsageError(f"{python}: cannot be run: {problem}") from problem
    except (IndexError, ValueError) as problem:
        raise UsageError(f"{python}: is no Python interpreter that answers: {done.stderr.strip()[-200:]}") from problem
    if not places:
        raise NoVllmError(f"{python}: that environment has no vLLM")
    root = Path(places[0]).parent
    return Tree(root, version or folder_spec("vllm", root, "").version, f"of {python}", str(python))


def _told_by_metadata(root: Path) -> str:
    """Read the version off the name of ``vllm-X.Y.Z.dist-info`` beside the package."""
    names = sorted(one.name for one in root.glob("vllm-*.dist-info"))
    return names[-1].removeprefix("vllm-").removesuffix(".dist-info") if names else ""


def policy_file(tree: Tree) -> Path:
    """Return the file that holds the policy.

    Raises:
        OortriageError: this vLLM has none.
    """
    for path in PATHS:
        if (tree.root / path).is_file():
            return tree.root / path
    raise OortriageError(
        f"{tree.named}: there is no {' and no '.join(PATHS)}: a vLLM older than 0.9, a newer one that moved it, or an "
        "incomplete tree"
    )


def materialise(version: str) -> Path:
    """Lay out a release's policy file, and what it imports, as a tree in the cache.

    Raises:
        SourceError: the release cannot be had.
    """
    spec = find_source("vllm", version)
    source = open_source(spec)
    wanted = [path for path in (*PATHS, *_BESIDE) if source.has(path)]
    local = {path: source.fetch(path) for path in wanted}
    if not local:
        raise SourceError(f"vLLM {version} has none of the files that are needed")
    path, place = next(iter(local.items()))
    return Path(str(place).removesuffix(path))
