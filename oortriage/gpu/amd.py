"""AMD's architectures by GFX target: CDNA, RDNA2 to RDNA4.

ROCm's table of GPU specifications has LDS, register file and wavefront size, for RDNA by work-group
processor (two CUs: 128 KiB of LDS). What one block may have of that, how many wavefronts are resident and
in which units registers are given out is LLVM's AMDGPU backend; the unit of LDS on RDNA is Mesa's.
"""

from __future__ import annotations

from oortriage.gpu.architecture import KIB, Architecture

ROCM = "https://rocm.docs.amd.com/en/latest/reference/gpu-specs.html"
#: The page as it was while it still listed RDNA2.
ROCM_OLDER = "https://github.com/ROCm/legacy-rocm-build/blob/develop/docs/reference/gpu-arch-specs.rst"
LLVM = "https://github.com/llvm/llvm-project/blob/main/llvm/lib/Target/AMDGPU/Utils/AMDGPUBaseInfo.cpp"
LDS_UNITS = "https://llvm.org/docs/AMDGPUUsage.html (GRANULATED_LDS_SIZE)"
MESA = "https://gitlab.freedesktop.org/mesa/mesa/-/blob/main/src/amd/common/ac_gpu_info.c"
WGP = "https://github.com/triton-lang/triton/blob/main/third_party/amd/backend/compiler.py (wgp_cu_mode)"
CHECKED = "2026-11-30"

_FROM_LLVM = (
    "max_threads_per_block",
    "max_threads_per_multiprocessor",
    "max_warps_per_multiprocessor",
    "max_blocks_per_multiprocessor",
    "max_registers_per_thread",
    "register_unit",
    "partitions",
)


def _cdna(
    name: str,
    generation: str,
    names: tuple[str, ...],
    *,
    lds: int = 64,
    waves: int = 8,
    vgprs: int = 512,
    granule: int = 8,
    lds_unit: int = 512,
    printed: str = LLVM,
) -> Architecture:
    """Describe a target whose wavefronts have 64 lanes and whose CUs have four SIMDs.

    Args:
        name: The GFX target.
        generation: AMD's name for the family.
        names: Its cards.
        lds: LDS a CU, all of which one block may have, KiB.
        waves: Wavefronts resident on a SIMD.
        vgprs: Registers a lane, of one SIMD; also the most a thread may hold.
        granule: Registers a lane in which they are given out.
        lds_unit: Bytes in which LDS is given out.
        printed: A report whose log prints ``lds`` as the hardware's limit.

    Returns:
        The architecture.
    """
    return _target(
        name=name,
        generation=generation,
        shared_per_block=lds * KIB,
        shared_static=lds * KIB,
        shared_per_multiprocessor=lds * KIB,
        shared_unit=lds_unit,
        warp_size=64,
        registers_per_multiprocessor=vgprs * 64 * 4,
        max_registers_per_thread=vgprs,
        register_unit=granule * 64,
        max_warps_per_multiprocessor=waves * 4,
        # Barriers of a CU; a block of one wavefront needs none.
        max_blocks_per_multiprocessor=16,
        cards=names,
        source=ROCM,
        elsewhere=(("shared_per_block", printed), ("shared_unit", LDS_UNITS)),
    )


def _rdna(
    name: str,
    generation: str,
    names: tuple[str, ...],
    *,
    vgprs: int,
    granule: int,
    source: str = ROCM,
    printed: str = LLVM,
) -> Architecture:
    """Describe a target whose wavefronts have 32 lanes, by work-group processor: two CUs, four SIMDs.

    Args:
        name: The GFX target.
        generation: AMD's name for the family.
        names: Its cards.
        vgprs: Registers a lane, of one SIMD.
        granule: Registers a lane in which they are given out.
        source: Where LDS and register file come from.
        printed: A report whose log prints 65,536 as the hardware's limit.

    Returns:
        The architecture.
    """
    return _target(
        name=name,
        generation=generation,
        shared_per_block=64 * KIB,
        shared_static=64 * KIB,
        shared_per_multiprocessor=128 * KIB,
        shared_unit=KIB,
        warp_size=32,
        registers_per_multiprocessor=vgprs * 32 * 4,
        # An instruction names one of 256 registers, however many the SIMD has.
        max_registers_per_thread=256,
        register_unit=granule * 32,
        max_warps_per_multiprocessor=16 * 4,
        max_blocks_per_multiprocessor=32,
        cards=names,
        source=source,
        elsewhere=(("shared_per_block", printed), ("shared_unit", MESA), ("warp_size", WGP)),
    )


