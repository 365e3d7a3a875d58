"""Issue texts: what is prose and what is pasted log, by fences, quotes and indentation."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FENCE = re.compile(r"^\s{0,3}(?:> ?)*(`{3,}|~{3,})(.*)$", re.DOTALL)
_SIGNS = re.compile(r"^\s{0,3}(?:#{1,6} \w|<details|</details|<summary|```|~~~|- \[[ x]\] |\*\*\w|### )")
_LOG_LIKE = re.compile(
    r"^\s*(?:Traceback \(most|File \"|[\w.]+(?:Error|Exception|OutOfResources)\b:|"
    r"(?:\(\w+ |\[\w* ?)?(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)\b|\[?\d{4}-\d\d-\d\d|\(\w+ (?:rank=\d+ )?pid=\d+\)|"
    r"\[rank\d+\]|out of resource: |CUDA out of memory\. Tried|ptxas |nvlink |RuntimeError|ValueError)"
)


def is_markdown(bodies: Sequence[str]) -> bool:
    """Tell an issue text from a log: it has fences or two signs of Markdown structure."""
    head = bodies[:4000]
    fences = sum(1 for body in head if _FENCE.match(body))
    if fences >= 2:
        return True
    return sum(1 for body in head if _SIGNS.match(body)) >= 2 and len(head) < 3000


def prose(bodies: Sequence[str]) -> list[bool]:
    """Mark the lines that are a person's words: outside of fences, and not in the shape of a log."""
    marks: list[bool] = []
    fence = ""
    for body in bodies:
        found = _FENCE.match(body)
        # A fence closes with as many marks as it opened with, and nothing behind them.
        if found and (not fence or (found.group(1).startswith(fence) and not found.group(2).strip())):
            fence = "" if fence else found.group(1)
            marks.append(False)
        else:
            marks.append(not fence and not _LOG_LIKE.match(body) and not body.startswith("    "))
    return marks


_HEADING = re.compile(r"^\s{0,3}(#{1,6})\s+(.*)")
_DOCUMENTS = re.compile(
    r"troubleshoot|\bfaq\b|common (?:errors?|problems?|issues?|pitfalls)|known (?:errors?|problems?|issues?)|"
    r"error messages|how to (?:fix|solve|avoid)|release notes|change ?log|alternatives|motivation and pitch|"
    r"frequently asked",
    re.IGNORECASE,
)


def documentation(bodies: Sequence[str]) -> list[bool]:
    """Mark the sections whose heading says that they document failures, their subsections included."""
    marks: list[bool] = []
    level = 0
    for body in bodies:
        if found := _HEADING.match(body):
            depth = len(found.group(1))
            if _DOCUMENTS.search(found.group(2)):
                level = level if level and level < depth else depth
            elif level and depth <= level:
                level = 0
        marks.append(level > 0)
    return marks
