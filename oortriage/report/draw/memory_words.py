"""Words about buffers that the map, its table and the SVG share."""

from __future__ import annotations

from oortriage.ledger.allocation import Buffer, Ledger, Role
from oortriage.report.draw.layout import Placed

#: Colours of a terminal by role; red is kept for what is over the limit.
ROLE_STYLES: dict[Role, str] = {"operand": "cyan", "pipeline": "yellow", "scratch": "green", "barrier": "magenta"}

STRETCHED = "small buffers are drawn wider than they are"


def size_words(buffer: Buffer) -> str:
    """Tell a buffer's bytes, and whether they are a bound."""
    return f"{'' if buffer.exact else 'at most '}{buffer.bytes:,} B"


def shape_words(buffer: Buffer) -> str:
    """Tell copies, shape and type: ``3 x 32x64xf32``."""
    one = "x".join([*(str(side) for side in buffer.shape), buffer.dtype])
    return f"{buffer.copies} x {one}" if buffer.copies != 1 else one


def verdict_words(ledger: Ledger, limit_bytes: int) -> str:
    """Tell need and limit, and by how much one is over the other."""
    over = ledger.total_bytes - limit_bytes
    verdict = f"{over:,} B over the limit" if over > 0 else f"fits with {-over:,} B free"
    return f"{ledger.total_bytes:,} B needed, limit {limit_bytes:,} B: {verdict}"


def reused(ledger: Ledger, role: Role) -> int:
    """Tell how many bytes of a role's buffers stand where bytes are counted already."""
    return sum(buffer.bytes for buffer in ledger.buffers if buffer.role == role) - ledger.by_role.get(role, 0)


def placed_words(placed: Placed) -> str:
    """Tell all there is to know of a buffer in one sentence."""
    buffer = placed.buffer
    parts = [
        f"{placed.name}: {size_words(buffer)} at offset {buffer.offset:,}",
        f"{buffer.role}, {shape_words(buffer)}" + (f", {buffer.padding:,} B of it padding" if buffer.padding else ""),
    ]
    if buffer.file:
        parts.append(f"{buffer.file}:{buffer.line} {buffer.text.strip()}".rstrip())
    if placed.shares:
        parts.append("shares its bytes with " + ", ".join(placed.shares))
    return "; ".join(parts)