def _target(
    *,
    name: str,
    generation: str,
    shared_per_block: int,
    shared_static: int,
    shared_per_multiprocessor: int,
    shared_unit: int,
    warp_size: int,
    registers_per_multiprocessor: int,
    max_registers_per_thread: int,
    register_unit: int,
    max_warps_per_multiprocessor: int,
    max_blocks_per_multiprocessor: int,
    cards: tuple[str, ...],
    source: str,
    elsewhere: tuple[tuple[str, str], ...],
) -> Architecture:
    return Architecture(
        name=name,
        vendor="amd",
        generation=generation,
        shared_per_block=shared_per_block,
        shared_static=shared_static,
        shared_per_multiprocessor=shared_per_multiprocessor,
        shared_unit=shared_unit,
        shared_reserved=0,
        warp_size=warp_size,
        registers_per_multiprocessor=registers_per_multiprocessor,
        # Neither ROCm's table nor LLVM states a limit of a block's own; a block of 1,024 threads may fill
        # the multiprocessor.
        registers_per_block=None,
        max_registers_per_thread=max_registers_per_thread,
        register_unit=register_unit,
        partitions=4,
        # Some targets can encode 2,048; LLVM allows 1,024 and HIP reports it.
        max_threads_per_block=1024,
        max_threads_per_multiprocessor=max_warps_per_multiprocessor * warp_size,
        max_warps_per_multiprocessor=max_warps_per_multiprocessor,
        max_blocks_per_multiprocessor=max_blocks_per_multiprocessor,
        cards=cards,
        source=source,
        checked=CHECKED,
        elsewhere=(*elsewhere, *((figure, LLVM) for figure in _FROM_LLVM)),
    )


def _rx(*names: str) -> tuple[str, ...]:
    return tuple(f"RX {name}" for name in names)


_AITER = "https://github.com/ROCm/aiter/issues/4385"

AMD: tuple[Architecture, ...] = (
    # 256 registers a lane and, in a file of their own that is not counted here, 256 accumulation registers.
    _cdna("gfx908", "CDNA", ("MI100",), waves=10, vgprs=256, granule=4),
    # From here on both kinds share one file of 512 a lane.
    _cdna("gfx90a", "CDNA2", ("MI210", "MI250", "MI250X")),
    _cdna(
        "gfx942",
        "CDNA3",
        ("MI300", "MI300A", "MI300X", "MI308X", "MI325X"),
        printed="https://github.com/sgl-project/sglang/issues/6001",
    ),
    _cdna(
        "gfx950",
        "CDNA4",
        ("MI350P", "MI350X", "MI355X"),
        lds=160,
        lds_unit=1280,
        printed="https://github.com/vllm-project/vllm/issues/49778",
    ),
    _rdna(
        "gfx1030",
        "RDNA2",
        (*_rx("6800", "6800 XT", "6900", "6900 XT", "6950 XT"), "W6800", "V620"),
        vgprs=1024,
        granule=16,
        source=ROCM_OLDER,
    ),
    _rdna(
        "gfx1031",
        "RDNA2",
        # The mobile 6800M and 6850M are the chip of the desktop 6700.
        _rx("6700", "6700 XT", "6750 XT", "6750 GRE", "6700M", "6800M", "6850M XT"),
        vgprs=1024,
        granule=16,
        source=ROCM_OLDER,
        printed="https://github.com/ggml-org/llama.cpp/issues/24672",
    ),
    _rdna(
        "gfx1032",
        "RDNA2",
        (*_rx("6600", "6600 XT", "6650 XT", "6600M", "6650M", "6700S", "6800S"), "W6600"),
        vgprs=1024,
        granule=16,
        source=ROCM_OLDER,
    ),
    _rdna(
        "gfx1100",
        "RDNA3",
        (*_rx("7900", "7900 XTX", "7900 XT", "7900 GRE", "7900M"), "W7800", "W7900"),
        vgprs=1536,
        granule=24,
        printed=_AITER,
    ),
    _rdna(
        "gfx1101",
        "RDNA3",
        (*_rx("7800", "7800 XT", "7800M", "7700", "7700 XT"), "W7700", "V710"),
        vgprs=1536,
        granule=24,
    ),
    _rdna(
        "gfx1102",
        "RDNA3",
        (*_rx("7600", "7600 XT", "7650 GRE", "7600M", "7600M XT", "7600S", "7700S"), "W7500", "W7600"),
        vgprs=1024,
        granule=16,
    ),
    _rdna(
        "gfx1150",
        "RDNA3.5",
        ("Strix Point", "Radeon 880M", "Radeon 890M", "Ryzen AI 9 HX 370", "Ryzen AI 9 HX 375", "Ryzen AI 9 365"),
        vgprs=1024,
        granule=16,
    ),
    _rdna(
        "gfx1151",
        "RDNA3.5",
        ("Strix Halo", "Ryzen AI Max", "Radeon 8040S", "Radeon 8050S", "Radeon 8060S", "Radeon 8065S"),
        vgprs=1536,
        granule=24,
        printed=_AITER,
    ),
    _rdna(
        "gfx1200",
        "RDNA4",
        _rx("9050", "9060", "9060 XT"),
        vgprs=1536,
        granule=24,
    ),
    _rdna(
        "gfx1201",
        "RDNA4",
        (*_rx("9070", "9070 XT", "9070 GRE"), "R9600", "R9600D", "R9700"),
        vgprs=1536,
        granule=24,
        printed="https://github.com/ROCm/aiter/issues/3956",
    ),
)
