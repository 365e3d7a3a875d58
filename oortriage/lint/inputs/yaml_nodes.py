"""YAML as nodes with their lines, never as objects; an anchor that is used a million times costs nothing.

The library composes nodes, in which an alias is the same node again. Whoever walks them counts steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from oortriage.errors import InputError

#: Nodes that a walk may visit, aliases counted each time.
BUDGET = 200_000
_DEPTH = 60
#: A line that is all template (``{{- if .Values.gpu }}``), and a template within one.
_TEMPLATE_LINE = re.compile(r"^[ \t]*\{\{(?:[^{}\n]|\}(?!\}))*\}\}[ \t]*$", re.MULTILINE)
_TEMPLATE = re.compile(r"\{\{(?:[^{}\n]|\}(?!\}))*\}\}")
#: Reads as a shell variable that nobody knows, and so leaves its word open.
UNKNOWN = "$__template__"
_MERGE = "tag:yaml.org,2002:merge"


class Budget:
    """Steps that are left."""

    def __init__(self) -> None:
        """Start with all of them."""
        self.left = BUDGET

    def step(self) -> None:
        """Take one.

        Raises:
            InputError: none is left.
        """
        self.left -= 1
        if self.left < 0:
            raise InputError(f"its aliases expand to more than {BUDGET:,} nodes")


def compose(text: str) -> list[Any]:
    """Return the documents of a YAML text as nodes; templates of Helm are marks in it.

    Raises:
        InputError: it is no YAML.
    """
    if "{{" in text:
        text = _TEMPLATE.sub(UNKNOWN, _TEMPLATE_LINE.sub("", text))
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return [node for node in yaml.compose_all(text, Loader=loader) if node is not None]
    except (yaml.YAMLError, ValueError) as problem:
        where = getattr(problem, "problem_mark", None)
        line = f"line {where.line + 1}: " if where is not None else ""
        raise InputError(f"{line}it is no YAML: {getattr(problem, 'problem', '') or 'cannot be read'}") from problem
    except RecursionError as problem:
        raise InputError("its YAML is nested too deeply") from problem


def items(node: Any, budget: Budget, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the keys of a mapping with their nodes; what ``<<`` merges in comes first, so that own keys win."""
    if not isinstance(node, yaml.MappingNode) or depth > _DEPTH:
        return
    for key, value in node.value:
        if key.tag == _MERGE:
            for one in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                yield from items(one, budget, depth + 1)
    for key, value in node.value:
        budget.step()
        if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
            yield str(key.value), value


def mapping(node: Any, budget: Budget) -> dict[str, Any]:
    """Return a mapping as a dictionary of nodes; empty for anything else."""
    return dict(items(node, budget))


def sequence(node: Any, budget: Budget) -> list[Any]:
    """Return the nodes of a list; empty for anything else."""
    if not isinstance(node, yaml.SequenceNode):
        return []
    for _ in node.value:
        budget.step()
    return list(node.value)


def scalar(node: Any) -> str | None:
    """Return a scalar's text; None for anything else."""
    if not isinstance(node, yaml.ScalarNode):
        return None
    return "" if node.tag.endswith(":null") else str(node.value)


def line_of(node: Any) -> int:
    """Return the line, from 1."""
    return int(node.start_mark.line) + 1


def walk(node: Any, budget: Budget, depth: int = 0) -> Iterator[Any]:
    """Yield a node and all below it, as deep as any manifest goes."""
    budget.step()
    yield node
    if depth > _DEPTH:
        return
    if isinstance(node, yaml.MappingNode):
        for _, value in items(node, budget):
            yield from walk(value, budget, depth + 1)
    elif isinstance(node, yaml.SequenceNode):
        for one in sequence(node, budget):
            yield from walk(one, budget, depth + 1)
