"""What wrote a report: system, Python, and the compiler where there is one. No names of machines."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version


def environment() -> dict[str, str]:
    """Return the names and versions that a report shows of the machine it was written on."""
    found = {"system": f"{platform.system()} {platform.machine()}", "Python": sys.version.split()[0]}
    for package in ("triton", "torch", "vllm"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
