"""Printed or talked about: a message that a program printed, against a sentence that names one.

Documentation, changelogs, comments, forum answers and help texts quote the same words that logs hold. What
stands in front of the words on their line, and whether the text has the structure of a log at all, tells
them apart.
"""

from __future__ import annotations

import re

from oortriage.evidence.matcher import Match
from oortriage.intake.line import Kind, Line
from oortriage.intake.log import Log

#: The exception's class right in front: the message was raised, whatever the line begins with.
_RAISED_LEAD = re.compile(r"[\w.]*(?:Error|Exception|OutOfResources|Failed): ?$")
#: Words of a program in front of a message it prints.
_PRINTED_LEAD = re.compile(
    r"(?:^|[\s(\"'`>|])(?:[\w.]*(?:Error|Exception|OutOfResources|Warning|Died|exc)\w*\b[:(]?|error|ERROR|"
    r"failed with|raised|WARN|fatal|Exception|Runtime|caused by|Caused by|reason|message|msg|"
    r"terminated|occurred)[^\n]{0,60}$",
)
#: The message is a quoted value: of a ``repr``, an argument, a field of JSON, a label.
_VALUE_LEAD = re.compile(
    r"(?:[(=:\[{,]\s*|\b\w*(?:message|error|reason|because|exception|said|status|detail)\s+)"
    r"\\?[\"'`](?:[\w.]*(?:Error|Exception|OutOfResources): ?)?$",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"\b(?:if you (?:see|get|hit|run into|encounter)|(?:when|if) (?:you|it|vLLM|the \w+) (?:see|gets?|fails?|says?)|"
    r"you (?:may|might|can|will) (?:see|get|meet)|such as|for example|e\.g\.|the reason you|"
    r"to avoid|avoids?|prevents?|fix(?:es|ed)? (?:for|the|an?|OOM)|troubleshoot|see the|documentation|"
    r"docs|refer to|known issue|common (?:error|cause)|similar to|looks like|instead of|"
    r"errors? (?:like|such)|may (?:cause|lead|result|die)|can (?:cause|lead|result)|might|"
    r"in case of|to (?:handle|catch|test|simulate|reproduce)|retry on|asserts?|expects?|"
    r"no more|no longer|without|means)\b",
    re.IGNORECASE,
)
#: A comment behind code, a commit in a list of commits, an entry of a changelog.
_COMMENT = re.compile(r"(?:\S\s+|^\s+)#\s|^\s*(?://|;;|--)\s")
_COMMIT = re.compile(
    r"^\s*(?:[-*•] )?(?:[0-9a-f]{7,40} (?=[A-Za-z])|(?:fix|feat|docs|perf|chore|refactor|test|ci|build|style)"
    r"(?:\([^)\n]{0,40}\))?!?: )"
)
_CHANGE = re.compile(r"^\s*[-*•+] (?:fix|feat|docs|perf|chore|refactor|test|ci|build|style)\b", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CLOSING = re.compile(r"[.\s]{0,2}[\"'`”」]\s")
_PLAIN_WORD = re.compile(r"[(\"'`]?[A-Za-z][A-Za-z'`-]*[.,;:!?)\"'`]*")
_TABLE_BARS = 2
_OPENING = re.compile(r"^[\s>*_-]*[\"'`“「]*$")


def has_structure(log: Log) -> bool:
    """Tell a log from plain prose: frames, levels, times, or exceptions at the beginning of lines."""
    prefixed = 0
    for line in log.lines:
        if line.in_prose or line.in_docs:
            continue
        if line.kind in (Kind.FRAME, Kind.TRACEBACK, Kind.EXCEPTION):
            return True
        prefixed += bool(line.prefix.level or line.prefix.time or line.prefix.stream)
        if prefixed > 1:
            return True
    return False


def is_mention(line: Line, offset: int, match: Match, *, structured: bool) -> bool:
    """Tell a sentence that talks about a message from the message itself.

    Args:
        line: the line the match begins in.
        offset: characters of the line's body in front of it.
        match: the match.
        structured: whether the text has the structure of a log.
    """
    if not match.rule.is_event:
        return False
    if line.in_help or line.in_docs:
        return True
    if line.kind is Kind.EXCEPTION:
        return False
    before = line.body[:offset]
    after = line.body[offset + len(match.text) :] if "\n" not in match.text else ""
    if before.count(" | ") + after.count(" | ") >= _TABLE_BARS:
        # A cell of a table stands alone: what is beside it says nothing about it.
        before, after = before.rpartition("| ")[2], after.partition(" |")[0]
    if _is_annotation(before, after, structured=structured or line.prefix.length > 0):
        return True
    if not structured and _CLOSING.match(after) and (_words(after) > 1 or min(_words(after), _words(before)) > 0):
        return True
    if _VALUE_LEAD.search(before) and not _TALK.search(before):
        return False
    talked = bool(_TALK.search(before))
    if _RAISED_LEAD.search(before) and not (talked or (not structured and _is_sentence(before))):
        return False
    if talked:
        return True
    if not structured and (_is_sentence(before) or (_OPENING.match(before) and before.strip() and _words(after) > 3)):
        return True
    if _PRINTED_LEAD.search(before):
        return False
    if line.in_prose and match.pattern.quality != "exact":
        return bool(_TALK.search(after)) or _words(before) > 3
    if _quote_is_open(before) and _words(before) > 2:
        return True
    # A numberless phrase in the middle of a long sentence is talk more often than not.
    return not match.numbers and _words(before) > 12 and bool(_TALK.search(after))


def _is_annotation(before: str, after: str, *, structured: bool) -> bool:
    """A comment, a commit, a change, or a bullet or table cell with words round the message."""
    if _COMMENT.search(before) or _CHANGE.match(before):
        return True
    if structured:
        return False
    if _BULLET.match(before):
        return _words(_BULLET.sub("", before)) > 2 or _words(after) > 4
    return bool(_COMMIT.match(before)) and before[:1].isalnum() and not _RAISED_LEAD.search(before)


def _is_sentence(before: str) -> bool:
    """Tell running text from a label, a path or a progress bar: plain words, and no colon at the end."""
    lead = _RAISED_LEAD.sub("", before).rstrip(" \"'`")
    tokens = lead.split()
    plain = sum(bool(_PLAIN_WORD.fullmatch(token)) for token in tokens)
    return not lead.endswith((":", "]", "|", "=")) and ((plain > 3 and plain >= 0.7 * len(tokens)) or bool(_cjk(lead)))


def _cjk(text: str) -> int:
    """Words of a script without spaces, at three characters each."""
    return len(_CJK.findall(text)) // 3


def _words(text: str) -> int:
    """Count words; three characters of a script without spaces count as one."""
    return len([word for word in text.split() if any(map(str.isalnum, word))]) + _cjk(text)


def _quote_is_open(before: str) -> bool:
    """Tell whether a text ends inside quotation marks of some kind."""
    return any(before.count(mark) % 2 for mark in ('"', "`")) or bool(re.search(r"(?:^|\s)'[^'\n]{0,60}$", before))
