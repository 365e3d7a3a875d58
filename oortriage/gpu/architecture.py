"""What is known about one compute capability or GFX target: limits, allocation units, cards, sources."""

from __future__ import annotations

import msgspec

KIB = 1024


class Architecture(msgspec.Struct, frozen=True, kw_only=True):
    """One compute capability or GFX target.

    A multiprocessor is what shares one piece of shared memory: an SM on NVIDIA, a compute unit (CU) on
    CDNA, a work-group processor (WGP, two CUs) on RDNA, whose kernels Triton and HIP compile for WGP
    mode unless told otherwise.

    Attributes:
        name: ``7.5`` or ``gfx942``.
        vendor: ``nvidia`` or ``amd``.
        generation: The maker's name for the family: ``Turing``, ``CDNA3``.
        shared_per_block: The most shared memory one block may ask for, bytes (NVIDIA: after opting in by
            ``cudaFuncSetAttribute``).
        shared_static: What a block has without asking, bytes; on NVIDIA also what the compiler allows a
            static array (CUDA 13 lifts that for targets with the suffix ``a`` from ``sm_90a`` on).
        shared_per_multiprocessor: All of a multiprocessor's shared memory, bytes.
        shared_unit: A block's shared memory is rounded up to a multiple of this, bytes.
        shared_reserved: What the driver takes of every block's shared memory for itself, bytes.
        warp_size: Threads a warp (wavefront); on RDNA the 32 that Triton and HIP use.
        registers_per_multiprocessor: 32-bit registers, a lane's register counted for each lane.
        registers_per_block: 32-bit registers one block may hold; None where the maker states no limit of
            its own beside the multiprocessor's.
        max_registers_per_thread: 32-bit registers one thread may hold.
        register_unit: A warp's registers are rounded up to a multiple of this, 32-bit registers.
        partitions: Parts (sub-cores, SIMDs) among which the registers are divided; a warp lives in one.
        max_threads_per_block: Threads a block.
        max_threads_per_multiprocessor: Threads resident at a time.
        max_warps_per_multiprocessor: Warps resident at a time.
        max_blocks_per_multiprocessor: Blocks resident at a time; on AMD those of more than one wavefront.
        cards: Names, as drivers print them and people write them.
        source: Where every figure comes from that ``elsewhere`` does not name.
        elsewhere: Pairs of a figure's name here and its own source.
        checked: The day the figures were held against their sources, ISO 8601.
    """

    name: str
    vendor: str
    generation: str
    shared_per_block: int
    shared_static: int
    shared_per_multiprocessor: int
    shared_unit: int
    shared_reserved: int
    warp_size: int
    registers_per_multiprocessor: int
    registers_per_block: int | None
    max_registers_per_thread: int
    register_unit: int
    partitions: int
    max_threads_per_block: int
    max_threads_per_multiprocessor: int
    max_warps_per_multiprocessor: int
    max_blocks_per_multiprocessor: int
    cards: tuple[str, ...]
    source: str
    checked: str
    elsewhere: tuple[tuple[str, str], ...] = ()

    def source_of(self, figure: str) -> str:
        """Say where one figure comes from.

        Args:
            figure: The name of an attribute, such as ``shared_per_block``.

        Returns:
            A public address or the name of a public document.
        """
        return dict(self.elsewhere).get(figure, self.source)
