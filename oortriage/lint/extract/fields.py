"""The config classes of a release: each field's type, from which vLLM makes the option of the command line."""

from __future__ import annotations

import ast
from collections.abc import Iterable

import msgspec

from oortriage.lint.surface import Flag, Kind

#: Words round a type that do not change which values it takes.
_WRAPPERS = ("Optional", "Annotated", "SkipValidation", "ClassVar", "InitVar", "Union", "Final")
_PLAIN = {"bool", "int", "float", "str", "list", "tuple", "set", "dict", "None"}
_CONTAINERS = {"List": "list", "Tuple": "tuple", "Set": "set", "Dict": "dict", "Sequence": "list", "Mapping": "dict"}
_BOUNDS = ("gt", "ge", "lt", "le")
_DEPTH = 8


class Leaf(msgspec.Struct, frozen=True):
    """One alternative of a type: a plain name, ``literal`` with its values, or ``class`` for a config class."""

    name: str
    values: tuple[str, ...] = ()


class Classes:
    """Everything that the config files of one release define."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Read the files."""
        self.classes: dict[str, ast.ClassDef] = {}
        self._names: dict[str, ast.expr] = {}
        for text in texts:
            for node in ast.parse(text).body:
                if isinstance(node, ast.ClassDef):
                    self.classes.setdefault(node.name, node)
                elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    self._names.setdefault(node.targets[0].id, node.value)
                elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                    self._names.setdefault(node.target.id, node.value)

    def fields(self, name: str) -> dict[str, ast.AnnAssign]:
        """Return a class's fields, those of its bases first."""
        found: dict[str, ast.AnnAssign] = {}
        node = self.classes.get(name)
        if node is None:
            return found
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id != name:
                found |= self.fields(base.id)
        for one in node.body:
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                found[one.target.id] = one
        return found

    def flag(self, name: str, field: str, sizes: dict[str, Kind]) -> Flag:
        """Say what option vLLM makes of a field; ``sizes`` are the fields it reads as integers with a suffix."""
        node = self.fields(name).get(field)
        if node is None:
            return Flag()
        leaves = set(self._leaves(node.annotation))
        kind, choices = _kind(leaves)
        bounds, default = _field(node.value)
        return Flag(
            kind=sizes.get(field, kind) if kind == "int" else kind,
            choices=choices,
            optional={leaf.name for leaf in leaves} == {"bool", "str", "None"},
            bounds=bounds,
            default=default,
        )

    def choices(self, node: ast.expr) -> tuple[str, ...]:
        """Return what a ``choices=`` expression lists; empty where it is computed in a way not understood."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "get_args"):
            return self.choices(node.args[0]) if node.args else ()
        if isinstance(node, ast.Name):
            known = self._names.get(node.id)
            return self.choices(known) if known is not None else ()
        if isinstance(node, ast.Dict):
            return _texts(key for key in node.keys if key is not None)
        if isinstance(node, ast.Subscript):
            return next((leaf.values for leaf in self._leaves(node) if leaf.name == "literal"), ())
        if not isinstance(node, (ast.List, ast.Tuple)):
            return ()
        found: list[str] = []
        for one in node.elts:
            more = self.choices(one.value) if isinstance(one, ast.Starred) else _texts([one])
            if not more:
                return ()
            found += more
        return tuple(found)

    def _leaves(self, node: ast.expr, depth: int = 0) -> list[Leaf]:
        """Take a type apart: unions, optional ones, aliases."""
        if depth > _DEPTH:
            return [Leaf("?")]
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                try:
                    return self._leaves(ast.parse(node.value, mode="eval").body, depth + 1)
                except SyntaxError:
                    return [Leaf("?")]
            return [Leaf("None" if node.value is None else "?")]
        if isinstance(node, ast.BinOp):
            return self._leaves(node.left, depth + 1) + self._leaves(node.right, depth + 1)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, depth)
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else "?"
        if name in _PLAIN or name in _CONTAINERS:
            return [Leaf(_CONTAINERS.get(name, name))]
        if name in self.classes:
            bases = {base.id for base in self.classes[name].bases if isinstance(base, ast.Name)}
            return [Leaf("enum" if any("Enum" in base for base in bases) else "class")]
        if name in self._names:
            return self._leaves(self._names[name], depth + 1)
        return [Leaf("?")]

    def _subscript(self, node: ast.Subscript, depth: int) -> list[Leaf]:
        head = node.value
        name = head.id if isinstance(head, ast.Name) else head.attr if isinstance(head, ast.Attribute) else ""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Literal":
            return [Leaf("literal", _texts(parts))]
        if name in ("Annotated", "SkipValidation", "InitVar", "Final"):
            return self._leaves(parts[0], depth + 1)
        if name in _WRAPPERS:
            more = [Leaf("None")] if name == "Optional" else []
            return [leaf for part in parts for leaf in self._leaves(part, depth + 1)] + more
        return [Leaf(_CONTAINERS.get(name, name if name in _PLAIN else "?"))]


def _kind(leaves: set[Leaf]) -> tuple[Kind, tuple[str, ...]]:
    """Follow the order in which vLLM's get_kwargs asks (0.17.1 engine/arg_utils.py:247-345)."""
    names = {leaf.name for leaf in leaves}
    if "class" in names:
        return "json", ()
    if {"bool", "str"} <= names:
        return "text", ()
    if "bool" in names:
        return "pair", ()
    if "literal" in names:
        values = tuple(value for leaf in sorted(leaves, key=lambda one: one.values) for value in leaf.values)
        if names & {"?", "enum", "int"}:
            return "text", ()
        return ("text", values) if "str" in names else ("choice", values)
    if names & {"list", "tuple", "set"}:
        return "list", ()
    if "int" in names and not names & {"str", "?"}:
        return "int", ()
    if "float" in names and not names & {"str", "?"}:
        return "float", ()
    if names in ({"dict"}, {"dict", "None"}):
        return "json", ()
    return ("text", ()) if "str" in names else ("unknown", ())


def _field(value: ast.expr | None) -> tuple[tuple[str, ...], str]:
    """Read bounds and a literal default of ``= 3`` or ``= Field(default=3, gt=0)``."""
    if isinstance(value, ast.Call):
        words = {one.arg: one.value for one in value.keywords if one.arg}
        bounds = tuple(f"{name} {text}" for name in _BOUNDS if name in words and (text := literal(words[name])))
        return bounds, literal(words["default"]) if "default" in words else ""
    return (), literal(value) if value is not None else ""


def literal(node: ast.expr) -> str:
    """Write a literal number, text, truth value or None as text; anything else is empty."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ""
    return str(value) if isinstance(value, (int, float, str)) or value is None else ""


def _texts(nodes: Iterable[ast.expr]) -> tuple[str, ...]:
    return tuple(text for node in nodes if (text := literal(node)))
