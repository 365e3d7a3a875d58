"""A report as plain text for a terminal: no colours, nothing that acts."""

from __future__ import annotations

import textwrap

from rich.cells import cell_len

from oortriage.report.document import Block, Code, Document, Figure, Items, Paragraph, Table
from oortriage.report.escape import visible


def plain_text(document: Document, width: int = 80) -> str:
    """Write a report as text; running text is wrapped at ``width`` columns, code and tables are not."""
    title = _line(document.title)
    parts = [f"{title}\n{'=' * min(width, cell_len(title))}"]
    for section in document.sections:
        blocks = [text for block in section.blocks if (text := _block(block, width))]
        parts += ["\n\n".join([_line(section.title).upper(), *blocks])] if blocks else []
    return "\n\n".join(parts) + "\n"


def _block(block: Block, width: int) -> str:
    if isinstance(block, Paragraph):
        return _wrapped(block.text, width)
    if isinstance(block, Items):
        marks = [f"{number}. " if block.numbered else "- " for number in range(1, len(block.items) + 1)]
        return "\n".join(_wrapped(item, width, mark) for mark, item in zip(marks, block.items, strict=True))
    if isinstance(block, Code):
        lines = [f"    {visible(line)}" for line in block.text.splitlines()]
        return "\n".join([*_caption(block.caption), *lines])
    if isinstance(block, Table):
        return "\n".join([*_caption(block.caption), *_table(block)])
    return _figure(block, width)


def _figure(figure: Figure, width: int) -> str:
    drawn = [visible(line) for line in figure.text.splitlines()]
    return "\n".join([_wrapped(figure.alt, width), *drawn])


def _caption(text: str) -> list[str]:
    return [f"{_line(text)}:"] if text else []


def _table(table: Table) -> list[str]:
    rows = [[_line(cell) for cell in row] for row in [table.head, *table.rows]]
    columns = max((len(row) for row in rows), default=0)
    widths = [max((cell_len(row[at]) for row in rows if at < len(row)), default=0) for at in range(columns)]
    lines = []
    for row in rows:
        cells = [
            " " * (widths[at] - cell_len(cell)) + cell
            if at in table.numeric
            else cell + " " * (widths[at] - cell_len(cell))
            for at, cell in enumerate(row)
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return lines if any(table.head) else lines[1:]


def _wrapped(text: str, width: int, mark: str = "") -> str:
    lines = textwrap.wrap(
        _line(text),
        max(20, width),
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)


def _line(text: str) -> str:
    return visible(text).replace("\n", " ").strip()
