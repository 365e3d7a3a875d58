"""The options of ``vllm serve``: every ``add_argument`` of a release's files, and what its value must be."""

from __future__ import annotations

import ast

from oortriage.lint.extract.fields import Classes, literal
from oortriage.lint.surface import Flag, Kind

#: What vLLM's own functions for ``type=`` read, and the plain types.
_TYPES: dict[str, Kind] = {
    "int": "int", "float": "float", "str": "text", "loads": "json", "human_readable_int": "size",
    "human_readable_int_or_auto": "size_or_auto", "nullable_str": "text",
}  # fmt: skip
_NONE = ast.Constant(None)
_FRONTEND = ("BaseFrontendArgs", "FrontendArgs")


class _Reader(ast.NodeVisitor):
    """Collects the options of one file."""

    def __init__(self, classes: Classes, sizes: dict[str, Kind], receiver: str) -> None:
        self.found: dict[str, Flag] = {}
        self._classes, self._sizes, self._receiver = classes, sizes, receiver
        self._kwargs: dict[str, str] = {}  # name of a variable: the config class it was made of
        self._parts: dict[str, tuple[str, str]] = {}  # name of a variable: class and field

    def visit_Assign(self, node: ast.Assign) -> None:
        """Note ``model_kwargs = get_kwargs(ModelConfig)`` and ``one = model_kwargs["field"]``."""
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Name):
            if isinstance(value, ast.Call) and _name(value.func) == "get_kwargs" and value.args:
                self._kwargs[target.id] = _name(value.args[0])
            elif part := self._part(value):
                self._parts[target.id] = part
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Take an ``add_argument`` with option names in its text."""
        adds = isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"
        if adds and isinstance(node.func, ast.Attribute) and self._receiver in ("", _name(node.func.value)):
            self._option(node)
        self.generic_visit(node)

    def _option(self, node: ast.Call) -> None:
        names = [text for one in node.args if (text := literal(one)).startswith("-")]
        long = [name.replace("_", "-") for name in names if name.startswith("--")]
        if not long:
            if len(names) == 1:
                self.found[names[0]] = self._flag(node, ())
            return
        flag = self._flag(node, tuple(name for name in names if name.replace("_", "-") != long[0]))
        self.found[long[0]] = flag

    def _flag(self, node: ast.Call, aliases: tuple[str, ...]) -> Flag:
        words = {one.arg: one.value for one in node.keywords if one.arg}
        for one in node.keywords:  # **{**cache_kwargs["field"], "default": None}
            if one.arg is None and isinstance(one.value, ast.Dict):
                words |= {literal(k): v for k, v in zip(one.value.keys, one.value.values, strict=True) if k is not None}
        spread = next((part for one in node.keywords if one.arg is None and (part := self._part(one.value))), None)
        flag = self._classes.flag(*spread, self._sizes) if spread else Flag()
        kind, choices, optional = flag.kind, flag.choices, flag.optional
        action = _name(words["action"]) or literal(words["action"]) if "action" in words else ""
        if action in ("store_true", "store_false"):
            kind = "switch"
        elif action == "BooleanOptionalAction":
            kind = "pair"
        elif action == "StoreBoolean":
            kind, optional = "unknown", True
        elif "type" in words:
            kind = _TYPES.get(_type_name(words["type"]), "unknown")
        elif not spread and "action" not in words:
            kind = "text"
        if "choices" in words:
            choices = self._classes.choices(words["choices"])
            kind = "choice" if choices else "unknown"
        if "nargs" in words:
            several = literal(words["nargs"])
            optional = optional or several == "?"
            kind = kind if several == "?" else "list"
        default = literal(words["default"]) if "default" in words else flag.default
        kept = choices if kind in ("choice", "text") else ()
        kind = "unknown" if kind == "choice" and not kept else kind
        return Flag(
            kind, kept, aliases, optional, flag.bounds, default, literal(words.get("deprecated", _NONE)) == "True"
        )

    def _part(self, node: ast.expr) -> tuple[str, str] | None:
        """Understand ``model_kwargs["field"]``, or a variable that holds it."""
        if isinstance(node, ast.Name):
            return self._parts.get(node.id)
        if isinstance(node, ast.Dict):
            spread = (self._part(value) for key, value in zip(node.keys, node.values, strict=True) if key is None)
            return next((one for one in spread if one), None)
        if isinstance(node, ast.Subscript) and (owner := self._kwargs.get(_name(node.value))):
            return owner, literal(node.slice)
        return None


def flags_of(text: str, classes: Classes, receiver: str = "") -> dict[str, Flag]:
    """Return the options that a file adds to a parser.

    Args:
        text: the file.
        classes: the config classes that options are made of.
        receiver: only options of the parser with this name, where a file has several.
    """
    tree = ast.parse(text)
    reader = _Reader(classes, {}, receiver)
    reader.visit(tree)
    return reader.found


def engine_flags(text: str, classes: Classes) -> dict[str, Flag]:
    """Return the options of ``engine/arg_utils.py``."""
    tree = ast.parse(text)
    reader = _Reader(classes, _sizes(tree), "")
    reader.visit(tree)
    return reader.found


def frontend_flags(text: str) -> dict[str, Flag]:
    """Return the options that are made of the fields of ``FrontendArgs`` in a loop (0.9.2 and later)."""
    classes = Classes([text])
    fields = {field: name for name in _FRONTEND for field in classes.fields(name)}
    special = _special(ast.parse(text))
    made = {}
    for field, name in fields.items():
        flag = classes.flag(name, field, {})
        loose = Flag("unknown", default=flag.default)
        made["--" + field.replace("_", "-")] = loose if field in special or flag.kind == "list" else flag
    return made


def _special(tree: ast.AST) -> set[str]:
    """Name the fields whose options are altered by hand: ``frontend_kwargs["field"]["type"] = ...``."""
    return {
        literal(node.value.slice)
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Subscript)
        and _name(node.value.value).endswith("kwargs")
    }  # fmt: skip


def _sizes(tree: ast.AST) -> dict[str, Kind]:
    """Name the fields that get_kwargs reads as integers with a suffix."""
    found: dict[str, Kind] = {}
    sets = {
        node.targets[0].id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Set)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.If):
            continue
        kind = next(
            (_TYPES[one.id] for step in node.body for one in ast.walk(step)
             if isinstance(one, ast.Name) and one.id.startswith("human_readable_int") and one.id in _TYPES), None,
        )  # fmt: skip
        if kind is None or not isinstance(node.test, ast.Compare):
            continue
        right = node.test.comparators[0]
        right = sets.get(right.id, right) if isinstance(right, ast.Name) else right
        for one in ast.walk(right):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                found.setdefault(one.value, kind)
    return found


def _type_name(node: ast.expr) -> str:
    """Name the function of ``type=``; one made by another (``optional_type(int)``) is named by what it is made of."""
    if isinstance(node, ast.Call):
        return _type_name(node.args[0]) if node.args else ""
    return _name(node)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
