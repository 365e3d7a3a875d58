"""Start-up and scan speed against named peers, in one interleaved run: ratios, not seconds.

Scan speed is the time that more bytes cost, for each tool alike: the time for a large log less the time for
its last part alone, with the failure that ends it. What oortriage does with the stretches it keeps, a bounded
amount, is in the times of the whole commands.

Usage: ``python benchmarks/run.py [--rounds N] [--megabytes N] [--check]``. With ``--check`` it ends with 1
where a ratio or the memory misses what ``docs/performance.md`` claims.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from make_log import write

from oortriage.evidence.loader import built_in_rules

#: Claims: the greatest ratio of wall time to the peer's, and of resident memory in MB.
START_UP = 6.0
SCAN = 1.0
#: The part of the large log whose time is taken off: more than oortriage keeps of any log.
PART = 0.1
MEMORY_MB = 150
#: The pass over a large log that finds the stretches worth reading closely: what grep does.
FIRST_PASS = "oortriage, first pass only"
KEEP = """
import sys
from oortriage.evidence.loader import built_in_rules
from oortriage.intake.source import Notes, read_chunks
from oortriage.intake.window import Anchors, Gate, keep
rules = built_in_rules()
events = tuple(anchor for rule in rules if rule.is_event for anchor in rule.anchors)
facts = tuple(anchor for rule in rules if not rule.is_event for anchor in rule.anchors)
keep(read_chunks(sys.argv[1], Notes()), Gate(Anchors(events, facts)))
"""


def timed(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Run a command with its output through a pipe; return wall seconds and peak resident MB."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    assert child.stdout
    child.stdout.read()
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def compare(jobs: dict[str, list[str]], rounds: int) -> dict[str, tuple[float, float, list[float]]]:
    """Run jobs in turn, round by round; return each one's median seconds, peak MB and all times."""
    environment = {**os.environ, "LC_ALL": "C"}
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    for command in jobs.values():
        timed(command, environment)
    for _ in range(rounds):
        for name, command in jobs.items():
            seen[name].append(timed(command, environment))
    return {
        name: (statistics.median(wall for wall, _ in rows), max(peak for _, peak in rows), [wall for wall, _ in rows])
        for name, rows in seen.items()
    }


def report(title: str, results: dict[str, tuple[float, float, list[float]]], ours: str) -> dict[str, float]:
    """Print a table and return our ratio to each peer: the median over rounds of ours / theirs."""
    print(f"\n{title}")
    print(f"  {'command':34} {'median s':>9} {'peak MB':>8}  ours / it")
    ratios = {}
    for name, (wall, peak, walls) in results.items():
        ratio = statistics.median(a / b for a, b in zip(results[ours][2], walls, strict=True))
        ratios[name] = ratio
        print(f"  {name:34} {wall:9.3f} {peak:8.0f}  {ratio:6.2f}")
    return ratios


def main() -> None:
    """Run both comparisons and the memory check."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    python = sys.executable
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores")
    misses = []
    with tempfile.TemporaryDirectory() as folder:
        names = ("small.log", "part.log", "large.log", "literals")
        small, part, large, literals = (Path(folder, name) for name in names)
        write(small, 50_000)
        write(large, int(arguments.megabytes * 1e6))
        with large.open("rb") as whole:
            whole.seek(-int(arguments.megabytes * PART * 1e6), os.SEEK_END)
            part.write_bytes(whole.read())
        anchors = {anchor for rule in built_in_rules() for anchor in rule.anchors}
        literals.write_text("\n".join(sorted(anchors | {anchor.lower() for anchor in anchors})), encoding="utf-8")
        analyze = [python, "-m", "oortriage", "analyze"]
        start = compare(
            {
                "oortriage analyze (50 KB)": [*analyze, str(small)],
                "python -c 'import typer, rich'": [python, "-c", "import typer, rich"],
                "python -c pass": [python, "-c", "pass"],
            },
            arguments.rounds,
        )
        ratios = report("start-up", start, "oortriage analyze (50 KB)")
        if ratios["python -c 'import typer, rich'"] > START_UP:
            misses.append("start-up")
        jobs: dict[str, list[str]] = {
            "oortriage analyze": analyze,
            "grep -F -c -f literals": ["grep", "-F", "-c", "-f", str(literals)],
            "wc -l": ["wc", "-l"],
        }
        if ripgrep := shutil.which("rg"):
            jobs["rg -j1 -a -c -F -f literals"] = [ripgrep, "-j1", "-a", "-c", "-F", "-f", str(literals)]
        jobs[FIRST_PASS] = [python, "-c", KEEP]
        ours = "oortriage analyze"
        both = compare(
            {(f"{name} {log.stem}"): [*command, str(log)] for name, command in jobs.items() for log in (part, large)},
            arguments.rounds,
        )
        scan = {name: both[f"{name} {large.stem}"] for name in jobs}
        report(f"whole commands, {arguments.megabytes:g} MB, {len(anchors)} literals and their lower case", scan, ours)
        beyond = {
            name: [
                whole - first
                for whole, first in zip(both[f"{name} {large.stem}"][2], both[f"{name} {part.stem}"][2], strict=True)
            ]
            for name in jobs
        }
        megabytes = arguments.megabytes * (1 - PART)
        ratios = report(
            f"scan alone: what {megabytes:g} MB more cost",
            {name: (statistics.median(walls), scan[name][1], walls) for name, walls in beyond.items()},
            FIRST_PASS,
        )
        if ratios["grep -F -c -f literals"] > SCAN:
            misses.append("scan")
        if scan[ours][1] > MEMORY_MB:
            misses.append("memory")
    if misses and arguments.check:
        sys.exit(f"missed: {', '.join(misses)}")


if __name__ == "__main__":
    main()
