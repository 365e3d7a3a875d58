"""NVIDIA's architectures by compute capability, from 6.0 on.

Most figures are those of NVIDIA's own table in libcu++; the allocation units are those of the occupancy
calculator that comes with the CUDA Toolkit as a header. The table "technical specifications per compute
capability" of the CUDA programming guide has the same figures where it has the capability. Where a public
log prints the limit a card has, that log is named instead: it is the card's own word. Which card has which
capability is NVIDIA's list (developer.nvidia.com/cuda-gpus and /cuda-legacy-gpus); names that list leaves
out (export variants, MX, CMP, laptop parts) follow the chip they are made of.
"""

from __future__ import annotations

from oortriage.gpu import nvidia_cards as cards
from oortriage.gpu.architecture import KIB, Architecture

TRAITS = "https://github.com/NVIDIA/cccl/blob/main/libcudacxx/include/cuda/__device/arch_traits.h"
OCCUPANCY = "CUDA Toolkit 12.9, cuda_occupancy.h (version 12.1)"
GUIDE = "NVIDIA CUDA C++ Programming Guide, technical specifications per compute capability"
CHECKED = "2026-11-30"


def _capability(
    name: str,
    generation: str,
    names: tuple[str, ...],
    *,
    opt_in: int,
    per_sm: int,
    threads: int,
    blocks: int,
    printed: str | None = None,
    partitions: int = 4,
    source: str = TRAITS,
    elsewhere: tuple[tuple[str, str], ...] = (),
) -> Architecture:
    """Fill in what is the same on every capability.

    Args:
        name: The compute capability.
        generation: NVIDIA's name for the family.
        names: Its cards.
        opt_in: Shared memory a block, KiB.
        per_sm: Shared memory an SM, KiB.
        threads: Threads resident on an SM.
        blocks: Blocks resident on an SM.
        printed: A report whose log prints ``opt_in`` as the hardware's limit.
        partitions: Sub-cores an SM.
        source: Where the figures come from.
        elsewhere: Figures with a source of their own.

    Returns:
        The architecture.
    """
    modern = float(name) >= 8.0
    own = [
        ("shared_static", "ptxas 12.8.93 and 13.0.88 refuse a static array of more than 0xc000 bytes"),
        ("shared_unit", OCCUPANCY),
        ("register_unit", OCCUPANCY),
        ("partitions", OCCUPANCY),
        *elsewhere,
    ]
    if printed:
        own.append(("shared_per_block", printed))
    return Architecture(
        name=name,
        vendor="nvidia",
        generation=generation,
        shared_per_block=opt_in * KIB,
        shared_static=48 * KIB,
        shared_per_multiprocessor=per_sm * KIB,
        shared_unit=128 if modern else 256,
        # From 8.0 on the driver keeps 1 KiB of every block's shared memory for itself.
        shared_reserved=KIB if modern else 0,
        warp_size=32,
        registers_per_multiprocessor=64 * KIB,
        registers_per_block=64 * KIB,
        # The guide and libcu++ say 255; the occupancy header tests against 256 from 7.0 on, which no
        # instruction can name.
        max_registers_per_thread=255,
        register_unit=256,
        partitions=partitions,
        max_threads_per_block=1024,
        max_threads_per_multiprocessor=threads,
        max_warps_per_multiprocessor=threads // 32,
        max_blocks_per_multiprocessor=blocks,
        cards=names,
        source=source,
        checked=CHECKED,
        elsewhere=tuple(own),
    )


def _ptxas(target: str, cap: str) -> str:
    return f"ptxas 13.0.88 allows {target} a static array of {cap} bytes and refuses more"


