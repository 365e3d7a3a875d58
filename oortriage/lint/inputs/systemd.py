"""systemd units: Environment= and ExecStart=."""

from __future__ import annotations

import re
import shlex

from oortriage.lint.inputs.shell import words_unit
from oortriage.lint.unit import Document, Setting, Unit, Word

_KEY = re.compile(r"\s*(\w+)\s*=\s*(.*)", re.DOTALL)
_OPEN = re.compile(r"\$\{?\w|%[a-zA-Z]")
_STARTS = ("ExecStart", "ExecStartPre", "ExecStartPost", "ExecReload")


def read_systemd(text: str) -> Document:
    """Read a unit file; the environment holds for every command of it."""
    settings: list[Setting] = []
    commands: list[list[Word]] = []
    notes: list[str] = []
    for line, key, value in _entries(text):
        if key == "Environment":
            for word in _split(value):
                name, mark, content = word.partition("=")
                if mark:
                    settings.append(Setting(name, content, line, _is_open(content)))
        elif key == "EnvironmentFile":
            notes.append(f"line {line}: the variables of {value.strip()} are not read; lint that file too")
        elif key in _STARTS:
            words = _split(value.lstrip("@-:+!"))
            commands.append([Word(one, line, _is_open(one)) for one in words])
    units = [
        Unit(one.words, (*settings, *one.settings), one.image, one.server)
        for words in commands for one in words_unit(words)
    ]  # fmt: skip
    if not units and settings:
        units = [Unit(settings=tuple(settings))]
    return Document("systemd", tuple(units), notes=tuple(notes))


def _entries(text: str) -> list[tuple[int, str, str]]:
    found = []
    lines = text.split("\n")
    place = 0
    while place < len(lines):
        number, whole = place + 1, lines[place].rstrip("\r")
        place += 1
        if whole.lstrip().startswith(("#", ";")):
            continue
        while whole.endswith("\\") and place < len(lines):
            whole = whole[:-1] + " " + lines[place].rstrip("\r")
            place += 1
        if match := _KEY.match(whole):
            found.append((number, match[1], match[2]))
    return found


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _is_open(text: str) -> bool:
    return _OPEN.search(text) is not None
