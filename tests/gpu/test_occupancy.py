"""Blocks on a multiprocessor, against NVIDIA's own calculator and against what must always hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.gpu.occupancy import occupancy
from oortriage.gpu.specs import ARCHITECTURES, Architecture, by_capability

# Printed by cudaOccMaxActiveBlocksPerMultiprocessor of cuda_occupancy.h (version 12.1) with all of the L1
# given to shared memory: architecture, shared bytes, threads, registers, active blocks, and the limits by
# shared memory, registers, warps and blocks.
CALCULATOR = [
    ("6.0", 0, 384, 135, 1, (None, 1, 5, 32)),
    # Two sub-cores could hold it; refused because the four of 6.1 could not.
    ("6.0", 0, 394, 135, 0, (None, 0, 4, 32)),
    ("6.0", 49152, 128, 32, 1, (1, 16, 16, 32)),
    ("6.0", 1024, 1024, 64, 1, (64, 1, 2, 32)),
    ("7.0", 0, 394, 135, 0, (None, 0, 4, 32)),
    ("7.0", 1024, 1024, 64, 1, (96, 1, 2, 32)),
    ("7.0", 0, 64, 255, 4, (None, 4, 32, 32)),
    ("7.0", 1, 32, 32, 32, (384, 64, 64, 32)),
    ("7.5", 0, 394, 135, 0, (None, 0, 2, 16)),
    ("7.5", 0, 384, 135, 1, (None, 1, 2, 16)),
    ("7.5", 0, 64, 255, 4, (None, 4, 16, 16)),
    ("7.5", 65536, 128, 168, 1, (1, 3, 8, 16)),
    ("8.0", 0, 384, 135, 1, (164, 1, 5, 32)),
    ("8.0", 1024, 1024, 65, 0, (82, 0, 2, 32)),
    ("8.0", 65536, 128, 168, 2, (2, 3, 16, 32)),
    ("8.6", 65536, 128, 168, 1, (1, 3, 12, 16)),
    ("8.6", 1, 32, 32, 16, (88, 64, 48, 16)),
    ("8.6", 1024, 1024, 64, 1, (50, 1, 1, 16)),
    ("8.9", 101376, 128, 32, 1, (1, 16, 12, 24)),
    ("8.9", 1, 32, 32, 24, (88, 64, 48, 24)),
    ("9.0", 49152, 256, 64, 4, (4, 4, 8, 32)),
    ("9.0", 65536, 128, 168, 3, (3, 3, 16, 32)),
    ("11.0", 1024, 1024, 64, 1, (114, 1, 1, 24)),
    ("11.0", 232448, 128, 32, 1, (1, 16, 12, 24)),
    ("11.0", 1, 32, 32, 24, (202, 64, 48, 24)),
    ("12.0", 0, 384, 135, 1, (100, 1, 4, 24)),
    ("12.0", 16384, 96, 40, 5, (5, 16, 16, 24)),
    ("12.0", 1024, 1024, 65, 0, (50, 0, 1, 24)),
]


def named(name: str) -> Architecture:
    one = by_capability(name)
    assert one
    return one


@pytest.mark.parametrize(("name", "shared", "threads", "registers", "blocks", "limits"), CALCULATOR)
def test_nvidia_counts_agree_with_nvidias_calculator(
    name: str, shared: int, threads: int, registers: int, blocks: int, limits: tuple[int | None, ...]
) -> None:
    found = occupancy(named(name), shared_bytes=shared, threads=threads, registers=registers)
    assert found.blocks == blocks
    assert (found.by_shared_memory, found.by_registers, found.by_threads, found.by_blocks) == limits


# By hand from LLVM's formulas. gfx942: 512 registers a lane and SIMD in steps of 8, 8 waves a SIMD.
@pytest.mark.parametrize(
    ("name", "shared", "threads", "registers", "blocks", "limiters"),
    [
        # 512 // 128 = 4 waves a SIMD, 16 a CU, 4 blocks of 4 waves; LDS 65,536 // 32,768 = 2.
        ("gfx942", 32768, 256, 128, 2, ("shared_memory",)),
        ("gfx942", 0, 256, 128, 4, ("registers",)),
        # 129 registers round up to 136: 3 waves a SIMD.
        ("gfx942", 0, 256, 129, 3, ("registers",)),
        ("gfx942", 0, 1024, 128, 1, ("registers",)),
        ("gfx942", 0, 1024, 129, 0, ("registers",)),
        # 16 barriers stop blocks of two waves at 16; a single wave needs none.
        ("gfx942", 0, 128, 16, 16, ("threads", "blocks")),
        ("gfx942", 0, 64, 16, 32, ("threads", "blocks")),
        # 1,280 bytes a unit: 33,280 = 26 units; 163,840 // 33,280 = 4.
        ("gfx950", 32001, 256, 32, 4, ("shared_memory",)),
        # 128 KiB a work-group processor, 64 KiB the most a block may have: two always fit.
        ("gfx1100", 65536, 128, 32, 2, ("shared_memory",)),
        # 1,536 registers a lane in steps of 24: 97 round up to 120, 12 waves a SIMD, 48 in all.
        ("gfx1100", 0, 256, 97, 6, ("registers",)),
        # 1,024 in steps of 16: 97 round up to 112, 9 waves a SIMD, 36 in all.
        ("gfx1102", 0, 256, 97, 4, ("registers",)),
        ("gfx908", 0, 256, 24, 10, ("registers", "threads")),
    ],
)
def test_amd_counts_follow_llvm(
    name: str, shared: int, threads: int, registers: int, blocks: int, limiters: tuple[str, ...]
) -> None:
    found = occupancy(named(name), shared_bytes=shared, threads=threads, registers=registers)
    assert found.blocks == blocks
    assert found.limiters == limiters
    assert found.limiter == limiters[0]


def test_what_a_block_may_not_have_leaves_none() -> None:
    one = named("7.5")
    for shared, threads, registers, limiter in [
        (65537, 128, 32, "shared_memory"),
        (0, 1025, 32, "threads"),
        (0, 128, 256, "registers"),
    ]:
        found = occupancy(one, shared_bytes=shared, threads=threads, registers=registers)
        assert found.blocks == found.warps == found.fraction == 0
        assert limiter in found.limiters


def test_registers_may_be_unknown() -> None:
    found = occupancy(named("7.5"), shared_bytes=32768, threads=128, registers=0)
    assert found.by_registers is None
    assert found.blocks == 2
    assert found.warps == 8
    assert found.fraction == 0.25


@pytest.mark.parametrize(
    "figures",
    [
        {"shared_bytes": -1, "threads": 32, "registers": 1},
        {"shared_bytes": 0, "threads": 0, "registers": 1},
        {"shared_bytes": 0, "threads": 32, "registers": -1},
    ],
)
def test_impossible_figures_are_refused(figures: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="or more"):
        occupancy(named("8.0"), **figures)


@given(
    st.sampled_from(ARCHITECTURES),
    st.integers(0, 300_000),
    st.integers(1, 1200),
    st.integers(0, 600),
)
def test_what_is_resident_fits(one: Architecture, shared: int, threads: int, registers: int) -> None:
    found = occupancy(one, shared_bytes=shared, threads=threads, registers=registers)
    assert 0 <= found.fraction <= 1
    assert found.limiters
    assert found.blocks * (shared + one.shared_reserved) <= one.shared_per_multiprocessor
    assert found.blocks * threads * registers <= one.registers_per_multiprocessor
    assert found.blocks * threads <= one.max_threads_per_multiprocessor
    if shared > one.shared_per_block:
        assert found.blocks == 0


@given(st.sampled_from(ARCHITECTURES), st.integers(0, 200_000), st.integers(1, 1024), st.integers(1, 255))
def test_asking_for_less_never_holds_fewer(one: Architecture, shared: int, threads: int, registers: int) -> None:
    found = occupancy(one, shared_bytes=shared, threads=threads, registers=registers)
    less = occupancy(one, shared_bytes=shared // 2, threads=threads, registers=max(1, registers - 1))
    assert less.blocks >= found.blocks


@pytest.mark.parametrize("one", ARCHITECTURES, ids=lambda one: one.name)
def test_a_block_with_all_shared_memory_it_may_have_can_run(one: Architecture) -> None:
    found = occupancy(one, shared_bytes=one.shared_per_block, threads=128, registers=32)
    assert found.blocks >= 1
    assert "shared_memory" in found.limiters
