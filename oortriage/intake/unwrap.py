"""Messages that a terminal or a paste wrapped at a fixed width, put back together."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from oortriage.intake.breaks import Break, kind_of_break
from oortriage.intake.clean import clean
from oortriage.intake.line import Line

#: Widths at which terminals wrap; a run of equally long lines outside of it is no terminal.
_NARROWEST, _WIDEST = 40, 260
_NARROWEST_TEXT = 60  # shorter rows are as often whole lines
#: So many lines of exactly the greatest width make a wrap and not a coincidence.
_ENOUGH = 3
_JOINED_AT_MOST = 40
#: A paragraph's lines are at most so much shorter than its width.
_ROOM_FOR_A_WORD = 16
_BEGINNING = 5
_TABLE_END = re.compile(r"[|+│┃┐┘╮╯]$|([-=_*#~^])\1$")
#: What begins a line and does not go on with one.
_BEGINS = re.compile(r"Traceback \(|  File ")
_RAISED = re.compile(r"(?:\w+\.)*(?:[A-Z]\w*(?:Error|Exception)|OutOfResources): ")
_IN_NAME = re.compile(r"[A-Za-z.]$")
#: Lines on either side among which a wrapped one must be the longest.
_NEIGHBOURS = 8


def wrap_width(lines: Sequence[Line]) -> int:
    """Find the width at which the lines were hard-wrapped; 0 where they were not.

    At that width several different lines end, hardly any is longer, and fewer end just before it
    than at it. Tables and rulers, whose lines are equally long by design, do not count, nor do
    paragraphs broken at spaces, whose lines may happen to be equally long.
    """
    lengths = Counter({line.body: width_of(line) for line in lines}.values())
    ending: dict[int, dict[str, int]] = defaultdict(dict)
    for index, (line, below) in enumerate(pairwise(lines)):
        width = width_of(line)
        if _NARROWEST <= width <= _WIDEST and _may_be_wrapped(line) and not _alike(line, below):
            ending[width][line.body] = index
    best = 0
    for width, rows in ending.items():
        if len(rows) < max(_ENOUGH, len(ending.get(best, ())) + 1):
            continue
        longer = sum(number for length, number in lengths.items() if length > width)
        # Ordinary text of that width would have lines just below it as often as at it.
        near = sum(lengths[length] for length in range(width - 4, width))
        if longer * 4 <= len(rows) and len(rows) > near and _is_cut_at(width, lines, ending):
            best = width
    return best


def _is_cut_at(width: int, lines: Sequence[Line], ending: dict[int, dict[str, int]]) -> bool:
    """Tell by the words at their ends that lines of a width go on, and shorter ones do not.

    In a paragraph broken between its words, lines just short of the width go on too.
    """
    kinds = Counter(_kind(lines, index) for index in ending[width].values())
    shorter = (index for less in range(2, _ROOM_FOR_A_WORD) for index in ending.get(width - less, {}).values())
    kinds.update(kind for index in shorter if (kind := _kind(lines, index)) is Break.SPACE)
    return _is_cut(kinds)


def unwrap(lines: Sequence[Line], width: int) -> list[Line]:
    """Join each line of exactly ``width`` characters with the line after it, without a space.

    A terminal puts the rest of a line right below it, so lines are taken in the order of the file.
    The rest has no prefix, or the prefix of the line it continues once more.
    """
    if not width:
        return list(lines)
    full = [index for index, line in enumerate(lines) if width_of(line) == width]
    return _joined(lines, {index for index in full if _kind(lines, index) is not Break.SPACE})


def mend(lines: Sequence[Line]) -> list[Line]:
    """Join lines that were cut inside a word or a number, where too few are to tell a width.

    A run of lines of one length, longer than those round them, and the line below it are one
    paragraph of a terminal's if a word or a number is cut at one of its breaks. Where nothing can
    be told of a run, others of its length tell, if no line of the log is longer.
    """
    runs = list(_runs(lines))
    longest = max(map(width_of, lines), default=0)
    total: Counter[Break] = Counter()
    for run, kinds in runs:
        short = longest - width_of(lines[run[0]])
        if not short or (kinds[Break.SPACE] and 1 < short < _ROOM_FOR_A_WORD):
            total += kinds
    cut: set[int] = set()
    for run, kinds in runs:
        alike = width_of(lines[run[0]]) == longest and not kinds[Break.SPACE] and _is_cut(total)
        if (alike or kinds[Break.CUT]) and _longest_nearby(lines, run):
            cut.update(run)
    return _joined(lines, cut) if cut else list(lines)


def _kind(lines: Sequence[Line], index: int) -> Break:
    return _between(lines[index], lines[index + 1]) if index + 1 < len(lines) else Break.UNKNOWN


def _between(line: Line, below: Line) -> Break:
    kind = kind_of_break(line.body, below.body)
    if _RAISED.match(below.body) and (kind is Break.UNKNOWN or not _IN_NAME.search(line.body, len(line.body) - 1)):
        return Break.SPACE
    return kind


def _is_cut(kinds: Counter[Break]) -> bool:
    return kinds[Break.CUT] > kinds[Break.SPACE]


def give_rest_to_speaker(lines: Sequence[Line]) -> None:
    """Give the bare rows of a wrapped paragraph to the process whose prefix its first row has.

    Text broken at a width is told by its longest row, which is no longer than a terminal is wide,
    and by the word that begins the next row: it would not have found room behind the one above.
    """
    width = max(map(width_of, lines), default=0)
    if not _NARROWEST_TEXT <= width <= _WIDEST:
        return
    for line, below in pairwise(lines):
        if line.stream and not below.prefix.length and not _BEGINS.match(below.body):
            word = below.body.split(None, 1)[:1]
            if word and width_of(line) + 1 + len(word[0]) > width:
                below.stream = line.stream


def width_of(line: Line) -> int:
    """Say how wide the last row of a line was in the terminal, where codes that lost their escape show."""
    raw = line.pieces[-1].raw
    return len(raw) if "\x1b" not in raw and "&" not in raw else len(line.body) + line.prefix.length


def _runs(lines: Sequence[Line]) -> Iterator[tuple[range, Counter[Break]]]:
    """Yield runs of lines of one length that may each go on in the next, and what their breaks are.

    A break that stands for a space is a run of its own.
    """
    first, width, kinds = 0, 0, Counter[Break]()
    for index, (line, below) in enumerate(pairwise(lines)):
        this = width_of(line)
        kind = _between(line, below) if _NARROWEST <= this <= _WIDEST and _may_go_on(line, below) else None
        if kinds and (this != width or kind is None or Break.SPACE in kinds or kind is Break.SPACE):
            yield range(first, index), kinds
            kinds = Counter()
        if kind:
            first = first if kinds else index
            width = this
            kinds[kind] += 1
    if kinds:
        yield range(first, len(lines) - 1), kinds


def _may_go_on(line: Line, below: Line) -> bool:
    return below.body[:2].strip() != "" and _may_be_wrapped(line) and _continues(line, below)


def _longest_nearby(lines: Sequence[Line], run: range) -> bool:
    """Tell whether no line round a run is longer; behind a prefix only its own process counts."""
    width, stream = width_of(lines[run[0]]), lines[run[0] + 1].prefix.stream
    around = lines[max(0, run[0] - _NEIGHBOURS) : run[-1] + 2 + _NEIGHBOURS]
    rows = (piece.raw for line in around if not stream or line.stream == stream for piece in line.pieces)
    return all(len(raw) <= width or len(clean(raw)) <= width for raw in rows)


def _joined(lines: Sequence[Line], cut: set[int]) -> list[Line]:
    """Join each of the lines whose index is given with the line after it."""
    joined: list[Line] = []
    open_line: Line | None = None
    parts = 0
    for index, line in enumerate(lines):
        if open_line is None or not _continues(open_line, line):
            joined.append(line)
            open_line, parts = (line, 1) if index in cut else (None, 0)
            continue
        open_line.pieces.extend(line.pieces)
        base = len(open_line.body)
        open_line.starts.extend((base + start, cleaned) for start, cleaned in line.starts)
        open_line.body += line.body
        parts += 1
        if index not in cut or parts >= _JOINED_AT_MOST:
            open_line = None
    return joined


def _may_be_wrapped(line: Line) -> bool:
    return line.body != "" and not _TABLE_END.search(line.body, len(line.body) - 2)


def _alike(line: Line, below: Line) -> bool:
    """Tell two lines that begin alike: rows of one format, not a line and the rest of it."""
    return line.body[:_BEGINNING] == below.body[:_BEGINNING] != ""


def _continues(first: Line, line: Line) -> bool:
    if first.pieces[-1] is line.pieces[0]:
        return False  # two parts of one row
    if _BEGINS.match(line.body) or _alike(first, line):
        return False
    if not line.prefix.length:
        return True
    if line.prefix.time and line.prefix == first.prefix:
        return True
    same_speaker = line.prefix.stream == first.prefix.stream
    return same_speaker and (not line.prefix.level or line.prefix.place == first.prefix.place != "")
