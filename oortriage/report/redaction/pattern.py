"""What a pattern is: one shape of one secret, as data, with the reason it is looked for and where the shape is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Literal

import msgspec
import regex

#: What a placeholder calls the secret it stands for.
Kind = Literal["token", "email", "user", "host", "ip", "mac", "prompt", "gpu", "serial", "account", "withheld"]

#: Says from the secret, the 80 characters before and the 80 after it whether it is one.
Accept = Callable[[str, str, str], bool]
#: Finds spans (start, end) in a text, where brackets have to be counted and an expression cannot.
Find = Callable[[str], Iterator[tuple[int, int]]]

#: Characters of context that ``accept`` is given on each side.
CONTEXT = 80


class Pattern(msgspec.Struct, frozen=True):
    """One shape.

    ``expression`` has a group ``secret``, and only that is replaced. It runs in linear time: repeats are
    possessive or bounded, and a run of characters is entered at its start only. ``anchors`` are lower-case texts
    of which one stands in every match; without them the expression is not tried. ``find`` takes the place of the
    expression where there is none.
    """

    name: str
    kind: Kind
    expression: str
    reason: str
    source: str
    anchors: tuple[str, ...] = ()
    accept: Accept | None = None
    find: Find | None = None

    def spans(self, text: str, timeout: float) -> Iterator[tuple[int, int]]:
        """Return where secrets of this shape stand, left to right.

        Raises:
            TimeoutError: it took more than ``timeout`` seconds.
        """
        if self.find is not None:
            yield from self.find(text)
            return
        for found in _compiled(self.expression).finditer(text, timeout=timeout, concurrent=False):
            start, end = found.span("secret")
            if start < end and (
                self.accept is None
                or self.accept(text[start:end], text[max(0, start - CONTEXT) : start], text[end : end + CONTEXT])
            ):
                yield start, end


@cache
def _compiled(expression: str) -> Any:
    return regex.compile(expression)
