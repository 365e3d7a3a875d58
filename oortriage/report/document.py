"""A report as data: sections of paragraphs, lists, tables, code and figures; every format renders the same."""

from __future__ import annotations

from typing import Literal, Union

import msgspec

#: Sections in the order in which a reader wants them.
SectionKey = Literal[
    "verdict",
    "figures",
    "ledger",
    "budget",
    "evidence",
    "experiment",
    "verification",
    "change",
    "will_not_help",
    "environment",
    "reproduce",
    "not_verified",
    "made_with",
]


class Paragraph(msgspec.Struct, frozen=True, tag="paragraph"):
    """Running text, plain: a format escapes it for where it lands."""

    text: str


class Items(msgspec.Struct, frozen=True, tag="items"):
    """A list, numbered or not."""

    items: list[str]
    numbered: bool = False


class Table(msgspec.Struct, frozen=True, tag="table"):
    """A table; ``numeric`` are the columns that are aligned to the right, from 0."""

    head: list[str]
    rows: list[list[str]]
    numeric: list[int] = []
    caption: str = ""


class Code(msgspec.Struct, frozen=True, tag="code"):
    """Text that is shown as it is: lines of a log, a command to copy."""

    text: str
    caption: str = ""
    language: Literal["text", "shell", "diff"] = "text"


class Figure(msgspec.Struct, frozen=True, tag="figure"):
    """A drawing as SVG; ``alt`` says in words what it shows; ``text`` is the same drawing in characters.

    Formats that show pictures need no ``text``; it is for those without.
    """

    svg: str
    alt: str
    text: str = ""


Block = Union[Paragraph, Items, Table, Code, Figure]  # noqa: UP007 (msgspec on Python 3.10 reads this form)


class Section(msgspec.Struct, frozen=True):
    """A part of the report. ``importance``: 0 is never cut; the highest goes first where room is short."""

    key: SectionKey
    title: str
    blocks: list[Block]
    importance: int = 0


class Document(msgspec.Struct, frozen=True):
    """A whole report. ``title`` fits the title of an issue; ``verdict`` is one sentence."""

    title: str
    verdict: str
    sections: list[Section]
