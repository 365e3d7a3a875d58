"""Stands in for ``einops.rearrange`` where einops is not installed: some wrappers reshape with it.

Only what such wrappers use: names, groups in parentheses and one leading ellipsis. Same result, so
shapes and strides that reach a kernel are the real ones.
"""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from math import prod
from types import ModuleType
from typing import Any


def provide_einops() -> None:
    """Make ``from einops import rearrange`` work in this process; an installed einops is left alone."""
    if "einops" not in sys.modules and find_spec("einops") is None:
        module = ModuleType("einops")
        module.__dict__["rearrange"] = rearrange
        sys.modules["einops"] = module


def rearrange(tensor: Any, pattern: str, **sizes: int) -> Any:
    """Split, permute and merge a tensor's dimensions, as ``"b h n d -> b n (h d)"`` says.

    Args:
        tensor: a torch tensor.
        pattern: dimensions before and after the arrow.
        sizes: lengths of dimensions that a group on the left does not settle.

    Raises:
        ValueError: a pattern beyond what is described above.
    """
    before, after = (_groups(side) for side in pattern.split("->"))
    if "..." in (name for group in (*before, *after) for name in group):
        before, after = _spelled_out(before, after, tensor.dim())
    if len(before) != tensor.dim():
        raise ValueError(f"{pattern!r} does not fit {tensor.dim()} dimensions")
    length: dict[str, int] = dict(sizes)
    for group, size in zip(before, tensor.shape, strict=True):
        unknown = [name for name in group if name not in length]
        if len(unknown) > 1:
            raise ValueError(f"{pattern!r} leaves {' and '.join(unknown)} open")
        known = prod(length[name] for name in group if name in length)
        length |= dict.fromkeys(unknown, int(size) // known)
    names = [name for group in before for name in group]
    wanted = [name for group in after for name in group]
    if sorted(names) != sorted(wanted):
        raise ValueError(f"{pattern!r} does not keep its dimensions")
    split = tensor.reshape([length[name] for name in names])
    moved = split.permute([names.index(name) for name in wanted])
    return moved.reshape([prod(length[name] for name in group) for group in after])


def _groups(side: str) -> list[list[str]]:
    """Read ``b (h d)`` as [[b], [h, d]]."""
    found = re.findall(r"\(([^)]*)\)|(\S+)", side)
    groups = [inside.split() if not alone else [alone] for inside, alone in found]
    return [[name for name in group if name != "1"] for group in groups]  # a 1 is a dimension of nothing


def _spelled_out(before: list[list[str]], after: list[list[str]], dimensions: int) -> Any:
    """Put names in the place of an ellipsis that stands for whole leading dimensions."""
    leading = [[f"...{index}"] for index in range(dimensions - len(before) + 1)]
    if before[0] != ["..."] or after[0] != ["..."]:
        raise ValueError("an ellipsis is understood at the front only")
    return leading + before[1:], leading + after[1:]
