"""What ``oortriage group`` does in a second, against ``oortriage analyze`` of the same logs one after the other.

The logs are the fixtures, over and over, each copy with a line of its own; both commands run in turn on the same
folder, whole commands with their start. ``python benchmarks/group.py --logs 2000``.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


def lay_out(folder: Path, logs: int) -> int:
    """Copy fixtures until there are so many logs; returns their bytes."""
    sources = sorted(path for path in FIXTURES.rglob("log.*") if path.is_file())
    size = 0
    for number, source in enumerate(itertools.islice(itertools.cycle(sources), logs)):
        data = source.read_bytes() + f"\nhost-{number} done\n".encode()
        place = folder / f"{number // 500:03d}"
        place.mkdir(exist_ok=True)
        (place / f"{number:06d}{source.suffix}").write_bytes(data)
        size += len(data)
    return size


def seconds(arguments: list[str]) -> float:
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "oortriage", *arguments], check=False, stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}")
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        size = lay_out(Path(name), given.logs)
        print(f"{given.logs} logs, {size / 1e6:.1f} MB, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        commands = {
            "analyze --format jsonl": ["analyze", name, "--format", "jsonl", "--exit-zero"],
            "group --jobs 1": ["group", name, "--format", "json", "--jobs", "1"],
            "group": ["group", name, "--format", "json"],
        }
        took: dict[str, list[float]] = {command: [] for command in commands}
        for _ in range(given.rounds):
            for command, arguments in commands.items():
                took[command].append(seconds(arguments))
        base = statistics.median(took["analyze --format jsonl"])
        print("| command | median | logs a second | analyze / it |\n|---|---|---|---|")
        for command, times in took.items():
            middle = statistics.median(times)
            print(f"| `{command}` | {middle:.1f} s | {given.logs / middle:.0f} | {base / middle:.2f} |")
        # Largest of any one process that ended: the command itself or a reader.
        print(f"peak memory of one process: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
