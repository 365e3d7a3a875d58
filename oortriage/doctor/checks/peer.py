"""Whether cards reach each other's memory: asked of the driver, or read from ``nvidia-smi topo -p2p r``."""

from __future__ import annotations

import re
from typing import Any

from oortriage.doctor.finding import Checked, Code, Finding
from oortriage.doctor.machine import Machine
from oortriage.doctor.outside import Unread
from oortriage.doctor.reading import Peer

NAME = "peer"
TITLE = "peer-to-peer access between cards"

_SMI = "nvidia-smi topo -h (option -p2p) and nvml.h, nvmlGpuP2PStatus_t"
#: What the letters of nvidia-smi mean.
CELLS = {
    "OK": "works",
    "CNS": "the chipset does not support it",
    "GNS": "the card does not support it",
    "TNS": "the topology does not support it (the cards hang on different host bridges or sockets)",
    "DR": "switched off by a setting of the driver (registry key)",
    "NS": "not supported",
    "U": "unknown",
    "X": "the card itself",
}

#: More than any machine has; a longer table is no output of nvidia-smi.
_MOST_CARDS = 128

NO_PEER = Code(
    "DR381",
    "warning",
    "cards cannot reach each other's memory",
    "Without peer access data between the cards go through the host's memory: cudaMemcpyPeer still works, slower, and "
    "NCCL uses its shared-memory transport, which needs room in /dev/shm. vLLM switches its custom all-reduce off by "
    "itself. The driver offers it on few GeForce cards; unified memory is no condition for it.",
    "nothing helps where the hardware lacks it: give /dev/shm room, prefer pipeline over tensor parallelism; on "
    "servers check IOMMU and ACS settings of the BIOS",
    _SMI,
)
UNKNOWN_PEER = Code(
    "DR382",
    "note",
    "the driver does not know whether cards reach each other",
    "The cell is U: the driver could not tell.",
    "run `nvidia-smi topo -p2p r`, or CUDA's p2pBandwidthLatencyTest",
    _SMI,
)
CODES = (NO_PEER, UNKNOWN_PEER)


def check(machine: Machine) -> Checked:
    """Look at every pair of cards."""
    if machine.topo is not None:
        text = machine.text(str(machine.topo))
        if isinstance(text, Unread):
            return Checked(not_checked=((TITLE, text.reason),))
        matrix = read_matrix(text)
        if not matrix:
            return Checked(not_checked=((TITLE, "the file holds no matrix of `nvidia-smi topo -p2p`"),))
        cells: dict[tuple[int, int], tuple[str, ...]] = {pair: (cell,) for pair, cell in matrix.items()}
        return Checked({"read_from": "file", "cells": _listed(cells)}, tuple(_findings(cells)))
    reading = machine.nvml
    if reading.unavailable is not None:
        return Checked(not_checked=((TITLE, reading.unavailable.reason),))
    if len(reading.devices) < 2:
        return Checked(not_checked=((TITLE, "there is one card"),))
    if not reading.peers:
        return Checked(not_checked=((TITLE, "the driver does not tell it"),))
    cells = {(one.first, one.second): _ways(one) for one in reading.peers}
    return Checked({"read_from": "NVML", "cells": _listed(cells)}, tuple(_findings(cells)))


def read_matrix(text: str) -> dict[tuple[int, int], str]:
    """Read the table that ``nvidia-smi topo -p2p`` prints, by row and column; empty where there is none."""
    cells: dict[tuple[int, int], str] = {}
    columns: list[int] = []
    for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines():
        words = line.split()
        if not words:
            continue
        if all(re.fullmatch(r"GPU\d{1,4}", word) for word in words) and (len(words) > 1 or not columns):
            columns = [int(word[3:]) for word in words]
        elif columns and re.fullmatch(r"GPU\d{1,4}", words[0]) and len(words) > 1:
            row = int(words[0][3:])
            for column, word in zip(columns, words[1:], strict=False):
                if word in CELLS and row != column and max(row, column) < _MOST_CARDS:
                    cells[row, column] = word
    return cells


def _ways(one: Peer) -> tuple[str, ...]:
    return (one.read,) if one.read == one.write else (one.read, one.write)


def _listed(cells: dict[tuple[int, int], tuple[str, ...]]) -> list[dict[str, Any]]:
    return [{"from": first, "to": second, "cell": "/".join(ways)} for (first, second), ways in sorted(cells.items())]


def _findings(cells: dict[tuple[int, int], tuple[str, ...]]) -> list[Finding]:
    """Say it once for each reason, with the pairs that have it."""
    pairs: dict[str, list[tuple[int, int]]] = {}
    for (first, second), ways in sorted(cells.items()):
        for cell in ways:
            pair = (min(first, second), max(first, second))
            if cell not in ("OK", "X") and pair not in pairs.setdefault(cell, []):
                pairs[cell].append(pair)
    findings = []
    for cell, listed in sorted(pairs.items()):
        named = ", ".join(f"GPU {first} and {second}" for first, second in listed[:8])
        more = f" and {len(listed) - 8} pairs more" if len(listed) > 8 else ""
        code = UNKNOWN_PEER if cell == "U" else NO_PEER
        findings.append(code.found("peer access", f"{cell} ({CELLS[cell]}): {named}{more}"))
    return findings
