"""Source locations in MLIR's text: which file, line and Python variable an operation came from."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import msgspec

_ALIAS = re.compile(r"^#(loc\d*) = loc\((.*)\)$", re.MULTILINE)
_REFERENCE = re.compile(r"#(loc\d*)")
_FILE = re.compile(r'^"((?:[^"\\]|\\.)*)":(\d{1,9}):(\d{1,9})')
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
        self._found: dict[str, Place] = {}

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
            name = alias.group(1)
            if name not in self._found:
                self._found[name] = Place()  # what an alias within itself is; each is resolved once
                self._found[name] = self._find(self._aliases.get(name, "").strip(), depth + 1)
            return self._found[name]
        if found := _FILE.match(text):
            return Place(_unescape(found.group(1)), int(found.group(2)), int(found.group(3)) + 1)
        if found := _NAMED.match(text):
            inner = self._find(text[found.end() : -1].strip(), depth + 1)
            return msgspec.structs.replace(inner, name=_unescape(found.group(1)))
        if text.startswith("callsite("):
            places = [self._find(part, depth + 1) for part in _split(text[len("callsite(") : -1], " at ", most=1)]
            own = [place for place in places if place.file and not _is_library(place.file)]
            return (own or places)[0]
        if text.startswith("fused"):
            listed = _split(text, "[", most=1, brackets="<>")[-1]  # what is told in the angles may hold brackets too
            for part in _split(listed.rpartition("]")[0], ","):
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


def _split(text: str, mark: str, *, most: int = -1, brackets: str = "()[]<>") -> list[str]:
    """Split at a mark that stands in no bracket and no quotes, at most so often."""
    parts, depth, begin, quoted, index = [], 0, 0, False, 0
    while index < len(text):
        letter = text[index]
        if quoted:
            index += letter == "\\"
            quoted = letter != '"'
        elif letter == '"':
            quoted = True
        elif depth == 0 and most != 0 and text.startswith(mark, index):
            parts.append(text[begin:index].strip())
            begin, most = index + len(mark), most - 1
        elif letter in brackets:
            depth += 1 if brackets.index(letter) % 2 == 0 else -1
        index += 1
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
    except (OSError, ValueError):
        return ()


@lru_cache(maxsize=64)
def _assignments(file: str) -> tuple[tuple[int, int, int, int, str], ...]:
    try:
        tree = ast.parse("\n".join(_lines(file)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
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
