"""The inverse bill: tile sizes whose buffers add up to exactly the bytes a log prints.

This is arithmetic on a model of the kernel, not the compiler's word: several bills can give the same
figure, and a kernel whose compiler adds scratch space has none that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import msgspec

#: Tiles are powers of two and at least 16, the smallest that ``tl.dot`` takes.
ROWS = (16, 32, 64, 128)
TILES = (16, 32, 64, 128)
STAGES = (1, 2, 3, 4)
HEAD_SIZES = (64, 128, 256, 512)
ELEMENT_SIZES = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}


class Term(msgspec.Struct, frozen=True):
    """One buffer: ``rows x columns`` elements of ``element_bytes``, ``copies`` of it alive at once."""

    name: str
    rows: int
    columns: int
    element_bytes: int
    copies: int = 1

    @property
    def size(self) -> int:
        """Size in bytes, all copies together."""
        return self.rows * self.columns * self.element_bytes * self.copies

    def __str__(self) -> str:
        """Write the term as a product, as a person would check it."""
        copies = f"{self.copies}x" if self.copies > 1 else ""
        return f"{self.name} {copies}{self.rows}x{self.columns}x{self.element_bytes}"


class Bill(msgspec.Struct, frozen=True):
    """Buffers that add up to ``total`` bytes, for these settings of the kernel."""

    terms: tuple[Term, ...]
    total: int
    settings: dict[str, int]

    def __str__(self) -> str:
        """Write the sum of products."""
        return f"{self.total:,} = " + " + ".join(str(term) for term in self.terms)


def padded(head_size: int) -> int:
    """Return the power of two to which attention kernels pad a head size (192 becomes 256)."""
    return 1 << max(4, (head_size - 1).bit_length())


def attention_bill(rows: int, head: int, tile: int, element: int, stages: int = 1, *, turing: bool = False) -> Bill:
    """Bill one attention block: Q stays, K and V have one copy a pipeline stage.

    On NVIDIA cards of capability 7.x (``turing``) the compiler's layout differs, as compiling the
    kernels of vLLM 0.11 to 0.33 for sm_75 shows: 16-bit operands of Q stand twice, and in FP32 with
    a head above 256 K and V take turns in one buffer.

    Args:
        rows: query rows of the block (BLOCK_M).
        head: head size in elements, padded to a power of two.
        tile: keys and values of one step (BLOCK_N or TILE_SIZE).
        element: bytes an element.
        stages: copies of K and V that are alive at once.
        turing: whether the card's compute capability is 7.x.
    """
    queries = Term("Q", rows, head, element, 2 if turing and element < 4 else 1)
    if turing and element == 4 and head > 256:
        terms: tuple[Term, ...] = (queries, Term("K or V", head, tile, element, stages))
    else:
        terms = (
            queries,
            Term("K", head, tile, element, stages),
            Term("V", tile, head, element, stages),
        )
    settings = {
        "BLOCK_M": rows,
        "head_size": head,
        "TILE": tile,
        "element_bytes": element,
        "stages": stages,
    }
    return Bill(terms, sum(term.size for term in terms), settings)


def attention_bills(
    required: int,
    *,
    element_sizes: Sequence[int] = (4, 2, 1),
    head_sizes: Iterable[int] = HEAD_SIZES,
    rows: Sequence[int] = ROWS,
    stages: Sequence[int] = STAGES,
    turing: bool = False,
) -> list[Bill]:
    """Find every attention bill of exactly ``required`` bytes, the plainest first.

    Bills with fewer pipeline copies and smaller query blocks come first: they are the defaults of
    the kernels this is used for. Cards of capability 7.x have no pipeline copies at all.
    """
    heads = sorted({padded(head) for head in head_sizes})
    depths = (1,) if turing else stages
    found = [
        bill
        for element, head, tile, row, stage in product(element_sizes, heads, TILES, rows, depths)
        if (bill := attention_bill(row, head, tile, element, stage, turing=turing)).total == required
    ]
    return sorted(found, key=lambda bill: (bill.settings["stages"], bill.settings["BLOCK_M"]))
