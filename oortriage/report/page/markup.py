"""HTML as text: elements whose strings are always escaped, and what cannot be seen shown as an escape."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from oortriage.report.escape import visible

_VOID = frozenset({"meta", "br"})
_QUOTED = re.compile(r"`([^`\n]{1,200})`")


class Html(str):
    """Text that is HTML already; any other string is escaped where it becomes a child of an element."""

    __slots__ = ()


def text(plain: str) -> Html:
    """Write a text so that a browser reads it as text, between tags and within quotes."""
    return Html(escape(visible(plain)))


def tag(name: str, /, *children: str, **attributes: str | None) -> Html:
    """Write one element.

    ``_`` in an attribute's name stands for ``-``, and ``class_`` for ``class``; an attribute that is None is
    left out.
    """
    named = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    head = name + "".join(f' {key}="{text(value)}"' for key, value in named)
    return Html(f"<{head}>" if name in _VOID else f"<{head}>{join(children)}</{name}>")


def join(parts: Iterable[str], between: str = "") -> Html:
    """Put parts together, escaping those that are not HTML."""
    return Html(between.join(part if isinstance(part, Html) else text(part) for part in parts))


def running(plain: str) -> Html:
    """Write running text, in which what stands between backticks is code."""
    parts = _QUOTED.split(plain)
    return join(tag("code", part) if at % 2 else text(part) for at, part in enumerate(parts))
