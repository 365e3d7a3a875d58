"""A log read as a whole: its lines in reading order, sorted into one stream per process."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from oortriage.intake import markdown, traceback
from oortriage.intake.clean import clean
from oortriage.intake.line import Kind, Line, Piece
from oortriage.intake.prefix import NO_PREFIX, peel, stream_of
from oortriage.intake.structured import Unpacked, unpack
from oortriage.intake.traceback import Raised
from oortriage.intake.unwrap import give_rest_to_speaker, mend, unwrap, wrap_width

_ESCAPED_BREAK = re.compile(r"\\r?\\?n")
_USAGE = re.compile(r"(?:usage|Usage): \S+ (?:\[|<|-|[A-Z])")
#: ``srun --label`` puts the rank in front of every line; fewer lines than this are a coincidence.
_FEWEST_LABELS = 3
_PROMPT = re.compile(r"[^\s$#]{0,60}[$#] \S|Traceback \(most")
_VIEWER = re.compile(r"\s{0,6}(\d{1,7})(?:[:|] ?| |\t|$)")
_RANK_INSIDE = re.compile(r"(?<=\S )\[rank\d+\]: ")
_CONTINUATION = re.compile(r'^(?:\s+\S|File "|Traceback \(most|[\w.]+(?:Error|Exception|OutOfResources)\b)')
_FRAME = re.compile(r'^\s*File "[^"]+", line \d+')
_OPENS = re.compile(r"Traceback \(most recent call last\):?\s*$|:\s*$")


class Stream(msgspec.Struct):
    """The lines one process wrote, and what can be matched in them as a single text."""

    name: str
    lines: list[Line]
    raised: list[Raised] = []
    #: Messages and exceptions, one line each; source code of tracebacks is left out.
    text: str = ""
    _offsets: list[int] = []
    _readable: list[Line] = []

    def line_at(self, offset: int) -> tuple[Line, int]:
        """Return the line that holds ``text[offset]`` and the offset within its body."""
        index = max(0, bisect_right(self._offsets, offset) - 1)
        return self._readable[index], offset - self._offsets[index]

    def build(self) -> None:
        """Put the readable lines into one text, and remember where each begins."""
        readable, offsets, parts, at = [], [], [], 0
        for line in self.lines:
            if line.kind in (Kind.CODE, Kind.FRAME):
                continue
            readable.append(line)
            offsets.append(at)
            parts.append(line.body)
            at += len(line.body) + 1
        self.text = "\n".join(parts)
        self._offsets, self._readable = offsets, readable


class Log(msgspec.Struct):
    """A log, read. ``notes`` says what was odd about the input; ``lines`` is in reading order."""

    name: str
    lines: list[Line]
    streams: list[Stream]
    markdown: bool
    complete: bool
    notes: list[str]


def read_lines(pieces: Iterable[Piece]) -> Iterator[Line]:
    """Clean each piece, peel its prefix, and undo escaped line breaks (``repr`` of a traceback)."""
    for piece in _unnumbered(_unjoined(pieces)):
        cleaned = clean(piece.raw)
        if cleaned[:1] == "{" and (unpacked := unpack(cleaned)):
            yield from _from_json(unpacked, piece)
            continue
        prefix = peel(cleaned)
        body = cleaned[prefix.length :]
        if prefix.boxed:
            body = body.rstrip().removesuffix("│").rstrip() if body.rstrip().endswith("│") else body
        if "\\n" in body and _worth_expanding(body):
            yield from _expanded(body, prefix.length, piece, cleaned)
        else:
            yield Line(body, [piece], [(0, prefix.length)], prefix, prefix.stream)


def _read_again(line: Line) -> Iterator[Line]:
    """Read what stood in several rows as the one line it is: its prefix or JSON may have been cut."""
    if len(line.pieces) == 1 or line.starts[0][1] != line.prefix.length:
        yield line
        return
    text = clean(line.pieces[0].raw)[: line.prefix.length] + line.body
    if text[:1] == "{" and (unpacked := unpack(text)):
        yield from _from_json(unpacked, line.pieces[0])
        return
    prefix = peel(text)
    if prefix.length != line.prefix.length:
        moved = prefix.length - line.prefix.length
        line.starts = [(start - moved, cleaned) for start, cleaned in line.starts]
        line.body, line.prefix, line.stream = text[prefix.length :], prefix, prefix.stream or line.stream
    yield line


def _restore_figures(lines: list[Line]) -> None:
    """Undo the peeling of a number that only looks like the label of a rank, as few as there are."""
    labelled = [line for line in lines if line.prefix.rank and line.prefix.length == len(line.prefix.rank) + 2]
    if len(labelled) < _FEWEST_LABELS:
        for line in labelled:
            line.body, line.prefix, line.stream = f"{line.prefix.rank}: {line.body}", NO_PREFIX, ""
            line.starts = [(0, 0)]


def _mark_help(lines: Iterable[Line]) -> None:
    """Mark a command's help text: from its usage line to the next prompt or logged line."""
    inside = False
    for line in lines:
        if _USAGE.match(line.body):
            inside = True
        elif inside and (line.prefix.level or line.prefix.time or _PROMPT.match(line.body)):
            inside = False
        line.in_help = inside


