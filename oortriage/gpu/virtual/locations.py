"""Source locations in MLIR's text: which file, line and Python variable an operation came from."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import msgspec

_ALIAS = re.compile(r"^#(loc\d*) = loc\((.*)\)$", re.MULTILINE)
_REFERENCE = re.compile(r"#(loc\d*)")
_FILE = re.compile(r'^"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_NAMED = re.compile(r'^"((?:[^"\\]|\\.)*)"\(')
#: Deeper nesting than any inlining makes; a cycle would be a broken file.
_DEPTH = 40
#: A statement is quoted up to this many characters.
_LONGEST = 160


class Place(msgspec.Struct, frozen=True):
    """A place in Python source; ``line`` and ``column`` are 1-based, 0 when unknown."""

    file: str = ""
    line: int = 0
    column: int = 0
    name: str = ""


class Locations:
    """All location aliases of a module's text."""

    def __init__(self, module: str) -> None:
        """Collect the aliases."""
        self._aliases = dict(_ALIAS.findall(module))

    def find(self, text: str) -> Place:
        """Resolve what stands within ``loc(...)`` to a place; an empty one when unknown.

        Of an inlined call the innermost function outside of Triton's own library counts: a reduction
        of ``tl.max`` stands at the user's line.
        """
        return self._find(text.strip(), 0)

    def _find(self, text: str, depth: int) -> Place:
        if depth > _DEPTH:
            return Place()
        if alias := _REFERENCE.fullmatch(text):
            return self._find(self._aliases.get(alias.group(1), ""), depth + 1)
        if found := _FILE.match(text):
            return Place(_unescape(found.group(1)), int(found.group(2)), int(found.group(3)) + 1)
        if found := _NAMED.match(text):
            inner = self._find(text[found.end() : -1], depth + 1)
            return msgspec.structs.replace(inner, name=_unescape(found.group(1)))
        if text.startswith("callsite(") and " at " in text:
            callee, caller = _split_call(text[len("callsite(") : -1])
            places = [self._find(callee, depth + 1), self._find(caller, depth + 1)]
            own = [place for place in places if place.file and not _is_library(place.file)]
            return (own or places)[0]
        if text.startswith("fused"):
            inside = text[text.find("[") + 1 : text.rfind("]")]
            for part in _split_list(inside):
                if (place := self._find(part, depth + 1)).file:
                    return place
        return Place()


def _is_library(file: str) -> bool:
    return "/triton/language/" in file.replace("\\", "/")


def _unescape(text: str) -> str:
    """Undo MLIR's two-digit hexadecimal escapes (of UTF-8 bytes)."""
    if "\\" not in text:
        return text
    raw = re.sub(rb"\\([0-9A-Fa-f]{2}|.)", _unescape_one, text.encode())
    return raw.decode("utf-8", "replace")


def _unescape_one(found: re.Match[bytes]) -> bytes:
    code = found.group(1)
    return bytes([int(code, 16)]) if len(code) == 2 else code


def _split_call(text: str) -> tuple[str, str]:
    depth = 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and text.startswith(" at ", index):
            return text[:index], text[index + 4 :]
    return text, ""


def _split_list(text: str) -> list[str]:
    parts, depth, begin = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[begin:index].strip())
            begin = index + 1
    return [*parts, text[begin:].strip()]


def source_line(file: str, line: int) -> str:
    """Return the statement at a line, on one line; empty when the file is not there.

    A location within a call that spans lines points at an argument, which alone says little.
    """
    lines = _lines(file)
    if not 0 < line <= len(lines):
        return ""
    spans = [(first, last) for first, last, *_ in _assignments(file) if first <= line <= last]
    first, last = min(spans, key=lambda span: span[1] - span[0], default=(line, line))
    text = " ".join(part.strip() for part in lines[first - 1 : last])
    return text.replace("( ", "(").replace(", )", ")")[:_LONGEST]


def variable_at(file: str, line: int, column: int) -> str:
    """Name what the expression at a place is assigned to; empty when nothing plain is.

    Triton 3.4 writes no variable names into its locations; the source tells them.
    """
    best: tuple[int, str] | None = None
    for first, last, begin, end, name in _assignments(file):
        inside = (first, begin) <= (line, column - 1) <= (last, end)
        if inside and (best is None or last - first <= best[0]):
            best = (last - first, name)
    return best[1] if best else ""


@lru_cache(maxsize=64)
def _lines(file: str) -> tuple[str, ...]:
    try:
        return tuple(Path(file).read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return ()


@lru_cache(maxsize=64)
def _assignments(file: str) -> tuple[tuple[int, int, int, int, str], ...]:
    try:
        tree = ast.parse("\n".join(_lines(file)))
    except (SyntaxError, ValueError):
        return ()
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        elif isinstance(node, ast.AugAssign | ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        else:
            continue
        found.append((node.lineno, node.end_lineno or node.lineno, node.col_offset, node.end_col_offset or 0, name))
    return tuple(found)
