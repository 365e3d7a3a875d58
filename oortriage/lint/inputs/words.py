"""One line of shell text taken apart: its simple commands, their words, arrays put in; redirections are left out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, MutableMapping

from oortriage.lint.inputs.expand import expand, without_outputs
from oortriage.lint.unit import Word

_ENDS = re.compile(r"[();|&]+|;;")
_REDIRECTS = re.compile(r"&?[<>]+[&|]?|>\|")
_ARRAY_NAME = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_WHOLE_ARRAY = re.compile(r"\$\{([A-Za-z_]\w*)\[[@*]\]\}")
#: A word that is one variable, which a shell splits at its spaces.
_WHOLE = re.compile(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*(?:\[[@*]\])?(?::?[-=][^{}]*)?\})")
#: Words that an array may hold.
_MOST = 5000


class _Line:
    """The words of one line while they come in."""

    def __init__(self, known: Mapping[str, str], arrays: MutableMapping[str, tuple[Word, ...]]) -> None:
        self.words: list[Word] = []
        self._known, self._arrays = known, arrays
        self._array, self._elements = "", list[Word]()
        self._skip = False

    def take(self, piece: str, number: int) -> list[Word] | None:
        """Take what the lexer gives; return a command when one ends."""
        if _REDIRECTS.fullmatch(piece):
            self._skip = True
            if self.words and self.words[-1].text in ("1", "2") and len(self.words) > 1:
                self.words.pop()
        elif self._array and _ENDS.fullmatch(piece):
            self._arrays[self._array] = tuple(self._elements[:_MOST])
            self._array = ""
        elif self._array:
            self._elements += self._read(piece, number)
        elif piece.startswith("(") and self.words and (named := _ARRAY_NAME.fullmatch(self.words[-1].text)):
            self.words.pop()
            self._array = named[1]
            self._elements = list(self._arrays.get(named[1], ())) if named[2] else []
            if piece != "(":  # an empty one: the lexer keeps both parentheses together
                self._arrays[named[1]], self._array = tuple(self._elements), ""
        elif _ENDS.fullmatch(piece):
            done, self.words = self.words, []
            return done
        elif self._skip:
            self._skip = False
        else:
            self.words += self._read(piece, number)
        return None

    def _read(self, piece: str, number: int) -> list[Word]:
        named = _WHOLE_ARRAY.fullmatch(piece)
        if named and named[1] in self._arrays:
            return list(self._arrays[named[1]])
        value, is_open = expand(piece, self._known)
        if _WHOLE.fullmatch(piece):
            return _split_value(value, number, is_open, self._known)
        return [Word(value, number, is_open)]


def split(
    text: str, first: int, known: Mapping[str, str], arrays: MutableMapping[str, tuple[Word, ...]]
) -> Iterator[list[Word]]:
    """Yield the simple commands of a line and of those that continue it.

    Args:
        text: the line; where another continues it, there is a space and a newline.
        first: its number.
        known: variables that have been set.
        arrays: arrays that have been set; those that the line sets are added.
    """
    lexer = shlex.shlex(without_outputs(text), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    line = _Line(known, arrays)
    while True:
        before = lexer.lineno
        try:
            piece = lexer.get_token()
        except ValueError:  # a quote that never closes
            break
        if piece is None:
            break
        number = first + max(before, lexer.lineno - piece.count("\n")) - 1
        done = line.take(piece, number)
        if done is not None:
            yield done
    yield line.words


def _split_value(value: str, number: int, is_open: bool, known: Mapping[str, str]) -> list[Word]:
    """Split the options that a variable holds, as a shell does; a value of another kind stays one word."""
    if not value.lstrip().startswith("-"):
        return [Word(value, number, is_open)] if value or is_open else []
    try:
        parts = shlex.split(value)
    except ValueError:
        return [Word(value, number, open=True)]
    made = []
    for part in parts:
        text, still_open = expand(part, known)
        made.append(Word(text, number, still_open))
    return made
