"""How long an exact ledger takes, against Triton's own whole compilation of the same cell, in one run.

``python benchmarks/ledger.py`` prints, for cells of the built-in attention kernel on several cards, the
time of a ledger (compiled up to the allocation, and itemised), the time of ``triton.compile`` (to machine
code), their ratio, and whether both give the same figure; then the wall time of a 48-cell experiment
through the installed command, cold and warm.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CARDS = (("cuda", 75, 32), ("cuda", 86, 32), ("cuda", 90, 32), ("hip", "gfx942", 64))
TILES = (16, 32)
ROUNDS = 3


def main() -> None:
    """Measure and print."""
    import triton

    os.environ["MLIR_DISABLE_MULTITHREADING"] = "1"  # as in the command's own children
    print(f"Python {platform.python_version()}, {platform.system()} {platform.release()}, Triton {triton.__version__}")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for card in CARDS:
        rows = [_cell(card, tile) for tile in TILES]
        for tile, (first, later, whole, same) in zip(TILES, rows, strict=True):
            print(
                f"{card[1]!s:>7} tile {tile}: first ledger {first * 1e3:5.0f} ms, later in a grid {later * 1e3:5.0f} ms, "
                f"whole {whole * 1e3:6.0f} ms, {whole / first:5.1f} and {whole / later:5.1f} times, "
                f"{'same figure' if same else 'FIGURES DIFFER'}"
            )
        ratios = [whole / later for _, later, whole, _ in rows]
        print(f"{card[1]!s:>7} ratio of a grid's cell: median {statistics.median(ratios):.1f}")
    _grid()


def _cell(card: tuple[str, Any, int], tile: int) -> tuple[float, float, float, bool]:
    """Compile one cell both ways, in turns, and return the best time of each, in seconds.

    The first ledger of a source runs Triton's front end; later cells of a grid that differ in launch
    options alone share its work. The whole compilation has no cache.
    """
    import triton

    from oortriage.gpu.virtual import front_end
    from oortriage.gpu.virtual.adapter import Target, allocate, gpu_target
    from oortriage.gpu.virtual.driver import Card
    from oortriage.gpu.virtual.module_text import read_ledger
    from oortriage.gpu.virtual.session import Session
    from oortriage.kernels.libraries import NoLibrary
    from oortriage.kernels.registry import find_recipe

    target = Target(*card)
    recipe = find_recipe("reference.attention")
    shape, _ = recipe.shape({"dtype": "float32", "head_size": 256, "tile": tile})
    session = Session(Card(target, 1 << 20))
    with session.run():
        recipe.call(NoLibrary(), shape)
    launch = session.launches[-1]

    def ledger() -> float:
        start = time.perf_counter()
        allocation = allocate(launch.source, target, launch.options)
        read_ledger(allocation.text, allocation.shared_bytes, allocation.measure)
        return time.perf_counter() - start

    first, later, whole = [], [], []
    for _ in range(ROUNDS):
        front_end.forget()
        first.append(ledger())
        later.append(ledger())
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TRITON_CACHE_DIR"] = folder
            start = time.perf_counter()
            compiled = triton.compile(launch.source, target=gpu_target(target), options=launch.options)
            whole.append(time.perf_counter() - start)
    return min(first), min(later), min(whole), compiled.metadata.shared == launch.allocation.shared_bytes


def _grid() -> None:
    command = [
        str(Path(sys.executable).with_name("oortriage")),
        *[
            "experiment",
            "--kernel",
            "reference.attention",
            "--gpu",
            "T4",
            "--dtype",
            "float32",
            "--head-size",
            "256",
            "--format",
            "csv",
        ],
        *["--vary", "num_stages=1,2,3", "--vary", "TILE_SIZE=16,32,64,128", "--vary", "num_warps=1,2,4,8"],
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("cold", "warm"):
            start = time.perf_counter()
            done = subprocess.run(
                command, env={**os.environ, "OORTRIAGE_CACHE": folder}, capture_output=True, text=True, check=True
            )
            print(f"experiment of {done.stdout.count(chr(10)) - 1} cells, {name}: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
