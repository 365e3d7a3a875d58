"""Ledgers and experiments to draw: the one of vLLM's issue 36802, and ones made of anything."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import get_args

from hypothesis import strategies as st

from oortriage.ledger.allocation import Buffer, Ledger, Role
from oortriage.report.draw.heat_map import Cell
from tests.report._made import hostile

FILE = "vllm/attention/ops/triton_unified_attention.py"
#: The attention kernel of the issue on a T4: float32, head size 256, limit 65,536 bytes.
ISSUE = Ledger(
    buffers=(
        Buffer("K", "operand", "ttg.local_alloc", (256, 32), "f32", 32_768, 0, FILE, 214, 13,
               "        K_load = tl.load(key_cache_ptr + k_offset, mask=dim_mask[:, None] & tile_mask[None, :], other=0.0)",
               shares_with=("P",)),
        Buffer("V", "operand", "ttg.local_alloc", (32, 256), "f32", 32_768, 32_768, FILE, 231, 13,
               "        V_load = tl.load(value_cache_ptr + v_offset, mask=dim_mask[None, :], other=0.0)"),
        Buffer("Q", "operand", "ttg.local_alloc", (16, 256), "f32", 16_384, 65_536, FILE, 150, 9,
               "    Q = tl.load(query_ptr + query_offset)"),
        Buffer("P", "operand", "ttg.local_alloc", (16, 32), "f32", 2_048, 0, FILE, 300, 13,
               "        acc += tl.dot(P.to(V.dtype), V)", shares_with=("K",)),
    ),
    total_bytes=81_920,
)  # fmt: skip
LIMIT = 65_536

#: A pipelined kernel with everything: copies, padding, a bound, barriers, a gap and a residual.
FULL = Ledger(
    buffers=(
        Buffer("q", "operand", "ttg.local_alloc", (128, 128), "bf16", 32_768, 0, FILE, 20, 5, "q = tl.load(q_ptr)"),
        Buffer("k", "pipeline", "ttg.local_alloc", (128, 64), "bf16", 49_152, 32_768, FILE, 30, 9, "k = tl.load(k_ptr)", copies=3),
        Buffer("v", "pipeline", "ttg.local_alloc", (64, 128), "bf16", 49_920, 81_920, FILE, 31, 9, "v = tl.load(v_ptr)", copies=3, padding=768),
        Buffer("", "scratch", "ttg.convert_layout", (128,), "f32", 4_096, 0, shares_with=("q",), exact=False),
        *(Buffer("", "barrier", "ttng.init_barrier", (1,), "i64", 8, 131_848 + 8 * at) for at in range(4)),
    ),
    total_bytes=131_896,
)  # fmt: skip

names = (
    hostile | st.text(max_size=60) | st.sampled_from(["K", "]]>", "<script>alert(1)</script>", "\ud800", "é\u0301" * 9])
)
counts = st.integers(0, 2**31) | st.integers(0, 70_000) | st.sampled_from([0, 8, 65_536])
buffers = st.builds(
    Buffer,
    name=names,
    role=st.sampled_from(get_args(Role)),
    op=names,
    shape=st.lists(st.integers(0, 2**20), max_size=5).map(tuple),
    dtype=st.sampled_from(["f32", "bf16"]) | names,
    bytes=counts,
    offset=counts,
    file=names,
    line=st.integers(0, 10**6),
    text=names,
    copies=st.integers(1, 5),
    padding=st.integers(0, 99),
    shares_with=st.lists(names, max_size=3).map(tuple),
    exact=st.booleans(),
)
ledgers = st.builds(Ledger, st.lists(buffers, max_size=12).map(tuple), counts)

factor_names = st.sampled_from(["num_stages", "TILE", "num_warps"]) | names
cells = st.builds(
    Cell,
    settings=st.dictionaries(factor_names, st.integers(-9, 9) | names, max_size=4),
    required_bytes=st.none() | counts,
    fits=st.none() | st.booleans(),
    note=st.just("") | names,
)


def grid(stages: tuple[int, ...], tiles: tuple[int, ...], warps: tuple[int, ...] = (4,)) -> list[Cell]:
    """Make an experiment in which bytes grow with stages and tile, with one cell noted and one failed."""
    made = []
    for warp in warps:
        for stage in stages:
            for tile in tiles:
                settings = {"num_stages": stage, "TILE_SIZE": tile, "num_warps": warp}
                need = 16_384 + 1_024 * stage * tile
                if (stage, tile) == (stages[-1], tiles[-1]):
                    made.append(Cell(settings, None, None, "does not compile"))
                else:
                    note = "spills 1,932 B" if (stage, tile) == (stages[0], tiles[-1]) else ""
                    made.append(Cell(settings, need, need <= LIMIT, note))
    return made


def parsed(picture: str) -> ET.Element:
    """Read a picture as XML, having looked for what must never stand in one."""
    assert "<script" not in picture.lower()
    assert "javascript:" not in picture.lower()
    assert not [char for char in picture if not char.isprintable() and char != "\n"]
    picture.encode()
    return ET.fromstring(picture)


def texts(root: ET.Element, tag: str = "text") -> list[str]:
    """List what the elements of a kind say, in order."""
    return ["".join(one.itertext()) for one in root.iter(f"{{http://www.w3.org/2000/svg}}{tag}")]
