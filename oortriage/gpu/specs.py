"""Shared memory one block may have, by architecture, and which cards have that architecture.

Every figure names where it comes from and the day it was checked. A limit printed in a log always
wins over this table.
"""

from __future__ import annotations

import re

import msgspec

KIB = 1024


class Architecture(msgspec.Struct, frozen=True):
    """One compute capability or GFX target.

    ``shared_per_block`` is the most one block may ask for, in bytes (NVIDIA: after opting in by
    ``cudaFuncSetAttribute``); ``shared_static`` what it has without asking.
    """

    name: str
    vendor: str
    shared_per_block: int
    shared_static: int
    source: str
    checked: str
    cards: tuple[str, ...] = ()


_GUIDE = "NVIDIA CUDA C++ Programming Guide, technical specifications per compute capability"
_DAY = "2026-11-29"


def _nvidia(name: str, kib: int, source: str, *cards: str) -> Architecture:
    return Architecture(name, "nvidia", kib * KIB, 48 * KIB, source, _DAY, cards)


def _amd(name: str, kib: int, source: str, *cards: str) -> Architecture:
    return Architecture(name, "amd", kib * KIB, kib * KIB, source, _DAY, cards)


#: Sources beside the guide are reports that print the figure as the hardware limit.
ARCHITECTURES: tuple[Architecture, ...] = (
    _nvidia("6.0", 48, _GUIDE, "Tesla P100"),
    _nvidia(
        "6.1",
        48,
        "https://github.com/state-spaces/mamba/issues/438",
        "GTX 1050",
        "GTX 1060",
        "GTX 1070",
        "GTX 1080",
        "Tesla P40",
        "Tesla P4",
        "TITAN Xp",
    ),
    _nvidia(
        "7.0",
        96,
        "https://github.com/InternLM/lmdeploy/issues/4367",
        "V100",
        "TITAN V",
        "Quadro GV100",
    ),
    _nvidia(
        "7.5",
        64,
        "https://github.com/vllm-project/vllm/issues/36802",
        "Tesla T4",
        "T4",
        "RTX 2060",
        "RTX 2070",
        "RTX 2080",
        "GTX 1650",
        "GTX 1660",
        "TITAN RTX",
        "Quadro RTX 4000",
        "Quadro RTX 5000",
        "Quadro RTX 6000",
        "Quadro RTX 8000",
        "T4G",
        "T1000",
    ),
    _nvidia("8.0", 163, _GUIDE, "A100", "A30", "A800"),
    _nvidia(
        "8.6",
        99,
        "https://github.com/triton-lang/triton/issues/384",
        "RTX 3050",
        "RTX 3060",
        "RTX 3070",
        "RTX 3080",
        "RTX 3090",
        "A10",
        "A10G",
        "A16",
        "A2",
        "A40",
        "RTX A2000",
        "RTX A4000",
        "RTX A4500",
        "RTX A5000",
        "RTX A6000",
    ),
    _nvidia("8.7", 163, _GUIDE, "Orin"),
    _nvidia(
        "8.9",
        99,
        "https://github.com/sgl-project/sglang/issues/9393",
        "RTX 4050",
        "RTX 4060",
        "RTX 4070",
        "RTX 4080",
        "RTX 4090",
        "L4",
        "L40",
        "L40S",
        "L20",
        "RTX 2000 Ada",
        "RTX 4000 Ada",
        "RTX 5000 Ada",
        "RTX 5880 Ada",
        "RTX 6000 Ada",
    ),
    _nvidia(
        "9.0",
        227,
        "https://github.com/pytorch/pytorch/issues/175250",
        "H100",
        "H200",
        "H20",
        "H800",
        "GH200",
    ),
    _nvidia("10.0", 227, "https://github.com/pytorch/pytorch/pull/158494", "B200", "B100", "GB200"),
    _nvidia("10.3", 227, _GUIDE, "B300", "GB300"),
    _nvidia(
        "12.0",
        99,
        "https://github.com/vllm-project/vllm/pull/33846",
        "RTX 5050",
        "RTX 5060",
        "RTX 5070",
        "RTX 5080",
        "RTX 5090",
        "RTX PRO 6000",
        "RTX PRO 5000",
        "RTX PRO 4500",
        "RTX PRO 4000",
        "RTX 6000D",
    ),
    _nvidia("12.1", 99, "https://github.com/sgl-project/sglang/issues/28019", "GB10", "DGX Spark"),
    _amd(
        "gfx90a",
        64,
        "https://github.com/vllm-project/vllm/issues/12498",
        "MI210",
        "MI250",
        "MI250X",
    ),
    _amd(
        "gfx942",
        64,
        "https://github.com/sgl-project/sglang/issues/6001",
        "MI300X",
        "MI300A",
        "MI308X",
        "MI325X",
    ),
    _amd("gfx950", 160, "https://github.com/vllm-project/vllm/issues/49778", "MI350X", "MI355X"),
    _amd("gfx1030", 64, "https://github.com/ggml-org/llama.cpp/issues/24672", "RX 6800", "RX 6900"),
    _amd("gfx1031", 64, "https://github.com/ggml-org/llama.cpp/issues/24672", "RX 6700"),
    _amd("gfx1100", 64, "https://github.com/ROCm/aiter/issues/4385", "RX 7900", "W7900"),
    _amd("gfx1151", 64, "https://github.com/ROCm/aiter/issues/4385", "Strix Halo", "Ryzen AI Max"),
    _amd("gfx1201", 64, "https://github.com/ROCm/aiter/issues/3956", "RX 9070", "R9700"),
)

_BY_NAME = {architecture.name: architecture for architecture in ARCHITECTURES}
_CARDS = sorted(
    ((card, one) for one in ARCHITECTURES for card in one.cards),
    key=lambda pair: -len(pair[0]),
)


def by_capability(name: str) -> Architecture | None:
    """Find an architecture by ``7.5``, ``sm_75``, ``75`` or ``gfx942``; None when unknown."""
    text = name.strip().lower().removeprefix("sm_").removeprefix("sm").rstrip("af")
    if text.startswith("gfx") or name.strip().lower().startswith("gfx"):
        return _BY_NAME.get(name.strip().lower().split(":")[0])
    if text.isdigit() and len(text) >= 2:
        text = f"{text[:-1]}.{text[-1]}"
    return _BY_NAME.get(text)


def by_card(name: str) -> Architecture | None:
    """Find an architecture by a card's name as drivers print it; None when it is not known."""
    plain = re.sub(r"[\s_-]+", " ", name)
    for card, architecture in _CARDS:
        if re.search(rf"(?<![A-Za-z0-9]){re.escape(card)}(?![0-9])(?!\s*Ada)", plain, re.IGNORECASE):
            return architecture
    return None


def by_limit(limit: int) -> list[Architecture]:
    """List the architectures whose blocks may have exactly this many bytes; often several."""
    return [one for one in ARCHITECTURES if one.shared_per_block == limit]
