"""One line of a log: what it says, who said it, and where in the raw file it stands."""

from __future__ import annotations

from enum import Enum

import msgspec

from oortriage.intake.clean import raw_index
from oortriage.intake.prefix import NO_PREFIX, Prefix


class Kind(Enum):
    """What a line is within its stream; only messages and exceptions are read by failure rules."""

    MESSAGE = "message"
    TRACEBACK = "traceback"
    FRAME = "frame"
    CODE = "code"
    EXCEPTION = "exception"


class Piece(msgspec.Struct, frozen=True):
    """A raw line, or the part of one that was kept.

    A part is a segment between carriage returns, or a window of a line too long to keep. ``column``
    is its 0-based start in the raw line.
    """

    number: int
    column: int
    raw: str


class Line(msgspec.Struct):
    """A message line: one piece, or several that a terminal had wrapped.

    ``starts`` holds, for each piece, where in ``body`` its text begins, and where in its cleaned
    text it began; both in characters.
    """

    body: str
    pieces: list[Piece]
    starts: list[tuple[int, int]]
    prefix: Prefix = NO_PREFIX
    stream: str = ""
    kind: Kind = Kind.MESSAGE
    in_prose: bool = False
    #: Part of a command's help text, which quotes messages without any having been printed.
    in_help: bool = False
    #: In a section of documentation (troubleshooting, common errors, alternatives).
    in_docs: bool = False
    #: Position in reading order over all streams.
    order: int = 0

    @property
    def number(self) -> int:
        """The 1-based number of the raw line."""
        return self.pieces[0].number

    def place(self, offset: int) -> tuple[Piece, int]:
        """Return the piece that holds ``body[offset]`` and its 1-based column in the raw line."""
        index = 0
        for candidate, (start, _) in enumerate(self.starts):
            if start <= offset:
                index = candidate
        start, cleaned = self.starts[index]
        piece = self.pieces[index]
        return piece, piece.column + raw_index(piece.raw, cleaned + offset - start) + 1
