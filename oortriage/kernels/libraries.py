"""Opens the library of a recipe in the child process."""

from __future__ import annotations

from typing import Any

from oortriage.errors import UsageError
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.source import SourceSpec, open_source


class NoLibrary:
    """For kernels that belong to no library."""

    version = ""

    def module(self, *names: str) -> Any:
        """Have nothing to import."""
        raise LookupError(" or ".join(names))


def open_library(name: str, spec: SourceSpec | None, card: Card) -> Any:
    """Make a library's kernel files importable.

    Raises:
        UsageError: a library that is not known, or one without its source.
    """
    if not name:
        return NoLibrary()
    if spec is None:
        raise UsageError(f"the source of {name} is needed")
    if name == "vllm":
        from oortriage.kernels.vllm_library import vllm_library

        return vllm_library(open_source(spec), card)
    raise UsageError(f"no library {name}")
