"""The table under the map of a block's shared memory, and the sum that leads to its total."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from oortriage.ledger.allocation import Ledger, Role, covered
from oortriage.report.draw.layout import Placed
from oortriage.report.draw.memory_words import ROLE_STYLES, reused, shape_words, size_words
from oortriage.report.draw.terminal import cut, cut_front, pad, plain

_HEADS = ("#", "name", "role", "shape x type", "bytes", "offset")
#: Columns that hold text from outside, and how far each may shrink.
_NAME, _SHAPE, _SHRUNK = 1, 3, 6
_RIGHT = frozenset({0, 4, 5})
_GAP = "  "


def table(placed: Sequence[Placed], width: int) -> list[Text]:
    """Write each buffer in a line, its source line and what shares its bytes under it."""
    if not placed:
        return [Text("no buffers"), Text("")]
    rows = [_cells(one) for one in placed]
    widths = [max(cell_len(row[at]) for row in (_HEADS, *rows)) for at in range(len(_HEADS))]
    for at in (_SHAPE, _NAME):
        excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
        widths[at] = max(min(widths[at], _SHRUNK), widths[at] - max(0, excess))
    lines = [Text(_line(_HEADS, widths), style="bold")]
    indent = widths[0] + len(_GAP)
    for one, row in zip(placed, rows, strict=True):
        line = Text(cut(_line(row, widths), width))
        start = sum(widths[:2]) + 2 * len(_GAP)
        line.stylize(ROLE_STYLES.get(one.buffer.role, ""), start, start + len(row[2]))
        lines += [line, *(Text(" " * indent + under, style="dim") for under in _under(one, width - indent))]
    return [*lines, Text("")]


def _cells(one: Placed) -> tuple[str, ...]:
    buffer = one.buffer
    size = size_words(buffer).removesuffix(" B")
    shape = plain(shape_words(buffer), 40)
    return (str(one.number), plain(one.name, 24), plain(buffer.role, 9), shape, size, f"{buffer.offset:,}")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Put cells side by side; shapes and names that are too long are cut, figures never."""
    parts = []
    for at, (text, wide) in enumerate(zip(cells, widths, strict=True)):
        shown = cut(text, wide) if at in {_NAME, _SHAPE} else text
        parts.append(pad(shown, wide, right=at in _RIGHT))
    return _GAP.join(parts)


def _under(one: Placed, width: int) -> list[str]:
    """Tell where a buffer comes from: in one line where it fits, else the place and the code each in its own."""
    buffer = one.buffer
    lines = []
    if buffer.file or buffer.text:
        place = plain(f"{buffer.file}:{buffer.line}" if buffer.file else "")
        code = plain(buffer.text.strip())
        if cell_len(place) + len(_GAP) + cell_len(code) <= width:
            lines.append(_GAP.join(part for part in (place, code) if part))
        else:
            lines += [cut_front(place, width)] if place else []
            lines += [cut(_GAP + code, width)] if code else []
    if buffer.padding:
        lines.append(f"{buffer.padding:,} B of it are padding")
    if not buffer.exact:
        lines.append(cut("at most: only bounded by the space up to the next buffer", width))
    if one.shares:
        lines.append(cut("shares its bytes with " + ", ".join(plain(name, 24) for name in one.shares), width))
    return lines


def bill(ledger: Ledger, limit_bytes: int, width: int) -> list[Text]:
    """Write the sum from the roles to the total, and what the limit leaves; lines of 0 are left out."""
    total, over = ledger.total_bytes, ledger.total_bytes - limit_bytes
    rows: list[tuple[str, int, str, str]] = [
        (role, count, _role_words(ledger, role), ROLE_STYLES[role]) for role, count in ledger.by_role.items()
    ]
    residual = ledger.residual
    between = total - residual - covered(ledger.buffers)
    if between:
        rows.append(("gaps", between, "between buffers", ""))
    if residual:
        rows.append(("residual", residual, _residual_words(residual), "yellow"))
    rows += [
        ("total", total, "what the compiler says the block needs", "bold"),
        ("limit", limit_bytes, "what the hardware gives one block", ""),
        ("over" if over > 0 else "free", abs(over), "", "bold red" if over > 0 else "bold green"),
    ]
    names = max(cell_len(row[0]) for row in rows)
    counts = max(len(f"{row[1]:,}") for row in rows)
    lines: list[Text] = []
    for name, count, note, style in rows:
        if name == "total" and lines:
            lines.append(Text("─" * (names + counts + 4), style="dim"))
        figures = f"{pad(name, names)}{_GAP}{count:>{counts},} B"
        line = Text(cut(f"{figures}{_GAP}{note}", width))
        line.stylize(style, 0, len(figures))
        lines.append(line)
    return lines


def _role_words(ledger: Ledger, role: Role) -> str:
    count = sum(buffer.role == role for buffer in ledger.buffers)
    words, again = f"{count} buffer{'s' * (count != 1)}", reused(ledger, role)
    return f"{words}; another {again:,} B reuse space counted already" if again else words


def _residual_words(residual: int) -> str:
    return "of the total that no buffer reaches" if residual > 0 else "buffers reach past the compiler's total"
