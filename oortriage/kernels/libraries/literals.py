"""Reads plain constants out of a library's file without importing it, so that a stand-in gives the true value."""

from __future__ import annotations

import ast
from typing import Any


def literal_constants(text: str) -> dict[str, Any]:
    """Return the names that a module assigns a literal (``PAD_SLOT_ID = -1``) on its top level, with their values."""
    found: dict[str, Any] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        value = node.value
        if len(targets) != 1 or not isinstance(targets[0], ast.Name) or value is None:
            continue
        try:
            found[targets[0].id] = ast.literal_eval(value)
        except ValueError:
            continue
    return found
