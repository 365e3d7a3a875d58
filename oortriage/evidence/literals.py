"""Many literals in one pass: which anchors occur in a text, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from string import ascii_lowercase, ascii_uppercase

import ahocorasick_rs

_FOLDED = bytes.maketrans(ascii_uppercase.encode() + b"\n\r", ascii_lowercase.encode() + b"  ")


def fold(text: str) -> str:
    """Lower the ASCII letters and turn line breaks to spaces; every offset stays where it was.

    ``str.lower`` would move offsets (the Turkish dotted I becomes two characters) and
    ``str.translate`` takes 20 times as long on text that is not all ASCII. UTF-8 writes an ASCII
    letter as its own byte and nothing else with it, so a table of bytes does the same.
    """
    return text.encode("utf-8", "surrogatepass").translate(_FOLDED).decode("utf-8", "surrogatepass")


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
