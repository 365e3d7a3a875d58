"""How much memory a card has for programs, by its name: what cudaMemGetInfo calls total, which is less than the label.

Where a public log or report prints the figure for that card, it is taken, and its address stands beside it. For the
rest the label's size is taken with what is lost on other cards: cards whose GDDR memory keeps its error-correcting
codes in memory lose about 8 %, others 1 to 2 %. A figure of the card itself always wins over this table.
"""

from __future__ import annotations

import re

import msgspec

#: The day the figures were held against their sources.
CHECKED = "2026-11-30"
_VLLM, _GIB = "https://github.com/vllm-project/vllm", float(1 << 30)
_LABEL = "the maker's product page states {} GB; what a program sees is less by as much as on other cards"


class CardMemory(msgspec.Struct, frozen=True):
    """A card's memory in bytes. ``low`` and ``high``: the least and most that were printed, or the guess's range.

    ``unified``: the GPU shares the host's memory. ``printed``: a public report prints it for this card.
    """

    name: str
    size: float
    low: float
    high: float
    source: str
    printed: bool
    unified: bool = False


def _printed(name: str, size: float, low: float, high: float, source: str, *, unified: bool = False) -> CardMemory:
    return CardMemory(name, size * _GIB, low * _GIB, high * _GIB, source, printed=True, unified=unified)


def _labelled(name: str, size: int, share: float) -> CardMemory:
    # a GB of a label is 2**30 bytes for graphics memory, and its codes come out of it
    return CardMemory(
        name,
        size * share * _GIB,
        size * (share - 0.015) * _GIB,
        size * (share + 0.015) * _GIB,
        _LABEL.format(size),
        False,
    )


_PRINTED = (
    _printed("T4", 14.56, 14.56, 14.76, "https://github.com/One-2-3-45/One-2-3-45/issues/25"),
    _printed("L4", 22.05, 22.05, 22.06, "https://github.com/pytorch/pytorch/issues/175666"),
    _printed("A10G", 22.19, 22.0, 22.19, "https://github.com/NVIDIA/TensorRT-LLM/issues/2398"),
    _printed("L40", 44.40, 44.40, 44.53, "https://github.com/QwenLM/Qwen3-VL/issues/2097"),
    _printed("L40S", 44.42, 44.39, 44.53, f"{_VLLM}/issues/15815"),
    _printed("RTX 3090", 23.68, 23.58, 23.69, f"{_VLLM}/issues/16343"),
    _printed("RTX 4090", 23.68, 23.55, 23.69, "https://github.com/zai-org/CogVideo/issues/36"),
    _printed("RTX 5080", 15.48, 15.47, 15.51, f"{_VLLM}/issues/14452"),
    _printed("RTX 5090", 31.37, 31.36, 31.86, f"{_VLLM}/issues/14452"),
    _printed("RTX A2000 12GB", 11.53, 11.53, 11.76, f"{_VLLM}/issues/12030"),
    _printed("RTX PRO 6000", 95.59, 94.97, 95.59, "https://github.com/ggml-org/llama.cpp/issues/22319"),
    _printed("GTX 1080", 7.92, 7.92, 7.93, "https://github.com/pytorch/pytorch/issues/29198"),
    _printed("GTX 1080 Ti", 10.92, 10.91, 10.92, "https://github.com/pytorch/pytorch/issues/16417"),
    _printed("A100 80GB", 79.15, 79.14, 79.25, "https://github.com/Kunhao-Liu/StyleGaussian/issues/11"),
    _printed("H100 80GB", 79.22, 79.10, 79.65, f"{_VLLM}/pull/12126"),
    _printed("H20", 95.0, 94.9, 95.1, "https://github.com/NVIDIA/TensorRT-LLM/issues/5950"),
    _printed("H200", 139.80, 139.71, 140.06, "https://github.com/vllm-project/vllm-omni/pull/1842"),
    _printed("B200", 178.35, 178.35, 179.06, "https://github.com/pytorch/ao/pull/4002"),
    _printed("B300", 276.5, 267.6, 276.5, "https://github.com/mlcommons/inference/issues/2501"),
    _printed(
        "GB10", 121.69, 119.6, 121.69, "https://github.com/MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks/issues/47",
        unified=True,
    ),
)  # fmt: skip
#: GB of the label: GDDR with codes in memory, then the others. Cards that were made with several sizes are there once
#: for each.
_IN_MEMORY, _BESIDE = 0.925, 0.985
_WITH_CODES = {"A10": 24, "A16": 16, "A2": 16, "A40": 48, "L2": 24, "L20": 48, "RTX 6000 Ada": 48, "RTX A6000": 48}
_WITHOUT = {
    "V100 16GB": 16, "V100 32GB": 32, "A100 40GB": 40, "A30": 24, "A800 80GB": 80, "H100 NVL": 94, "H800": 80,
    "GH200 96GB": 96, "GH200 144GB": 144, "RTX 2080": 8, "RTX 2080 Ti": 11, "TITAN RTX": 24,
    "RTX 3060": 12, "RTX 3060 Ti": 8, "RTX 3070": 8, "RTX 3080 10GB": 10, "RTX 3080 12GB": 12, "RTX 3090 Ti": 24,
    "RTX 4060": 8, "RTX 4060 Ti 8GB": 8, "RTX 4060 Ti 16GB": 16, "RTX 4070": 12, "RTX 4070 Ti": 12,
    "RTX 4070 Ti SUPER": 16, "RTX 4080": 16, "RTX 4080 SUPER": 16, "RTX 5060 Ti 16GB": 16, "RTX 5070": 12,
    "RTX 5070 Ti": 16, "RTX A4000": 16, "RTX A5000": 24,
}  # fmt: skip
CARDS: tuple[CardMemory, ...] = (
    *_PRINTED,
    *(_labelled(name, size, _IN_MEMORY) for name, size in _WITH_CODES.items()),
    *(_labelled(name, size, _BESIDE) for name, size in _WITHOUT.items()),
)
_SIZE = re.compile(r"\b(\d{1,3}) ?gi?b\b")


def card_memories(name: str) -> tuple[CardMemory, ...]:
    """Find a card's memory by its name as drivers print it or people write it; several where it came in sizes.

    A size in the name (``A100-SXM4-80GB``) chooses among them. Empty: the card is not known.
    """
    plain = re.sub(r"[\s_-]+", " ", name).strip().lower()[:100]
    said = _SIZE.search(plain)
    bare = re.sub(r" +", " ", _SIZE.sub("", plain)).strip()
    matched: dict[str, list[CardMemory]] = {}
    for card in CARDS:
        family = _SIZE.sub("", card.name.lower()).strip()
        # another word of letters or digits makes it another card: Ti, SUPER, Ada, NVL, D
        if re.search(rf"(?<![a-z0-9]){re.escape(family)}(?![a-z0-9])(?! ?(?:ti|super|ada|nvl|d|laptop|max)\b)", bare):
            matched.setdefault(family, []).append(card)
    if not matched:
        return ()
    found = matched[max(matched, key=len)]
    if said and len(found) > 1:
        found = [card for card in found if _SIZE.search(card.name.lower()) and _stated(card) == int(said[1])]
    return tuple(found)


def _stated(card: CardMemory) -> int:
    found = _SIZE.search(card.name.lower())
    return int(found[1]) if found else 0
