"""What ``oortriage run`` costs: a launch that succeeds, the start of Python, and a failure that is captured.

Kernels are launched through Triton's own launch path, as on a card; only the driver is a stand-in that launches
nothing (``oortriage.gpu.virtual``), so that what is measured is Triton's part and the hook's. Processes with and
without the hook take turns; the smallest of each counts, since what else runs on a machine only ever adds. A
launch is measured in CPU time. ``python benchmarks/capture.py --rounds 9``; ``--check`` fails where a claim of
docs/performance.md is missed; on a machine with a card, ``--card`` launches on it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from oortriage.capture.environment import capture_variables

ROOT = Path(__file__).resolve().parents[1]
LAUNCHES = 20_000
#: A launch with the hook may cost so many times one without: the spread of a busy machine, nothing of ours.
MOST_LAUNCH = 1.05

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def copy(X, Y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(Y + i, tl.load(X + i, mask=i < n), mask=i < n)

@triton.jit
def product(X, Y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(X + i[:, None] * n + i[None, :])
    tl.store(Y + i[:, None] * n + i[None, :], tl.dot(a, a))
"""
PROGRAM = """
import json, sys, time
import triton
import kernel
limit, card = int(sys.argv[1]), sys.argv[2] == "card"
if card:
    import torch
    x, y = torch.zeros(1 << 20, device="cuda", dtype=torch.float16), torch.zeros(1 << 20, device="cuda")
    if limit < 1 << 20:
        from triton.compiler import compiler
        compiler.max_shared_mem = lambda device: limit
else:
    from oortriage.gpu.virtual.adapter import Target
    from oortriage.gpu.virtual.driver import Card, VirtualDriver
    from oortriage.kernels.mock import Pointer

    class Driver(VirtualDriver):
        launcher_cls = staticmethod(lambda source, metadata: lambda *a, **k: None)

        def __init__(self):
            super().__init__(Card(Target("cuda", 75, 32), limit), 0)
            self.utils.load_binary = lambda *a: (1, 2, 32, 0, 1024)

    triton.runtime.driver.set_active(Driver())
    x, y = Pointer("float16"), Pointer("float32")

if limit < 1 << 20:
    for size in (32, 64):  # the first loads what every first kernel of a process loads
        began = time.perf_counter()
        try:
            kernel.product[(1,)](x, y, 512, B=size)
        except triton.runtime.errors.OutOfResources:
            took = time.perf_counter() - began
    print(json.dumps(took))
    sys.exit()
launch = kernel.copy[(4,)]
for _ in range(200):
    launch(x, y, 4096, B=1024)
best = []
for _ in range(20):
    began = time.process_time()
    for _ in range({launches} // 20):
        launch(x, y, 4096, B=1024)
    best.append((time.process_time() - began) / ({launches} // 20))
    if card:
        torch.cuda.synchronize()
print(json.dumps(min(best)))
"""


def seconds(folder: Path, arguments: list[str], *, hooked: bool) -> tuple[float, str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), "TRITON_CACHE_DIR": str(folder / "t")}
    for name in ("OORTRIAGE_CAPTURE", "PYTHONDONTWRITEBYTECODE"):  # an installed package has its bytecode
        env.pop(name, None)
    if hooked:
        env |= capture_variables(folder / "capsules", env)
    began = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], env=env, cwd=folder, capture_output=True, text=True, check=True)
    return time.perf_counter() - began, done.stdout


def turns(folder: Path, arguments: list[str], rounds: int, *, printed: bool) -> dict[str, list[float]]:
    """Run with and without the hook in turn; what counts is what the program prints, or its whole time."""
    found: dict[str, list[float]] = {"without": [], "with": []}
    for number in range(rounds + 1):
        for name in ("without", "with") if number % 2 else ("with", "without"):
            whole, text = seconds(folder, arguments, hooked=name == "with")
            if number:  # the first round fills caches
                found[name].append(json.loads(text) if printed else whole)
    return found


def row(what: str, found: dict[str, list[float]], unit: float, name: str) -> float:
    without, with_ = (min(found[one]) for one in ("without", "with"))
    spread = statistics.median(found["without"]) / without
    print(
        f"| {what} | {without / unit:.2f} {name} | {with_ / unit:.2f} {name} | {with_ / without:.3f} | {spread:.2f} |"
    )
    return with_ / without


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--card", action="store_true")
    given = parser.parse_args()
    where = "card" if given.card else "none"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernel.py").write_text(KERNEL)
        (folder / "program.py").write_text(PROGRAM.replace("{launches}", str(LAUNCHES)))
        print("| | without | with the hook | ratio | median / smallest, without |\n|---|---|---|---|---|")
        launch = turns(folder, ["program.py", str(1 << 30), where], given.rounds, printed=True)
        ratio = row("one launch that succeeds", launch, 1e-6, "us")
        row("`python -c pass`", turns(folder, ["-c", "pass"], given.rounds, printed=False), 1e-3, "ms")
        row("`import triton`", turns(folder, ["-c", "import triton"], given.rounds, printed=False), 1e-3, "ms")
        row(
            "a launch that fails (compiled before)",
            turns(folder, ["program.py", "1000", where], given.rounds, printed=True),
            1e-3,
            "ms",
        )
    if given.check and ratio > MOST_LAUNCH:
        sys.exit(f"a launch costs {ratio:.3f} times one without the hook; the claim is {MOST_LAUNCH}")


if __name__ == "__main__":
    main()
