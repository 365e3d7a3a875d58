"""What stands at a line break: a word or a number cut in two, a space that was dropped, or neither."""

from __future__ import annotations

import re
from enum import Enum

from oortriage.intake.words import WORDS


class Break(Enum):
    """What the two sides of a line break say of it."""

    #: The text goes on without a space: a terminal cut it at its width.
    CUT = "cut"
    #: Two words: a paragraph broken where a space was, or two lines that have nothing in common.
    SPACE = "space"
    UNKNOWN = "unknown"


#: How much of either side is looked at.
_REACH = 40
_CUT_NUMBER = re.compile(r"\d\.?$|(?:^|\W)-$")
_REST_OF_NUMBER = re.compile(r"\.?\d")
_LAST_WORD = re.compile(r"(?P<alone>(?:^|[\s(\"'`]))?(?P<word>[A-Za-z]+)$")
_FIRST_WORD = re.compile(r"(?P<word>[A-Za-z]+)(?P<alone>(?!\w))?")
#: No line is printed that begins so; list items, paths, options and rulers begin otherwise.
_GOES_ON = re.compile(r"[,;:%](?:[ \w]|$)|\.(?:[ \w]|$)|=\w| [a-z0-9(`\"']")
#: What needs something behind it, and with a small letter or a figure behind it a dotted name or a kept space.
_OPEN_END = re.compile(r"[_=(\[/]$|\.(?:py|cc|cpp|cu|rs):$")
_HALF_OPEN_END = re.compile(r"[._]\w+\.$|\S $")
#: A path, and a name of a folder or file.
_IN_PATH = re.compile(r"/[\w.-]*$")
_REST_OF_PATH = re.compile(r"[\w-]*(?:/\w|\.[a-z]{1,4}\b)")
#: What stands before the last part of a word like ``OutOfRes``.
_HUMP = re.compile(r".*[a-z](?=[A-Z])")
#: Ends of words that are none themselves.
_ENDINGS = frozenset(("ation", "ed", "er", "ers", "es", "ing", "ings", "ity", "ized", "ly", "ment", "s", "tion"))


def kind_of_break(above: str, below: str) -> Break:
    """Judge the break between two lines by the last token of the one and the first of the other."""
    tail, head = above[-_REACH:], below[:_REACH]
    if _CUT_NUMBER.search(tail) and _REST_OF_NUMBER.match(head):
        return Break.SPACE if _shape(above) == _shape(below) else Break.CUT
    if _IN_PATH.search(tail) and _REST_OF_PATH.match(head):
        return Break.CUT
    last, first = _LAST_WORD.search(tail), _FIRST_WORD.match(head)
    if last and first:
        return _between_letters(last, first)
    if _GOES_ON.match(head) or (head[:1].isalnum() and _OPEN_END.search(tail)):
        return Break.CUT
    if head[:1].isalnum() and not head[:1].isupper() and _HALF_OPEN_END.search(tail):
        return Break.CUT
    if last:
        return _behind_word(last, above, head[:1])
    if first and _is_word(first):
        # A point may stand within a name: triton.runtime.errors.
        spaced = first["word"].istitle() if tail[-1:] == "." else tail[-1:].isdigit() or tail[-1:] in ",;:!?)]"
        return Break.SPACE if spaced else Break.UNKNOWN
    return Break.UNKNOWN


def _between_letters(last: re.Match[str], first: re.Match[str]) -> Break:
    both = _is_word(last) and _is_word(first)
    hump = _HUMP.sub("", last["word"])
    whole = any((part + first["word"]).lower() in WORDS for part in (last["word"], hump))
    alone = last["alone"] is not None and first["alone"] is not None
    if whole or (first["word"] in _ENDINGS and first["alone"] is not None):
        return Break.UNKNOWN if both else Break.CUT
    return Break.SPACE if both and alone else Break.UNKNOWN


def _behind_word(last: re.Match[str], above: str, head: str) -> Break:
    """Judge a word that something else than a letter follows."""
    whole = last["alone"] is not None and _is_word(last)
    if head == "_":
        return Break.UNKNOWN if whole else Break.CUT
    if head == ")":
        return Break.CUT if above.count("(") > above.count(")") else Break.UNKNOWN
    return Break.SPACE if whole and head.isdigit() else Break.UNKNOWN


def _is_word(found: re.Match[str]) -> bool:
    return found["word"].lower() in WORDS


def _shape(text: str) -> str:
    """The beginning of a line with every figure alike, the same for two rows of one table."""
    return re.sub(r"[\d.]+", "0", text[:24])
