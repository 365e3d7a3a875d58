"""Which Triton compiles: the installed one, or another release in a cached environment of its own."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from oortriage.cache import cache_folder
from oortriage.errors import OortriageError, UsageError
from oortriage.gpu.virtual.adapter import OLDEST

#: The Triton that each PyTorch release requires (its own wheel metadata, checked 2026-11-30).
TRITON_OF_TORCH = {
    "2.5": "3.1.0",
    "2.6": "3.2.0",
    "2.7": "3.3.0",
    "2.8": "3.4.0",
    "2.9": "3.5.0",
    "2.10": "3.6.0",
    "2.11": "3.6.0",
}


class CompilerEnv(msgspec.Struct, frozen=True):
    """A Triton release, and the folder that goes first on the module path; empty for the installed one."""

    version: str
    folder: str = ""

    def variables(self) -> dict[str, str]:
        """Return the environment of a child that compiles with it; Triton's interpreter would compile nothing."""
        paths = [self.folder, os.environ.get("PYTHONPATH", "")]
        own = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
        own.pop("TRITON_INTERPRET", None)
        own.pop("OORTRIAGE_CAPTURE", None)  # what fails in our own children is no crash of the user's
        # A module holds one kernel; threads within a compilation only get in the way of the next child.
        own["MLIR_DISABLE_MULTITHREADING"] = "1"
        own["PYTHONWARNINGS"] = "ignore"  # the last line a child says is given as the reason it died
        return own


class CompilerMissingError(OortriageError):
    """There is no Triton to compile with; the message says how to get one."""


def compiler_env(version: str = "") -> CompilerEnv:
    """Return the environment for a Triton release; an empty version is the installed one.

    Raises:
        CompilerMissingError: none is installed, or the release cannot be fetched.
        UsageError: the version is no version.
    """
    installed = _installed()
    if version in ("", installed) or (installed and version == installed.removesuffix(".0")):
        if not installed:
            raise CompilerMissingError(
                "Triton is not installed: `pip install 'oortriage[triton]'` (Linux, no GPU needed), "
                "or `--triton 3.6.0` to fetch one into the cache"
            )
        return CompilerEnv(installed)
    if not re.fullmatch(r"\d+(\.\d+){1,2}(\.post\d+)?", version):
        raise UsageError(f"--triton {version}: not a version")
    if tuple(int(one) for one in version.split(".")[:2]) < OLDEST:
        raise UsageError(
            f"--triton {version}: older than {OLDEST[0]}.{OLDEST[1]}, the first that this version of oortriage can "
            "compile with"
        )
    return CompilerEnv(version, str(_fetched(version)))


def _installed() -> str:
    """Return the version of the Triton that is installed, of whatever distribution; empty when there is none."""
    for name in ("triton", "pytorch-triton-rocm", "triton-rocm", "pytorch-triton", "triton-xpu"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def _fetched(version: str) -> Path:
    """Install a release into the cache, whole or not at all."""
    tags = f"cp{sys.version_info.major}{sys.version_info.minor}"
    folder = cache_folder() / "triton" / f"{version}-{tags}"
    if (folder / "triton" / "__init__.py").is_file():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent))
    except OSError as problem:
        raise CompilerMissingError(f"{folder.parent}: cannot be written: {problem.strerror or problem}") from problem
    try:
        done = subprocess.run(  # noqa: S603 (our own interpreter; the version was checked)
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--target",
                str(temporary),
                f"triton=={version}",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CompilerMissingError(f"Triton {version} cannot be fetched: {_reason(done.stderr)}")
        temporary.replace(folder)
    except OSError:
        if not (folder / "triton").is_dir():  # else another process was first
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _reason(said: str) -> str:
    """Say why pip could not fetch a release."""
    if "(from versions: none)" in said:
        return "the package index cannot be reached, or has no Triton for this Python and this system"
    return next((line for line in reversed(said.splitlines()) if "ERROR" in line), said.strip())


def stated_triton(triton_version: str, torch_version: str) -> str:
    """Return the Triton a log speaks of: stated, or required by its PyTorch; empty when it does not say."""
    if triton_version:
        return triton_version
    found = re.match(r"(\d+\.\d+)", torch_version)
    return TRITON_OF_TORCH.get(found.group(1), "") if found else ""
