"""All recipes there are, by name, and the one that a log's kernel or source file leads to."""

from __future__ import annotations

import difflib
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

from oortriage.capture.capsule import is_capsule
from oortriage.errors import UsageError
from oortriage.kernels import recipes
from oortriage.kernels._interface import Recipe
from oortriage.kernels.captured_kernel import captured_recipe


@lru_cache(maxsize=1)
def all_recipes() -> dict[str, Recipe]:
    """Import every file of ``recipes/`` and return what they offer; a file needs neither torch nor Triton for it."""
    found: dict[str, Recipe] = {}
    for module in iter_modules(recipes.__path__):
        for recipe in import_module(f"{recipes.__name__}.{module.name}").RECIPES:
            found[recipe.name] = recipe
    return dict(sorted(found.items()))


def find_recipe(name: str) -> Recipe:
    """Return a recipe by its name; of a capsule's file the one it holds.

    Raises:
        UsageError: there is none of that name; the message lists near ones.
        InputError: a capsule that cannot be read.
    """
    if is_capsule(name):
        return captured_recipe(name)
    known = all_recipes()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, cutoff=0.4) or list(known)
    raise UsageError(
        f"no kernel {name!r}; there are {', '.join(near)} (and FILE.py:FUNCTION for one of your own, or a capsule)"
    )


def recipes_for(kernel: str, files: list[str]) -> list[Recipe]:
    """Find the recipes that launch a kernel of this name, the ones whose source file is seen first.

    Args:
        kernel: the Triton function's name; may be empty.
        files: source paths of the traceback, innermost last.
    """
    plain = [file.replace("\\", "/") for file in files]

    def rank(recipe: Recipe) -> int:
        by_file = any(file.endswith(ending) for ending in recipe.files for file in plain)
        return 2 * by_file + (bool(kernel) and kernel in recipe.kernels)

    ranked = sorted(((rank(recipe), recipe) for recipe in all_recipes().values()), key=lambda pair: -pair[0])
    return [recipe for score, recipe in ranked if score]
