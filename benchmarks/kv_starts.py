"""One real engine start a setting: what vLLM prints about its KV cache, beside what the budget predicts.

``python benchmarks/kv_starts.py measure --out FOLDER`` runs where vLLM can be imported, on a machine with one
NVIDIA card. It starts the engines of ``kv_settings.py`` one after another, each in a process of its own, and
writes ``results.json`` and ``logs.tar.gz`` after each, so that a run that is cut short still has results.
While an engine is on the card, the next one already imports vLLM. It needs nothing but Python's own library.

``python benchmarks/kv_starts.py compare --results FOLDER/results.json --out docs/evidence`` predicts every
setting without a card and writes ``kv-starts.json`` and ``kv-starts.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from kv_settings import COMMON, HELD_OUT, MODELS, SETTINGS, VARIABLES

CLIENT = Path(__file__).with_name("kv_client.py")
NUMBER = r"(-?[\d.]+)"
#: Printed by vLLM 0.22.1; GiB, tokens and requests as they stand in the log.
PRINTED = {
    "total_gib": rf"worker init memory snapshot: .*?total_memory={NUMBER}GiB",
    "free_at_start_gib": rf"Initial free memory: {NUMBER} GiB; Requested memory",
    "requested_gib": rf"Requested memory: [\d.]+ \(util\), {NUMBER} GiB",
    "free_within_requested_gib": rf"\(total\), {NUMBER} GiB \(within requested\)",
    "loading_gib": rf"Model loading took {NUMBER} GiB",
    "weights_gib": rf"weights memory: {NUMBER}GiB",
    "peak_gib": rf"torch peak memory increase: {NUMBER}GiB",
    "non_torch_gib": rf"non-torch forward increase memory: {NUMBER}GiB",
    "non_kv_gib": rf"Total non KV cache memory: {NUMBER}GiB",
    "available_gib": rf"Available KV cache memory: {NUMBER} GiB",
    "kv_tokens": r"GPU KV cache size: ([\d,]+) tokens",
    "concurrency": rf"Maximum concurrency for [\d,]+ tokens per request: {NUMBER}x",
    "max_num_batched_tokens": r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)",
    "needed_gib": rf"max seq len \(\d+\), \({NUMBER} GiB KV cache is needed",
    "estimated_max_len": r"estimated maximum model length is (\d+)",
    "gate_free_gib": rf"Free memory on device [^(]*\({NUMBER}/",
}
ERROR = re.compile(r"^(?:\[\w+\]: |\([^)\n]*\) )?([A-Z]\w*(?:Error|Exception): .+)", re.MULTILINE)


Setting = tuple[str, str, dict[str, Any]]


class Job(NamedTuple):
    """One engine, begun: it waits for ``go``."""

    name: str
    model: str
    arguments: dict[str, Any]
    folder: Path
    child: subprocess.Popen[bytes]

    @property
    def log(self) -> Path:
        """The file that gets all it prints."""
        return self.folder / f"{self.name}.log"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    measuring = steps.add_parser("measure")
    measuring.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "kv-starts")))
    measuring.add_argument("--seconds", type=float, default=460, help="start no new engine after this long")
    measuring.add_argument("--each", type=float, default=90, help="time limit of one engine")
    measuring.add_argument("--only", action="append", default=[], help="a setting's name; may be repeated")
    measuring.add_argument("--held-out", action="store_true", help="the settings that no constant was learnt from")
    measuring.add_argument("--client", type=Path, default=CLIENT, help="the program that starts one engine")
    measuring.add_argument("--alone", action="store_true", help="import nothing while another engine runs")
    comparing = steps.add_parser("compare")
    comparing.add_argument("--results", type=Path, required=True, nargs="+", help="one file or several")
    comparing.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    if asked.step == "compare":
        from kv_compare import compare

        return compare(asked.results, asked.out)
    chosen = [one for one in (HELD_OUT if asked.held_out else SETTINGS) if not asked.only or one[0] in asked.only]
    return measure(asked.out, chosen, asked.seconds, asked.each, asked.client, alone=asked.alone)


def measure(out: Path, wanted: list[Setting], seconds: float, each: float, client: Path, *, alone: bool) -> int:
    """Start every engine; 1 when none of them got anywhere."""
    began, results = time.monotonic(), list[dict[str, Any]]()
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="kv-starts-") as place:
        waiting: list[Job] = []
        try:
            for index, setting in enumerate(wanted):
                if time.monotonic() - began > seconds:
                    break
                job = waiting.pop() if waiting else _begin(setting, Path(place), client)
                time_left = time.monotonic() - began + each / 2 < seconds
                if not alone and time_left and index + 1 < len(wanted):
                    waiting.append(_begin(wanted[index + 1], Path(place), client))
                results.append(_finish(job, each))
                print(_line(results[-1], time.monotonic() - began), flush=True)
                _write(out, Path(place), results, [one[0] for one in wanted[index + 1 :]])
        finally:
            for job in waiting:
                _end(job.child)
    return 0 if any(one["printed"] for one in results) else 1


def _begin(setting: Setting, place: Path, client: Path) -> Job:
    """Start the process; it imports vLLM, then waits for ``go``."""
    name, model, own = setting
    folder = place / name
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "config.json").write_text(json.dumps(MODELS[model], indent=1), encoding="utf-8")
    arguments = {**COMMON, "dtype": MODELS[model]["torch_dtype"], **own, "model": str(folder / "model")}
    job = {"arguments": arguments, "notes": str(folder / "notes.json"), "go": str(folder / "go")}
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    program = folder / "kv_client.py"  # apart from this folder's other modules, whose names vLLM might look for
    shutil.copyfile(client, program)
    # The cache is shared: it holds what vLLM found out about a model's class.
    variables = {**os.environ, **VARIABLES, "VLLM_CACHE_ROOT": str(place / "cache")}
    variables["VLLM_CONFIG_ROOT"] = str(place / "config")
    with (folder / f"{name}.log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, str(program), str(folder / "job.json")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=variables,
            cwd=folder,
            start_new_session=True,
        )
    return Job(name, model, own, folder, child)


def _finish(job: Job, each: float) -> dict[str, Any]:
    """Let an engine have the card, wait for it, and read what it left."""
    began = time.monotonic()
    (job.folder / "go").touch()
    exit_code: int | None = None
    with contextlib.suppress(subprocess.TimeoutExpired):
        exit_code = job.child.wait(timeout=each)
    _end(job.child)
    text = job.log.read_text(encoding="utf-8", errors="replace")
    try:
        notes = json.loads((job.folder / "notes.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        notes = {}
    return {
        "setting": job.name,
        "model": job.model,
        "arguments": job.arguments,
        "status": "timed out" if exit_code is None else "started" if exit_code == 0 else "refused or failed",
        "exit_code": exit_code,
        "seconds": round(time.monotonic() - began, 1),
        "printed": read_printed(text),
        "noted": notes,
        "error": read_error(text) if exit_code else "",
    }


def read_error(text: str) -> str:
    """Read the first exception of a log; those after it are its consequences."""
    found = ERROR.search(text)
    return found[1][:600] if found else ""


def read_printed(text: str) -> dict[str, float]:
    """Read the figures of a log; the last of several, for vLLM may say a thing again once it knows better."""
    found = {}
    for name, pattern in PRINTED.items():
        if values := re.findall(pattern, text):
            found[name] = float(values[-1].replace(",", "").rstrip("."))
    return found


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _line(result: dict[str, Any], elapsed: float) -> str:
    printed = result["printed"]
    told = ", ".join(f"{name} {printed[name]:g}" for name in ("available_gib", "kv_tokens") if name in printed)
    return f"{elapsed:5.0f} s  {result['setting']}: {result['status']}; {told} {result['error'][:160]}"


def _write(out: Path, place: Path, results: list[dict[str, Any]], missing: list[str]) -> None:
    """Write all there is so far; paths of this machine are left out."""
    text = json.dumps({"results": results, "not_run": missing}, indent=1).replace(str(place), "")
    spare = out / "results.json.new"
    spare.write_text(text + "\n", encoding="utf-8")
    spare.replace(out / "results.json")
    with tarfile.open(out / "logs.tar.gz", "w:gz") as packed:
        for result in results:
            packed.add(place / result["setting"] / f"{result['setting']}.log", f"logs/{result['setting']}.log")


if __name__ == "__main__":
    sys.exit(main())
