"""The blocks of a report as HTML: what is wide scrolls in a region that has a name and takes the focus."""

from __future__ import annotations

from collections.abc import Callable

from oortriage.report.document import Block, Code, Figure, Items, Paragraph, Table
from oortriage.report.page.markup import Html, join, running, tag
from oortriage.report.page.picture import harmless
from oortriage.report.page.quoted import quoted_lines

#: Cells that are a verdict, and how they are marked; the word itself says it too.
_MARKS = {"passed": "good", "yes": "good", "FAILED": "bad", "no": "bad", "not run": "soft"}

#: Gives a name that no other region of the page has.
Namer = Callable[[str], str]


def block_html(block: Block, named: Namer, title: str) -> Html:
    """Write one block.

    Args:
        block: what to write.
        named: makes names of regions unique.
        title: what a region is called that has no caption.
    """
    if isinstance(block, Paragraph):
        return tag("p", running(block.text))
    if isinstance(block, Items):
        return tag("ol" if block.numbered else "ul", *(tag("li", running(one)) for one in block.items))
    if isinstance(block, Code):
        return _code(block, named, title)
    if isinstance(block, Figure):
        return _figure(block, named)
    return _table(block, named, title)


def _code(block: Code, named: Namer, title: str) -> Html:
    caption = [tag("figcaption", running(block.caption))] if block.caption else []
    lines = quoted_lines(block.text) if block.language == "text" else None
    if lines is not None:
        return tag("figure", *caption, tag("div", lines, class_="log"), class_="code")
    body = tag("pre", tag("code", *(_code_line(line, block.language) for line in block.text.split("\n"))))
    return tag(
        "figure", *caption, scroll(body, named(block.caption or f"{title}: text")), class_=f"code {block.language}"
    )


def _code_line(line: str, language: str) -> Html:
    kind = {"+": "added", "-": "taken", "@": "place"}.get(line[:1]) if language == "diff" else None
    # The break stands inside: a line is copied with it.
    return tag("span", line, "\n", class_=f"row {kind}" if kind else "row")


def _figure(block: Figure, named: Namer) -> Html:
    caption = tag("figcaption", running(block.alt))
    if harmless(block.svg):
        drawing = scroll(Html(block.svg.strip()), named(block.alt))
    else:
        drawing = scroll(tag("pre", tag("code", block.text)), named(block.alt)) if block.text else Html("")
    return tag("figure", drawing, caption, class_="drawing")


def _table(block: Table, named: Namer, title: str) -> Html:
    block = _told(block)
    heads = _row_heads(block)
    caption = tag("caption", block.caption or title, class_=None if block.caption else "hidden")
    head = [tag("th", one, scope="col", class_=_kind(block, at)) if one else tag("td") for at, one in _at(block.head)]
    body = [
        tag("tr", *(_cell(block, at, one, head=at == heads and bool(one)) for at, one in _at(row)))
        for row in block.rows
    ]
    parts = [caption, *([tag("thead", tag("tr", *head))] if any(block.head) else []), tag("tbody", join(body, "\n"))]
    return scroll(tag("table", *parts), named(f"Table: {block.caption or title}"))


def _told(block: Table) -> Table:
    """Leave out the columns in which no row says anything."""
    wide = max((len(row) for row in (block.head, *block.rows)), default=0)
    kept = [at for at in range(wide) if not block.rows or any(row[at] for row in block.rows if at < len(row))]
    rows = [[row[at] for at in kept if at < len(row)] for row in block.rows]
    head = [block.head[at] for at in kept if at < len(block.head)]
    return Table(head, rows, [new for new, at in enumerate(kept) if at in block.numeric], block.caption)


def _at(cells: list[str]) -> list[tuple[int, str]]:
    return list(enumerate(cells))


def _row_heads(block: Table) -> int | None:
    """Tell which column names the row: the first one, or the one after the numbers of the rows."""
    if 0 not in block.numeric:
        return 0
    return 1 if block.head[:1] == ["#"] else None


def _kind(block: Table, at: int) -> str | None:
    return "number" if at in block.numeric else None


def _cell(block: Table, at: int, words: str, *, head: bool) -> Html:
    if head:
        return tag("th", running(words), scope="row", class_=_kind(block, at))
    marked = tag("span", words, class_=f"mark {_MARKS[words]}") if words in _MARKS else running(words)
    return tag("td", marked, class_=_kind(block, at))


def scroll(inside: Html, label: str) -> Html:
    """Let what is wide scroll in a region of its own, which the keyboard reaches and a screen reader names."""
    return tag("div", inside, class_="scroll", role="region", tabindex="0", aria_label=label)