NVIDIA: tuple[Architecture, ...] = (
    _capability("6.0", "Pascal", cards.CC_60, opt_in=48, per_sm=64, threads=2048, blocks=32, partitions=2),
    _capability(
        "6.1",
        "Pascal",
        cards.CC_61,
        opt_in=48,
        per_sm=96,
        threads=2048,
        blocks=32,
        printed="https://github.com/state-spaces/mamba/issues/438",
    ),
    _capability(
        "7.0",
        "Volta",
        cards.CC_70,
        opt_in=96,
        per_sm=96,
        threads=2048,
        blocks=32,
        printed="https://github.com/InternLM/lmdeploy/issues/4367",
    ),
    # libcu++ has no 7.2 (its host is a Jetson, its last toolkit 12.9). A device query of a Xavier gives
    # threads, warps and registers; the occupancy header the shared memory and the blocks, which it has as
    # one case for 7.x without 7.5. The opt-in figure is the guide's; no log seen prints it.
    _capability(
        "7.2",
        "Volta",
        cards.CC_72,
        opt_in=96,
        per_sm=96,
        threads=2048,
        blocks=32,
        source="https://gist.github.com/r7vme/7276929c7ddcce41eb0872d389634e4d",
        elsewhere=(
            ("shared_per_block", GUIDE),
            ("shared_per_multiprocessor", OCCUPANCY),
            ("shared_reserved", OCCUPANCY),
            ("registers_per_multiprocessor", GUIDE),
            ("max_registers_per_thread", GUIDE),
            ("max_blocks_per_multiprocessor", OCCUPANCY),
        ),
    ),
    _capability(
        "7.5",
        "Turing",
        cards.CC_75,
        opt_in=64,
        per_sm=64,
        threads=1024,
        blocks=16,
        printed="https://github.com/vllm-project/vllm/issues/36802",
    ),
    _capability("8.0", "Ampere", cards.CC_80, opt_in=163, per_sm=164, threads=2048, blocks=32),
    _capability(
        "8.6",
        "Ampere",
        cards.CC_86,
        opt_in=99,
        per_sm=100,
        threads=1536,
        blocks=16,
        printed="https://github.com/triton-lang/triton/issues/384",
    ),
    _capability("8.7", "Ampere", cards.CC_87, opt_in=163, per_sm=164, threads=1536, blocks=16),
    _capability(
        "8.9",
        "Ada",
        cards.CC_89,
        opt_in=99,
        per_sm=100,
        threads=1536,
        blocks=24,
        printed="https://github.com/sgl-project/sglang/issues/9393",
    ),
    _capability(
        "9.0",
        "Hopper",
        cards.CC_90,
        opt_in=227,
        per_sm=228,
        threads=2048,
        blocks=32,
        printed="https://github.com/pytorch/pytorch/issues/175250",
    ),
    _capability(
        "10.0",
        "Blackwell",
        cards.CC_100,
        opt_in=227,
        per_sm=228,
        threads=2048,
        blocks=32,
        printed="https://github.com/pytorch/pytorch/pull/158494",
    ),
    _capability(
        "10.3",
        "Blackwell",
        cards.CC_103,
        opt_in=227,
        per_sm=228,
        threads=2048,
        blocks=32,
        elsewhere=(("shared_per_block", _ptxas("sm_103a", "0x38c00")),),
    ),
    _capability(
        "11.0",
        "Blackwell",
        cards.CC_110,
        opt_in=227,
        per_sm=228,
        threads=1536,
        blocks=24,
        elsewhere=(
            ("shared_per_block", _ptxas("sm_110a", "0x38c00")),
            ("shared_per_multiprocessor", "https://github.com/NVIDIA/cutlass/issues/2784"),
        ),
    ),
    _capability(
        "12.0",
        "Blackwell",
        cards.CC_120,
        opt_in=99,
        per_sm=100,
        threads=1536,
        blocks=24,
        printed="https://github.com/vllm-project/vllm/pull/33846",
    ),
    _capability(
        "12.1",
        "Blackwell",
        cards.CC_121,
        opt_in=99,
        per_sm=100,
        threads=1536,
        blocks=24,
        printed="https://github.com/sgl-project/sglang/issues/28019",
    ),
)
