"""A report as GitHub-flavoured Markdown that fits into an issue or a comment, whatever it is made of."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from oortriage.report.document import Document, Section
from oortriage.report.escape import markdown, paragraph, shorten
from oortriage.report.issue_parts import Part, length, longest_field, parts_of

#: What GitHub takes, in characters.
LIMIT = 65_536
#: Characters of one field before it is escaped, and of a heading.
_FIELD, _HEADING = 2_000, 200
#: Kept free under the limit, and for the note of what was cut.
_MARGIN, _NOTE = 256, 640
#: Of the room, what one section may take before all others had theirs: 1 of so many parts.
_SHARE = 8
#: Characters that stay open in a section; the rest is folded. Sections that are not named fold after _OPEN.
_OPEN = 1_500
_OPENED = {"ledger": 6_000, "evidence": 3_000}
_NEVER_FOLDED = frozenset({"verdict", "figures", "change", "not_verified", "made_with"})
_FOLD, _UNFOLD = "<details>\n<summary>More of this section</summary>", "</details>"
_BETWEEN = "\n\n"
_MORE = "*{count:,} more {what}{s} cut.*"
#: A field is shortened to no less, in characters.
_LEAST_FIELD = 40


class Cut(msgspec.Struct, frozen=True):
    """The text, and what was cut of it, in words; nothing where all of it is there."""

    text: str
    cut: list[str]


def issue_markdown(document: Document, limit: int = LIMIT) -> Cut:
    """Write a report for GitHub, always under a limit.

    What is less important goes first: sections, then blocks, then rows and lines, each whole. Only a paragraph or a
    line of code of which nothing else would be left is shortened. Nothing in the document acts: no mention, no link,
    no HTML but the blocks that fold.

    Args:
        document: the report.
        limit: characters; the text has fewer, also where line breaks count twice.
    """
    room = limit - min(_MARGIN, max(0, limit // 16))
    title = f"## {markdown(shorten(document.title, _HEADING)).strip()}"
    writers = [_Writer(section, limit) for section in document.sections]
    cut = [note for one in writers for note in one.shortened]
    whole = _joined([title, *(one.whole for one in writers), _note(cut)])
    if length(whole) < room:
        return Cut(whole, cut)
    rooms = _rooms(writers, room - min(_NOTE, room // 8) - length(title))
    texts: list[str] = []
    for one, given in zip(writers, rooms, strict=True):
        text, gone = one.within(given)
        texts.append(text)
        cut += gone
    text = _joined([title, *texts, _note(cut)])
    if length(text) < limit:
        return Cut(text, cut)
    return Cut(_least(document, limit), [*cut, "all but the title"])


def _rooms(writers: Sequence[_Writer], room: int) -> list[int]:
    """Deal out the room by importance: first a share each, so that one giant section leaves the others theirs."""
    given = [0] * len(writers)
    order = sorted(range(len(writers)), key=lambda at: writers[at].importance)
    left = max(0, room)
    for share in (room // _SHARE, room):
        for at in order:
            most = writers[at].need if share == room or not writers[at].importance else min(writers[at].need, share)
            more = max(0, min(left, most - given[at]))
            given[at] += more
            left -= more
    return given


def _note(cut: Sequence[str]) -> str:
    if not cut:
        return ""
    note = f"*Cut to fit: {markdown(shorten('; '.join(cut), _NOTE // 2)).strip()}.*"
    return note if length(note) <= _NOTE else "*Cut to fit.*"


def _joined(texts: Sequence[str]) -> str:
    return _BETWEEN.join(text for text in texts if text) + "\n"


def _least(document: Document, limit: int) -> str:
    """Write as much of the title as there is room for, and nothing where there is none."""
    for size in (_HEADING, 80, 20, 8, 4):
        text = paragraph(shorten(document.title, size))
        if length(text) < limit:
            return text
    return ""


class _Writer:
    """One section, rendered once; it can be had whole or within a room."""

    def __init__(self, section: Section, limit: int) -> None:
        self.importance = section.importance
        self._key = section.key
        self._title = shorten(section.title, _HEADING)
        self._limit = max(1, limit)
        rendered = [(block, parts_of(block, self._limit, _FIELD)) for block in section.blocks]
        self._parts = [part for _, parts in rendered for part in parts]
        self._from = [(block, at) for block, parts in rendered for at in range(len(parts))]
        longest = max((longest_field(block) for block in section.blocks), default=0)
        self.shortened = [f"{self._title}: what is longer than {_FIELD:,} characters"] if longest > _FIELD else []
        texts = [part.text(len(part.rows)) + _left(part, len(part.rows)) for part in self._parts]
        self.whole = self._laid_out(texts)
        # What goes between this section and the one before is counted with it.
        self.need = length(self.whole) + length(_BETWEEN) if self.whole else 0

    def within(self, room: int) -> tuple[str, list[str]]:
        """Return the section in fewer characters than ``room``, and what was cut of it."""
        if self.need <= room:
            return self.whole, []
        left = room - length(self._laid_out(["x"])) - length(_FOLD + _UNFOLD + _BETWEEN * 4)
        texts: list[str] = []
        gone: list[str] = []
        for at, part in enumerate(self._parts):
            text, rows = _fitting(part, left)
            if not text and part.flows:
                text, rows = self._shorter(at, left)
            if text:
                texts.append(text)
                left -= length(text) + length(_BETWEEN)
            if rows < len(part.rows) + part.left:
                after = len(self._parts) - at - 1
                gone += [f"{self._title}: {len(part.rows) + part.left - rows:,} {part.what}s"] if text else []
                count = after + (not text)
                gone += [f"{self._title}: {count} block{'s' * (count != 1)}"] if count and texts else []
                break
        if not texts:
            return "", [f"{self._title}: all of it"]
        return self._laid_out(texts), gone

    def _shorter(self, at: int, room: int) -> tuple[str, int]:
        """Return the first row of a part, shortened until it fits, or nothing."""
        block, index = self._from[at]
        for longest in (room // 10, _LEAST_FIELD):
            parts = parts_of(block, 1, longest) if longest >= _LEAST_FIELD else []
            if index < len(parts) and length(text := parts[index].text(1) + _left(parts[index], 1)) <= room:
                return text, 1
        return "", 0

    def _laid_out(self, texts: Sequence[str]) -> str:
        """Put blocks under their heading; what goes beyond the section's open part is folded."""
        if not texts:
            return ""
        head = [] if self._key == "verdict" else [f"### {markdown(self._title).strip()}"]
        if self._key in _NEVER_FOLDED:
            return _BETWEEN.join([*head, *texts])
        most, used, opened = _OPENED.get(self._key, _OPEN), 0, 0
        for text in texts:
            used += length(text)
            if used > most:
                break
            opened += 1
        if opened == len(texts):
            return _BETWEEN.join([*head, *texts])
        return _BETWEEN.join([*head, *texts[:opened], _FOLD, *texts[opened:], _UNFOLD])


def _fitting(part: Part, room: int) -> tuple[str, int]:
    """Return as many rows of a part as fit, with a note of those that do not, and their number."""
    whole = part.text(len(part.rows)) + _left(part, len(part.rows))
    if length(whole) <= room:
        return whole, len(part.rows)
    used = length(part.text(0)) + length(_left(part, 0)) + 2
    count = 0
    for row in part.rows:
        used += length(row) + 2
        if used > room:
            break
        count += 1
    if count:
        return part.text(count) + _left(part, count), count
    return "", 0


def _left(part: Part, count: int) -> str:
    """Say how many rows are not there."""
    gone = len(part.rows) + part.left - count
    if not gone:
        return ""
    return _BETWEEN + _MORE.format(count=gone, what=part.what, s="s are" if gone != 1 else " is")
