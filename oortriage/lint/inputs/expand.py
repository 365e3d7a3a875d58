"""Shell variables: what the text itself tells is put in, the rest leaves a word open."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: ``$NAME``, ``${NAME}``, ``${NAME:-default}``; not ``$(...)``, which is taken out before.
_VARIABLE = re.compile(
    r"\$(?:(?P<plain>[A-Za-z_]\w*)|\{(?P<name>[A-Za-z_]\w*)(?:\[[@*]\])?(?:(?P<how>:?[-=?+])(?P<default>[^{}]*))?\})"
)
#: What a template engine or a shell would fill in: Helm, GitHub Actions, Ansible, command substitution.
_TEMPLATE = re.compile(r"\$\{\{|\{\{|\$\(|`|<%")
#: What stands for the output of a command.
OUTPUT = "$__output__"
_MOST = 65_536


def expand(text: str, known: Mapping[str, str]) -> tuple[str, bool]:
    """Put known variables in; tell whether something unknown is left.

    A variable without a value here, but with a default (``${X:-64}``), is its default.
    """
    left = _TEMPLATE.search(text) is not None

    def value(found: re.Match[str]) -> str:
        nonlocal left
        name = found["plain"] or found["name"]
        if name in known:
            left = left or "$" in known[name] or "{{" in known[name]
            return known[name]
        if found["how"] in (":-", "-", ":=", "="):
            return found["default"] or ""
        left = True
        return found.group()

    made = _VARIABLE.sub(value, text)
    return made[:_MOST], left


def without_outputs(text: str) -> str:
    """Replace ``$(command)`` and back-quoted commands, which nobody runs here, by a mark."""
    made: list[str] = []
    place = 0
    quote = ""
    while place < len(text):
        char = text[place]
        if quote != "'" and char == "\\":
            made.append(text[place : place + 2])
            place += 2
            continue
        if char in "'\"" and quote in ("", char):
            quote = "" if quote else char
        elif quote != "'" and (text.startswith("$(", place) or char == "`"):
            end = _closing(text, place + 1) if char == "$" else text.find("`", place + 1) + 1
            place = end or len(text)
            made.append(OUTPUT)
            continue
        made.append(char)
        place += 1
    return "".join(made)


def _closing(text: str, start: int) -> int:
    """Return the place after the parenthesis that closes the one at ``start``."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place + 1
    return len(text)
