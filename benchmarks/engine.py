"""The engine layer for several rules at once on one card; writes a table and the verifications.

Run where vLLM is: ``python benchmarks/engine.py --vllm-source DIR --to FOLDER``. Each rule is one
``oortriage patch verify --engine`` of its own; they run beside each other, for nothing here is timed.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

#: Name in the table, and what is asked for.
CASES = {
    "T4, TILE16 in the file": ["--dry-run", "--rule", "tile16"],
    "T4, TILE16 by plugin": ["--plugin", "--rule", "tile16"],
    "T4, TILE16-FULL in the file": ["--dry-run", "--rule", "tile16-full"],
    "T4, TILE16-FULL by plugin": ["--plugin", "--rule", "tile16-full"],
    "T4, WARPS2 by plugin": ["--plugin", "--rule", "warps2"],
    "A10, FITTILE by plugin": ["--rule", "fittile", "--engine-gpu", "A10"],
}


def verify(source: Path, asked: list[str], log: Path) -> dict[str, Any]:
    """Run one verification; its progress and errors go to a file."""
    command = [sys.executable, "-m", "oortriage", "patch", "verify", "--vllm-source", str(source)]
    command += ["--engine", "--card", "off", "--gpu", "T4,A10", "--format", "json", *asked]
    begin = time.monotonic()
    with log.open("w", encoding="utf-8") as errors:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, check=False)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        found = {"error": log.read_text(encoding="utf-8")[-2000:]}
    return found | {"exit_code": done.returncode, "wall_seconds": round(time.monotonic() - begin, 1)}


def row(name: str, found: dict[str, Any]) -> list[str]:
    if "error" in found:
        return [f"| {name} | | | {found['error'].strip().splitlines()[-1]} | | |"]
    rows = []
    for run in found["engine"]:
        told = ", ".join(run["reporting"]) or "-"
        ended = f"{[len(one) for one in run['tokens']]} tokens"
        if run["status"] != "generated":
            ended = f"{run['status']}: {run['required_bytes']} of {run['limit_bytes']} bytes at stage {run['stage']}"
        seconds = ", ".join(f"{stage} {one:.0f}" for stage, one in run["seconds"].items())
        rows.append(f"| {name} | {run['form']} | {run['processes']} | {ended} | {told} | {seconds} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vllm-source", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    asked = parser.parse_args()
    asked.to.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(len(CASES)) as pool:
        waiting = {
            name: pool.submit(verify, asked.vllm_source, case, asked.to / f"case{index}.log")
            for index, (name, case) in enumerate(CASES.items())
        }
        found = {name: one.result() for name, one in waiting.items()}
    about = {"date": dt.datetime.now(dt.timezone.utc).date().isoformat(), "cases": found}
    (asked.to / "engine.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    lines = [
        "| case | form | processes | how it ended | processes that report the policy | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name, one in found.items():
        lines += row(name, one)
    (asked.to / "engine.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    for name, one in found.items():
        print(
            name,
            one["exit_code"],
            one["wall_seconds"],
            [(layer["name"], layer["status"]) for layer in one.get("layers", [])],
        )


if __name__ == "__main__":
    main()
