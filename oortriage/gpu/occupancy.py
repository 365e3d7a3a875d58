"""How many blocks of a kernel one multiprocessor holds at a time, and what stops it from holding more.

The arithmetic is that of NVIDIA's occupancy calculator (``cuda_occupancy.h`` of the CUDA Toolkit) and, for
AMD, of LLVM's AMDGPU backend (``AMDGPUBaseInfo.cpp``): the same steps with other units, which stand in the
table with their sources.
"""

from __future__ import annotations

import msgspec

from oortriage.gpu.architecture import Architecture


class Occupancy(msgspec.Struct, frozen=True):
    """Blocks resident on one multiprocessor.

    Attributes:
        blocks: The most blocks resident at a time; 0 when not even one can be launched.
        warps: The warps of those blocks.
        fraction: Those warps as a part of all the multiprocessor can hold, 0 to 1.
        limiters: What allows no more blocks than that, of ``shared_memory``, ``registers``, ``threads`` and
            ``blocks``; several when they stop it at the same number.
        by_shared_memory: Blocks that shared memory allows; None when a block takes none.
        by_registers: Blocks that registers allow; None when a thread takes none.
        by_threads: Blocks that resident threads (warps) allow.
        by_blocks: Blocks resident at a time however small they are.
    """

    blocks: int
    warps: int
    fraction: float
    limiters: tuple[str, ...]
    by_shared_memory: int | None
    by_registers: int | None
    by_threads: int
    by_blocks: int

    @property
    def limiter(self) -> str:
        """The first of ``limiters``, in the order shared memory, registers, threads, blocks."""
        return self.limiters[0]


def occupancy(architecture: Architecture, *, shared_bytes: int, threads: int, registers: int) -> Occupancy:
    """Count the blocks one multiprocessor holds.

    The driver is taken to give shared memory all of what a multiprocessor divides between it and the L1
    cache, as it does for a kernel that needs it.

    Args:
        architecture: The GPU's architecture.
        shared_bytes: Shared memory a block asks for, static and dynamic together, bytes, without what the
            driver reserves.
        threads: Threads a block.
        registers: 32-bit registers a thread; on CDNA2 and later accumulation registers included. 0 when
            they are not known.

    Returns:
        The number of blocks, and what limits it.

    Raises:
        ValueError: A figure is negative, or a block has no threads.
    """
    if shared_bytes < 0 or registers < 0 or threads < 1:
        raise ValueError("shared_bytes and registers must be 0 or more, threads 1 or more")
    warps = _rounds(threads, architecture.warp_size)
    found = {
        "shared_memory": _by_shared(architecture, shared_bytes),
        "registers": _by_registers(architecture, warps, registers),
        "threads": _by_threads(architecture, warps, threads),
        "blocks": _by_blocks(architecture, warps),
    }
    limits = {name: count for name, count in found.items() if count is not None}
    blocks = min(limits.values())
    return Occupancy(
        blocks=blocks,
        warps=blocks * warps,
        fraction=blocks * warps / architecture.max_warps_per_multiprocessor,
        limiters=tuple(name for name, count in limits.items() if count == blocks),
        by_shared_memory=found["shared_memory"],
        by_registers=found["registers"],
        by_threads=limits["threads"],
        by_blocks=limits["blocks"],
    )


def _rounds(amount: int, unit: int) -> int:
    return -(-amount // unit)


def _by_shared(one: Architecture, shared_bytes: int) -> int | None:
    if shared_bytes > one.shared_per_block:
        return 0
    taken = _rounds(shared_bytes + one.shared_reserved, one.shared_unit) * one.shared_unit
    return one.shared_per_multiprocessor // taken if taken else None


def _by_registers(one: Architecture, warps: int, registers: int) -> int | None:
    if not registers:
        return None
    if registers > one.max_registers_per_thread:
        return 0
    of_warp = _rounds(registers * one.warp_size, one.register_unit) * one.register_unit
    # NVIDIA's launch check counts a block's warps as if they filled every sub-core alike.
    assumed = of_warp * _rounds(warps, one.partitions) * one.partitions
    if one.registers_per_block is not None and assumed > one.registers_per_block:
        return 0
    # A warp's registers lie in one sub-core, so what is left over in each is lost.
    blocks = one.registers_per_multiprocessor // one.partitions // of_warp * one.partitions // warps
    if one.partitions == 2 and not one.registers_per_multiprocessor // 4 // of_warp * 4 // warps:
        # A block that the four sub-cores of 6.1 could not hold is refused on 6.0 too, which has two.
        return 0
    return blocks


def _by_threads(one: Architecture, warps: int, threads: int) -> int:
    if threads > one.max_threads_per_block:
        return 0
    return one.max_warps_per_multiprocessor // warps


def _by_blocks(one: Architecture, warps: int) -> int:
    # On AMD the number of blocks is one of barriers, and a block of a single wavefront takes none.
    if one.vendor == "amd" and warps == 1:
        return one.max_warps_per_multiprocessor
    return one.max_blocks_per_multiprocessor
