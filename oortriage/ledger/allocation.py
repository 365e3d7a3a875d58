"""The exact ledger of one block's shared memory, as a compiler allocated it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import msgspec

Role = Literal["operand", "pipeline", "scratch", "barrier"]


class Buffer(msgspec.Struct, frozen=True):
    """One stretch of shared memory: ``bytes`` at ``offset`` (both in bytes), and what stands there.

    ``role``: an ``operand`` a matrix instruction reads, a ``pipeline`` buffer with one copy a stage,
    ``scratch`` by which a layout conversion or reduction hands values between threads, or a
    ``barrier``. ``shape`` and ``dtype`` are of the tensor (``dtype`` as the compiler writes it:
    ``f32``, ``bf16``, ``i8``); ``copies`` of it lie one behind the other. ``name`` is the Python
    variable where it is known. ``file``, ``line`` and ``column`` (1-based) say which source line made
    it, ``text`` is that line. ``shares_with`` names the buffers that stand in the same bytes at other
    times. ``exact`` is false where the size could only be bounded by the space up to the next buffer.
    """

    name: str
    role: Role
    op: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    offset: int
    file: str = ""
    line: int = 0
    column: int = 0
    text: str = ""
    copies: int = 1
    padding: int = 0
    shares_with: tuple[str, ...] = ()
    exact: bool = True

    @property
    def end(self) -> int:
        """The first byte behind the buffer."""
        return self.offset + self.bytes


class Ledger(msgspec.Struct, frozen=True):
    """All buffers of one block; ``total_bytes`` is what the compiler says the block needs."""

    buffers: tuple[Buffer, ...]
    total_bytes: int

    @property
    def residual(self) -> int:
        """Bytes of the total that no buffer reaches; shown, never hidden."""
        return self.total_bytes - max((buffer.end for buffer in self.buffers), default=0)

    @property
    def by_role(self) -> dict[Role, int]:
        """Bytes by role, each byte counted once: scratch that reuses an operand's space adds nothing.

        The sum is the total less :attr:`gaps`.
        """
        sums: dict[Role, int] = {}
        before: list[Buffer] = []
        for role in get_args(Role):
            own = [buffer for buffer in self.buffers if buffer.role == role]
            if own:
                sums[role] = covered([*before, *own]) - covered(before)
                before += own
        return sums

    @property
    def gaps(self) -> int:
        """Bytes of the total in which no buffer stands: alignment, and the :attr:`residual`."""
        return self.total_bytes - covered(self.buffers)


def covered(buffers: Iterable[Buffer]) -> int:
    """Count the bytes that at least one of the buffers stands in."""
    total, reached = 0, 0
    for buffer in sorted(buffers, key=lambda one: one.offset):
        total += max(0, buffer.end - max(reached, buffer.offset))
        reached = max(reached, buffer.end)
    return total


def overlaps(one: Buffer, other: Buffer) -> bool:
    """Tell whether two buffers stand in the same bytes (and so are never alive together)."""
    return one.offset < other.end and other.offset < one.end
