"""What the bytes are made of: the compiler's own allocation, or the arithmetic where nothing was compiled."""

from __future__ import annotations

from oortriage.ledger.allocation import Buffer
from oortriage.replay.reproduce import Reproduction
from oortriage.report._interface import Style
from oortriage.report.document import Block, Figure, Items, Paragraph, Table
from oortriage.report.draw.layout import Placed, place
from oortriage.report.draw.memory_map import memory_map_svg, memory_map_text
from oortriage.report.draw.memory_words import shape_words, size_words, verdict_words
from oortriage.report.material import Material
from oortriage.report.replay import reproduction_lines
from oortriage.triage.diagnosis import BillView

#: Columns of a drawing in characters: a page's code is about as wide.
PLAIN = Style(width=100)


def ledger_blocks(material: Material) -> list[Block]:
    """Show the ledger as a picture and a table; a bill stands in where no kernel was compiled."""
    blocks: list[Block] = []
    result = material.reproduction
    if result:
        first, *rest = reproduction_lines(result)
        blocks.append(Paragraph(first))
        blocks += _compiled(result) if result.buffers else []
        blocks.append(Items(rest))
    if not result or not result.buffers:
        for bill in (material.diagnosis.compiled_bill, material.diagnosis.bill):
            blocks += _bill(bill) if bill else []
    return blocks


def _compiled(result: Reproduction) -> list[Block]:
    ledger, limit = result.ledger, result.limit_bytes
    rows = [_row(one) for one in place(ledger)]
    rows += [["", "gaps: no buffer stands there", "", "", f"{ledger.gaps:,} B", "", ""]] if ledger.gaps else []
    rows.append(["", "what the compiler says the block needs", "", "", f"{ledger.total_bytes:,} B", "", ""])
    return [
        Figure(
            memory_map_svg(ledger, limit),
            f"Shared memory of one block: {verdict_words(ledger, limit)}.",
            memory_map_text(ledger, limit, PLAIN),
        ),
        Table(["#", "buffer", "role", "shape x type", "bytes", "offset", "source"], rows, numeric=[0, 4, 5]),
    ]


def _row(one: Placed) -> list[str]:
    buffer = one.buffer
    shares = f" (shares its bytes with {', '.join(one.shares)})" if one.shares else ""
    return [
        str(one.number),
        one.name + shares,
        buffer.role,
        shape_words(buffer),
        size_words(buffer),
        f"{buffer.offset:,}",
        _source(buffer),
    ]


def _source(buffer: Buffer) -> str:
    return f"{buffer.file}:{buffer.line} {buffer.text.strip()}".rstrip() if buffer.file else ""


def _bill(bill: BillView) -> list[Block]:
    rows = [[term.expression, f"{term.bytes:,}"] for term in bill.terms]
    blocks: list[Block] = [Paragraph(bill.note)] if bill.note else []
    return [*blocks, Table(["buffer", "bytes"], [*rows, ["sum", f"{bill.total_bytes:,}"]], numeric=[1])]
