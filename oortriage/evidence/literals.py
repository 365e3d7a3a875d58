"""Many literals in one pass: which anchors occur in a text, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import ahocorasick_rs

_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def fold(text: str) -> str:
    """Lower the ASCII letters and turn line breaks to spaces; every offset stays where it was."""
    lowered = text.lower()
    if len(lowered) != len(text):  # one letter became two, as the Turkish dotted I does
        lowered = text.translate(_ASCII_LOWER)
    return lowered.replace("\n", " ").replace("\r", " ")


class LiteralSet:
    """A set of literals to find in text, blind to the case of ASCII letters and to line breaks."""

    def __init__(self, literals: Iterable[str]) -> None:
        self.literals: Sequence[str] = sorted({fold(literal) for literal in literals})
        self._automaton = ahocorasick_rs.AhoCorasick(self.literals)

    def find(self, folded: str) -> Iterator[tuple[str, int, int]]:
        """Yield ``(literal, start, end)`` for every occurrence, overlapping ones included.

        Args:
            folded: text that went through :func:`fold`.
        """
        for index, start, end in self._automaton.find_matches_as_indexes(folded, overlapping=True):
            yield self.literals[index], start, end
