"""Lines of a log as the report quotes them (``file:line: text``), with the numbers in a margin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from oortriage.report.page.markup import Html, join, tag, text

_QUOTED = re.compile(r"(.*?):(\d+): (.*)", re.DOTALL)


def quoted_lines(code: str) -> Html | None:
    """Lay quoted lines out under the name of their file; None where a line is no quotation."""
    found = [_QUOTED.fullmatch(line) for line in code.split("\n")]
    if not all(found):
        return None
    told = [(one[1], one[2], one[3]) for one in found if one]
    return join(_files(told))


def _files(told: list[tuple[str, str, str]]) -> Iterator[Html]:
    for file, lines in groupby(told, key=lambda one: one[0]):
        rows = [
            tag(
                "div",
                # Not only beside it but before it: so it is heard, and read where no style is.
                tag("span", tag("span", "line ", class_="hidden"), number, class_="number"),
                tag("code", line),
                class_="line",
            )
            for _, number, line in lines
        ]
        yield tag("p", text(file), class_="file")
        yield tag("div", *rows, class_="lines")
