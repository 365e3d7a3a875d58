"""CUDA's and the driver's versions: which driver runs which runtime."""

from __future__ import annotations

import re

COMPATIBILITY = "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html (read 2026-11-30)"
FORWARD = "https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html (read 2026-11-30)"

#: Lowest driver branch, on Linux, for any runtime of a CUDA major release; from :data:`COMPATIBILITY`.
LOWEST_DRIVER = {11: "450.80.02", 12: "525", 13: "580"}
#: Names of NVIDIA's data-center cards, for which forward compatibility is made.
_DATA_CENTER = re.compile(
    r"\b(?:T4G?|P4|P6|P40|P100|V100S?|A2|A10G?|A16|A30X?|A40|A100X?|A800|L4|L20|L40S?|H20|H100|H200|H800|"
    r"GH200|B100|B200|B300|GB200|GB300|DGX)\b"
)
_CONSUMER = re.compile(r"\b(?:GeForce|TITAN)\b", re.IGNORECASE)


def release(text: str) -> tuple[int, ...]:
    """Read the numbers of a version: ``13.0`` and ``580.95.05``; empty when there are none."""
    found = re.match(r"\d{1,9}(?:\.\d{1,9})*", text.strip())
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def is_data_center(name: str) -> bool:
    """Say whether a card's name is one of NVIDIA's data-center cards."""
    return bool(_DATA_CENTER.search(name)) and not _CONSUMER.search(name)


def is_consumer(name: str) -> bool:
    """Say whether a card's name is one of the GeForce and TITAN families."""
    return bool(_CONSUMER.search(name))


def lowest_driver(cuda: str) -> str:
    """Return the lowest driver for a runtime, in words; empty when its major release is not in the table."""
    major = release(cuda)[:1]
    return LOWEST_DRIVER.get(major[0], "") if major else ""


def covers(architectures: tuple[str, ...], capability: tuple[int, int]) -> str:
    """Say how a build reaches a card: ``native``, ``same_family``, ``jit`` or ``no``.

    Machine code for 8.0 runs on 8.6 and 8.9, never on another major; code for an ``a`` target on that card
    alone; ``f`` within the family. PTX of ``compute_90`` is compiled by the driver for any later card.

    Source: CUDA C++ Programming Guide, binary and PTX compatibility.

    Args:
        architectures: entries such as ``sm_90``, ``sm_90a``, ``compute_90``.
        capability: the card's.
    """
    best = "no"
    for one in architectures:
        found = re.fullmatch(r"(sm|compute)_(\d{1,3})(\d)([af]?)", one)
        if not found:
            continue
        target, suffix = (int(found[2]), int(found[3])), found[4]
        if target == capability:
            if found[1] == "sm":
                return "native"
            best = "jit" if best == "no" else best
        elif suffix == "a":
            continue
        elif found[1] == "sm" and target[0] == capability[0] and target < capability:
            best = "same_family"
        elif found[1] == "compute" and not suffix and target < capability and best == "no":
            best = "jit"
    return best
