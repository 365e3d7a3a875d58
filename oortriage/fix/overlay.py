"""A vLLM as it would be with another policy file: a folder of links, with that one file in it."""

from __future__ import annotations

import os
from pathlib import Path

from oortriage.cache import cache_folder
from oortriage.fix.store import digest, write_whole
from oortriage.fix.tree import Tree, policy_file
from oortriage.kernels.source import SourceSpec


def overlay(tree: Tree, data: bytes) -> SourceSpec:
    """Lay out a tree whose policy file holds these bytes; the tree itself is not touched.

    Its place depends on the bytes and the tree alone, so that what was compiled from it is found again.
    """
    path = policy_file(tree).relative_to(tree.root)
    place = cache_folder() / "patched" / digest(str(tree.root.resolve()).encode() + data)[:24]
    here, there = place, tree.root.resolve()
    for part in path.parts:
        here.mkdir(parents=True, exist_ok=True)
        for one in there.iterdir() if here != place else ():
            link = here / one.name
            if one.name not in (part, "__pycache__") and not link.is_symlink():
                _link(link, one)
        here, there = here / part, there / part
    if not here.is_file() or here.read_bytes() != data:
        write_whole(here, data)
    return SourceSpec("vllm", tree.version, "folder", str(place))


def _link(link: Path, target: Path) -> None:
    try:
        link.symlink_to(target)
    except FileExistsError:  # another process lays out the same
        if not os.path.lexists(link):
            raise
