"""The environment variables of a release: the keys of the table in ``vllm/envs.py``."""

from __future__ import annotations

import ast

TABLE = "environment_variables"


def variables_of(text: str) -> frozenset[str]:
    """Return the keys of the dictionary ``environment_variables``; empty where the text has none.

    The form is the same in every release read, 0.5.4 to 0.33.0: one dictionary of names to functions.
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not isinstance(node.value, ast.Dict):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(one, ast.Name) and one.id == TABLE for one in targets):
            keys = node.value.keys
            found |= {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
    return frozenset(found)
