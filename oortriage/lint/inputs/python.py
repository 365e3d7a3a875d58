"""Python files, by syntax: os.environ, LLM(...), and commands started through subprocess or os.system."""

from __future__ import annotations

import ast

from oortriage.errors import InputError
from oortriage.lint.inputs.shell import shell_units, words_unit
from oortriage.lint.unit import Call, Document, Setting, Unit, Word

_CLASSES = ("LLM", "EngineArgs", "AsyncEngineArgs")
_STARTERS = ("run", "Popen", "call", "check_call", "check_output", "system", "getoutput", "create_subprocess_shell")


def read_python(text: str) -> Document:
    """Read a file.

    Raises:
        InputError: it is no Python.
    """
    try:
        tree = ast.parse(text)
        reader = _Reader()
        reader.visit(tree)
    except (SyntaxError, ValueError) as problem:
        line = f"line {problem.lineno}: " if isinstance(problem, SyntaxError) and problem.lineno else ""
        raise InputError(f"{line}it is no Python") from problem
    except (RecursionError, MemoryError) as problem:
        raise InputError("its Python is nested too deeply") from problem
    settings = tuple(reader.settings)
    late = tuple(one for one in settings if reader.imported and one.line > reader.imported)
    units = [Unit(settings=settings, call=call, late=late) for call in reader.calls]
    units += [Unit(one.words, (*settings, *one.settings), one.image, one.server) for one in reader.commands]
    if not units and settings:
        units = [Unit(settings=settings, late=late)]
    return Document("python", tuple(units))


class _Reader(ast.NodeVisitor):
    def __init__(self) -> None:
        self.settings: list[Setting] = []
        self.calls: list[Call] = []
        self.commands: list[Unit] = []
        self.imported = 0
        self._lists: dict[str, ast.expr] = {}

    def visit_Import(self, node: ast.Import) -> None:
        """Note where vLLM is imported."""
        if any(one.name.partition(".")[0] == "vllm" for one in node.names):
            self.imported = self.imported or node.lineno

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Note where vLLM is imported."""
        if (node.module or "").partition(".")[0] == "vllm" and not node.level:
            self.imported = self.imported or node.lineno

    def visit_Assign(self, node: ast.Assign) -> None:
        """Take ``os.environ["NAME"] = value``."""
        for target in node.targets:
            if isinstance(target, ast.Subscript) and _is_environment(target.value):
                self._set(target.slice, node.value)
            elif isinstance(target, ast.Name) and isinstance(node.value, (ast.List, ast.Tuple, ast.Constant)):
                self._lists[target.id] = node.value
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Take calls that set variables, build an engine, or start a command."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if name in _CLASSES:
            words = [(one.arg, _word(one.value)) for one in node.keywords if one.arg]
            if node.args and name == "LLM":
                words.insert(0, ("model", _word(node.args[0])))
            self.calls.append(Call(name, tuple(words), node.lineno))
        elif name in ("setdefault", "putenv") and len(node.args) == 2 and (name == "putenv" or _is_environment(owner)):
            self._set(node.args[0], node.args[1])
        elif name == "update" and _is_environment(owner):
            for one in node.args:
                if isinstance(one, ast.Dict):
                    for key, value in zip(one.keys, one.values, strict=True):
                        if key is not None:
                            self._set(key, value)
            for word in node.keywords:
                if word.arg:
                    self._set(ast.copy_location(ast.Constant(word.arg), word.value), word.value)
        elif name in _STARTERS and node.args:
            self._command(node.args[0])
        self.generic_visit(node)

    def _set(self, name: ast.expr, value: ast.expr) -> None:
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            word = _word(value)
            self.settings.append(Setting(name.value, word.text, name.lineno, word.open))

    def _command(self, node: ast.expr) -> None:
        node = self._lists.get(node.id, node) if isinstance(node, ast.Name) else node
        if isinstance(node, (ast.List, ast.Tuple)):
            self.commands += words_unit([_word(one) for one in node.elts])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.commands += shell_units(node.value, node.lineno)[0]


def _is_environment(node: ast.expr | None) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or getattr(node, "id", "") == "environ"


def _word(node: ast.expr) -> Word:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return Word("", node.lineno, open=True)
    return Word(str(value), node.lineno)