def _unjoined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Cut a line at the rank prefixes inside it: a paste that lost its line breaks."""
    for piece in pieces:
        if " [rank" not in piece.raw:
            yield piece
            continue
        cuts = [found.start() for found in _RANK_INSIDE.finditer(piece.raw)]
        bounds = [0, *cuts, len(piece.raw)]
        for low, high in itertools.pairwise(bounds):
            yield Piece(piece.number, piece.column + low, piece.raw[low:high])


def _unnumbered(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Take off the line numbers that a viewer put in front of every line, where they count up."""
    held = list(pieces)
    numbers = [int(found.group(1)) if (found := _VIEWER.match(piece.raw)) else -1 for piece in held]
    if len(held) < 5 or any(b - a != 1 for a, b in itertools.pairwise(numbers)):
        yield from held
        return
    for piece in held:
        found = _VIEWER.match(piece.raw)
        width = found.end() if found else 0
        yield Piece(piece.number, piece.column + width, piece.raw[width:])


def _newest_first(lines: list[Line]) -> bool:
    """Tell a log that a viewer printed backwards, by the times that its lines begin with."""
    times = [line.prefix.time for line in lines if len(line.prefix.time) >= 19]
    steps = [(a > b) - (a < b) for a, b in itertools.pairwise(times) if len(a) == len(b)]
    falling, rising = steps.count(1), steps.count(-1)
    return falling >= 3 and falling > 4 * rising


def _turned(lines: list[Line]) -> list[Line]:
    """Put the records of a log in reverse order; the lines of one record stay as they are."""
    records: list[list[Line]] = []
    for line in lines:
        if line.prefix.time or not records:
            records.append([])
        records[-1].append(line)
    return [line for record in reversed(records) for line in record]


def _from_json(unpacked: Unpacked, piece: Piece) -> Iterator[Line]:
    """Read the message of a JSON line as lines of their own; columns point at its first character."""
    for text in unpacked.message.split("\n"):
        cleaned = clean(text)
        inner = peel(cleaned)
        container = inner.container or unpacked.source
        fields = {"container": container, "process": inner.process, "rank": inner.rank, "pid": inner.pid}
        prefix = msgspec.structs.replace(
            inner,
            level=inner.level or unpacked.level,
            time=unpacked.time or inner.time,
            container=container,
            stream=stream_of(fields),
        )
        yield Line(cleaned[inner.length :], [piece], [(0, unpacked.offset)], prefix, prefix.stream)


def _worth_expanding(body: str) -> bool:
    return len(_ESCAPED_BREAK.findall(body)) >= 2 or "Traceback" in body or 'File \\"' in body


def _expanded(body: str, skipped: int, piece: Piece, cleaned: str) -> Iterator[Line]:
    """Split a ``repr`` at its escaped line breaks; all parts keep the raw line's number."""
    prefix = peel(cleaned)
    at = 0
    for found in [*_ESCAPED_BREAK.finditer(body), None]:
        end = found.start() if found else len(body)
        part = body[at:end].replace('\\"', '"').replace("\\'", "'")
        # An escaped quote is two characters of the raw line; the column may be off by as many.
        yield Line(part, [piece], [(0, skipped + at)], prefix, prefix.stream)
        at = found.end() if found else end


def build_log(name: str, pieces: Iterable[Piece], *, complete: bool, notes: list[str]) -> Log:
    """Read pieces into a log: prose marked, lines sorted into streams, wraps and tracebacks undone.

    Args:
        name: the file's name, as evidence cites it.
        pieces: the lines in order.
        complete: whether all of the log is here, and not only stretches of it.
        notes: what was odd about the input so far.
    """
    lines = list(read_lines(pieces))
    _restore_figures(lines)
    give_rest_to_speaker(lines)
    lines = [part for line in mend(unwrap(lines, wrap_width(lines))) for part in _read_again(line)]
    if _newest_first(lines):
        lines = _turned(lines)
        notes = [*notes, "the log is printed newest first; it was read from its end"]
    for order, line in enumerate(lines):
        line.order = order
    bodies = [line.body for line in lines]
    as_markdown = markdown.is_markdown(bodies)
    if as_markdown:
        marks = zip(lines, markdown.prose(bodies), markdown.documentation(bodies), strict=True)
        for line, is_prose, is_documentation in marks:
            line.in_prose, line.in_docs = is_prose, is_documentation
    _mark_help(lines)
    streams: dict[str, Stream] = {}
    for line in _assigned(lines):
        streams.setdefault(line.stream, Stream(line.stream, [])).lines.append(line)
    for stream in streams.values():
        stream.raised = traceback.parse(stream.lines)
        stream.build()
    return Log(name, lines, list(streams.values()), as_markdown, complete, notes)


def _assigned(lines: Sequence[Line]) -> Iterator[Line]:
    """Give bare continuation lines to the process whose message they continue.

    Some loggers prefix every line of a message, and bare lines are another process's; others
    prefix only the first, and the bare lines below belong to it. Frames of tracebacks tell which.
    """
    every_line = any(line.prefix.stream and _FRAME.match(line.body) for line in lines)
    open_stream = ""
    for line in lines:
        if line.stream:
            open_stream = line.stream if not every_line or _OPENS.search(line.body) else ""
        elif open_stream and line.body.strip():
            continues = _CONTINUATION.match(line.body) or not every_line
            if line.prefix.level or line.in_prose or not continues:
                open_stream = ""
            else:
                line.stream = open_stream
        yield line
