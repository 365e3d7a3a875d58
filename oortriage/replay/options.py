"""What the user says about the kernel to compile; apart, so that the command starts without the compiler's rooms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

#: Parameters of recipes that the command has an option of its own for.
OWN_OPTIONS = ("dtype", "head_size", "window", "phase", "block_size", "tile")


class Options(msgspec.Struct, frozen=True):
    """What the user says. ``settings`` are a recipe's parameters, ``overrides`` a kernel's constants."""

    kernel: str = ""
    gpu: str = ""
    limit_bytes: int = 0
    versions: dict[str, str] = {}
    source: Path | None = None
    config: Path | None = None
    triton: str = ""
    settings: dict[str, Any] = {}
    overrides: dict[str, Any] = {}
    required_bytes: int = 0
