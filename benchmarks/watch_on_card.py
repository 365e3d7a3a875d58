"""``oortriage watch`` on a real card: a process that leaks at a known rate beside one that does not.

``python benchmarks/watch_on_card.py --to FOLDER`` takes about 75 seconds and needs torch with a CUDA device. One child
warms up in steps of a GiB and then takes 20 MiB every half second for good (40 MiB a second); the other takes a pool
and works in it, as a serving engine does. The watch must name the first by its process number, with a slope within
10 % of what the child itself noted, must not fire before the leak began, and must never name the second. Written:
``watch-card.jsonl`` (the recording), ``watch-card.json`` (what came out). Ends with 0 when all of that holds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MIB, GIB = 1 << 20, 1 << 30
STEP_BYTES, STEP_SECONDS = 20 * MIB, 0.5
WATCH = ["--for", "50s", "--window", "20s", "--interval", "250ms"]


def child(kind: str, log: Path) -> None:
    """Run as one of the two processes; note (time, bytes the allocator took from the driver) after each step."""
    import torch

    held = [torch.empty(MIB, dtype=torch.uint8, device="cuda")]
    with log.open("w", encoding="utf-8") as file:

        def note(what: str) -> None:
            print(f"{time.time():.4f} {torch.cuda.memory_reserved()} {what}", file=file, flush=True)

        note("ready")
        time.sleep(4)  # the watch starts meanwhile
        if kind == "flat":
            held.append(torch.empty(8 * GIB, dtype=torch.uint8, device="cuda"))
            square = torch.ones(2048, 2048, device="cuda")
            while True:  # takes and frees within what the allocator holds
                (square @ square).sum().item()
                note("flat")
                time.sleep(0.2)
        for _ in range(6):
            held.append(torch.empty(GIB, dtype=torch.uint8, device="cuda"))
            note("warm-up")
            time.sleep(0.7)
        begin = time.monotonic()
        for step in range(1, 1000):
            time.sleep(max(0.0, begin + step * STEP_SECONDS - time.monotonic()))
            held.append(torch.empty(STEP_BYTES, dtype=torch.uint8, device="cuda"))
            note("leak")


def notes(log: Path) -> list[tuple[float, int, str]]:
    found = []
    for line in log.read_text(encoding="utf-8").splitlines():
        time_, size, what = line.split()
        found.append((float(time_), int(size), what))
    return found


def least_squares(points: list[tuple[float, float]]) -> float:
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


def driver_pids() -> dict[int, int | None]:
    """Ask the driver who holds memory on the first device."""
    import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    try:
        return {one.pid: one.usedGpuMemory for one in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)}
    finally:
        pynvml.nvmlShutdown()


def read_cost(times: int = 200) -> dict[str, float]:
    """Time reading the driver and /proc alone, in this process."""
    from oortriage.watch.sample import Settings
    from oortriage.watch.start import open_sampler

    sampler, _ = open_sampler(Settings(), [], "")
    sampler.read()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        sampler.read()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    sampler.close()
    return {"wall_ms": wall / times * 1000, "cpu_ms": cpu / times * 1000}


def ready(logs: list[Path], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if all(log.exists() and "ready" in log.read_text(encoding="utf-8") for log in logs):
            return True
        time.sleep(0.1)
    return False


def watch(*arguments: str | Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "oortriage", "watch", "--format", "json", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=80, check=False)
    found: dict[str, Any] = json.loads(done.stdout or "{}")
    return found | {"exit_code": done.returncode}


def judge(found: dict[str, Any], leak: int, flat: int, log: Path, before: dict[int, Any]) -> dict[str, Any]:
    """Hold what the watch said against what the child did."""
    steps = [(when, float(size)) for when, size, what in notes(log) if what == "leak"]
    fired = [one for one in found.get("events", []) if one["state"] == "fired"]
    leaks = [one for one in fired if one["code"] == "WD101"]
    result: dict[str, Any] = {
        "leak_pid": leak,
        "flat_pid": flat,
        "driver_pids": sorted(driver_pids()),
        "driver_pids_before": sorted(before),
        "alerts": [{name: one[name] for name in ("code", "message", "time_s")} for one in fired],
        "fired_after_s": leaks[0]["time_s"] - steps[0][0] if leaks else None,
        "cost": found.get("cost"),
    }
    if leaks:
        first = leaks[0]
        numbers = first["numbers"]
        # What the child did in the very span that the fit was made over.
        span = [point for point in steps if first["time_s"] - numbers["span_s"] - 1 <= point[0] <= first["time_s"]]
        true = least_squares(span)
        result |= {
            "named_pid": first.get("pid"),
            "true_bytes_per_s": true,
            "fitted_bytes_per_s": numbers["slope_bytes_per_s"],
            "interval_bytes_per_s": [numbers["slope_low_bytes_per_s"], numbers["slope_high_bytes_per_s"]],
            "error": numbers["slope_bytes_per_s"] / true - 1,
        }
    result["checks"] = {
        "a leak was named": bool(leaks),
        "by the right process number": bool(leaks) and leaks[0].get("pid") == leak,
        "its slope is within 10 %": "error" in result and abs(result["error"]) <= 0.1,
        "nothing fired before the leak began": all(one["time_s"] >= steps[0][0] for one in fired),
        "nothing else was named": {one.get("pid") for one in leaks} <= {leak},
        "it ended with 1": found.get("exit_code") == 1,
    }
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--child", choices=["leak", "flat"])
    parser.add_argument("--log", type=Path)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.log)
    given.to.mkdir(parents=True, exist_ok=True)
    recording = given.to / "watch-card.jsonl"
    recording.unlink(missing_ok=True)
    before = driver_pids()
    logs = {kind: given.to / f"watch-card-{kind}.txt" for kind in ("leak", "flat")}
    for log in logs.values():
        log.unlink(missing_ok=True)
    command = [sys.executable, str(Path(__file__).resolve())]
    children = {kind: subprocess.Popen([*command, "--child", kind, "--log", str(log)]) for kind, log in logs.items()}
    try:
        if not ready(list(logs.values()), 60):
            print("the children did not come up")
            return 2
        found = watch(*WATCH, "--jsonl", recording)
        result = judge(found, children["leak"].pid, children["flat"].pid, logs["leak"], before)
        result["reading"] = read_cost()
    finally:
        for one in children.values():
            one.terminate()
        for one in children.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(timeout=10)
    again = watch("--replay", recording)
    other = watch("--replay", recording, "--pid", children["flat"].pid)
    result["checks"] |= {
        "a replay says the same": again.get("events") == found.get("events"),
        "asked for the other one, it is told as another process": any(
            one["code"] == "WD103" and one.get("pid") == result.get("named_pid") for one in other.get("events", [])
        ),
    }
    result["summary_rows"] = found.get("rows")
    (given.to / "watch-card.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({name: value for name, value in result.items() if name != "summary_rows"}, indent=2))
    return 0 if all(result["checks"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
