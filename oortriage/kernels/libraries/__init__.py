"""One file a library: which of its files are real in the child process, and what stands in for the rest."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from oortriage.errors import UsageError
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels._interface import Recipe
from oortriage.kernels.source import SourceSpec, open_source


class NoLibrary:
    """For kernels that belong to no library."""

    version = ""

    def __init__(self) -> None:
        """Begin without files."""
        self.files: dict[str, str] = {}

    def module(self, *names: str) -> Any:
        """Have nothing to import."""
        raise LookupError(" or ".join(names))

    def data(self, _folder: str, *_words: str) -> list[str]:
        """Have no files."""
        return []


def open_library(recipe: Recipe, spec: SourceSpec | None, card: Card) -> Any:
    """Make a recipe's library importable, as far as its kernel files need it.

    Raises:
        UsageError: a library that is not known, or one without its source.
    """
    if not recipe.library:
        return NoLibrary()
    if spec is None:
        raise UsageError(f"the source of {recipe.library} is needed")
    name = f"{__name__}.{recipe.library.replace('-', '_')}"
    if find_spec(name) is None:
        raise UsageError(f"no library {recipe.library}")
    return import_module(name).library(open_source(spec), card, recipe.real)
