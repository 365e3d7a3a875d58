"""Make real memory snapshots on a CUDA card and read them with ``oortriage snapshot``.

``python benchmarks/snapshot_on_card.py OUT`` needs one idle CUDA card, and under a minute. Each case runs in a process
of its own, fills the card with a few large tensors (nothing is computed) until a request fails, and writes the
snapshot; ``OUT`` then holds ``results.json`` and the gzipped pickles. ``tests/snapshot/h200`` was made by it.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

_HEAD = """
import gc, sys, torch
OUT = sys.argv[1]
GIB = 1 << 30
torch.cuda.init()
torch.cuda.memory._record_memory_history(max_entries=2000, stacks="python")

def piece(size):
    return torch.empty(int(size) // 512 * 512, dtype=torch.uint8, device="cuda")

def free():
    return torch.cuda.mem_get_info()[0]

def dump(name):
    torch.cuda.memory._dump_snapshot(f"{OUT}/{name}.pickle")

def at_oom(name):
    # Runs in the allocator at the failure, before anything is unwound.
    torch._C._cuda_attach_out_of_memory_observer(lambda *_: dump(name))
"""

#: What each case shows. ``expect`` is the cause that the program was written to have.
CASES: dict[str, dict[str, Any]] = {
    "capacity": {
        "expect": "capacity",
        "env": {},
        # The second snapshot is written when the exception has been caught and the step's own tensors are gone.
        "files": ["capacity", "capacity-caught"],
        "code": """
def load_weights():
    return [piece(8 * GIB) for _ in range(8)]

def make_cache(left):
    return [piece(4 * GIB) for _ in range(int((free() - left) // (4 * GIB)))]

def step(cache):
    activations = [piece(1.5 * GIB) for _ in range(2)]
    return piece(40 * GIB), activations

at_oom("capacity")
weights = load_weights()
cache = make_cache(left=8 * GIB)
try:
    step(cache)
except torch.OutOfMemoryError as problem:
    print(problem, flush=True)
gc.collect()
dump("capacity-caught")
""",
    },
    "fragmentation": {
        "expect": "fragmentation",
        "env": {},
        "files": ["fragmentation"],
        "code": """
def warm_up(count):
    pieces = [piece(16 * GIB) for _ in range(count)]
    del pieces  # the segments stay in the cache

def serve(count):
    kept, dropped = [], []
    for _ in range(4 * count):
        kept.append(piece(1 * GIB))
        dropped.append(piece(3 * GIB))
    return kept

at_oom("fragmentation")
count = int((free() - 2 * GIB) // (16 * GIB))
filler = piece((free() - count * 16 * GIB - GIB) // (2 << 20) * (2 << 20))
warm_up(count)
kept = serve(count)
try:
    large = piece(8 * GIB)
    print("served", flush=True)
    dump("fragmentation")
except torch.OutOfMemoryError as problem:
    print(problem, flush=True)
""",
    },
    "graph-pool": {
        "expect": "stranded_pool",
        "env": {},
        "files": ["graph-pool"],
        "code": """
def capture(size):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        buffer = piece(size)
        buffer.zero_()
        del buffer
    return graph

at_oom("graph-pool")
room = free()
graph = capture(room * 0.45)
try:
    batch = piece(room * 0.7)
except torch.OutOfMemoryError as problem:
    print(problem, flush=True)
""",
    },
    "mem-pool": {
        "expect": "stranded_pool",
        "env": {},
        "files": ["mem-pool"],
        "code": """
at_oom("mem-pool")
room = free()
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    held = piece(room * 0.05)
    scratch = piece(room * 0.4)
del scratch
try:
    batch = piece(room * 0.7)
except torch.OutOfMemoryError as problem:
    print(problem, flush=True)
""",
    },
    "limit": {
        "expect": "limit",
        "env": {},
        "files": ["limit"],
        "code": """
at_oom("limit")
torch.cuda.set_per_process_memory_fraction(0.05)
try:
    batch = piece(10 * GIB)
except torch.OutOfMemoryError as problem:
    print(problem, flush=True)
""",
    },
}
#: The fragmentation case once more with the remedy that the verdict names: the request must then be served.
CASES["fragmentation-remedied"] = {
    "expect": "served",
    "env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "files": ["expandable"],
    "code": CASES["fragmentation"]["code"].replace('"fragmentation"', '"expandable"'),
}


def main(arguments: list[str]) -> int:
    """Run every case, or those named, and write the results."""
    out = Path(arguments[0])
    out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"card": _card(), "cases": {}}
    for name, case in CASES.items():
        if arguments[1:] and name not in arguments[1:]:
            continue
        results["cases"][name] = _run(case, out)
        (out / "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        print(name, results["cases"][name].get("causes"), f"{results['cases'][name]['seconds']:.1f} s", flush=True)
    good = all(one["as_expected"] for one in results["cases"].values())
    print("every cause as expected" if good else "NOT every cause as expected", flush=True)
    return 0 if good else 1


def _card() -> dict[str, str]:
    code = (
        "import json, torch; p = torch.cuda.get_device_properties(0); print(json.dumps({'gpu': p.name, "
        "'bytes': p.total_memory, 'torch': torch.__version__, 'cuda': torch.version.cuda}))"
    )
    found: dict[str, str] = json.loads(_python(["-c", code]).stdout.splitlines()[-1])
    return found


def _python(arguments: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **(env or {})},
    )


def _run(case: dict[str, Any], out: Path) -> dict[str, Any]:
    """Run one case and read its snapshots."""
    started = time.monotonic()
    # The name of the program stands in every stack: it is the same on every machine.
    folder = Path(tempfile.mkdtemp())
    program = folder / "serve.py"
    program.write_text(textwrap.dedent(_HEAD) + case["code"], encoding="utf-8")
    done = _python([str(program), str(folder)], case["env"])
    found: dict[str, Any] = {
        "expect": case["expect"],
        "message": done.stdout.strip()[-2000:],
        "stderr": done.stderr.strip()[-2000:],
        "reports": {},
    }
    for name in case["files"]:
        pickle = folder / f"{name}.pickle"
        if not pickle.exists():
            found["reports"][name] = {"error": "no snapshot was written"}
            continue
        packed = out / f"{name}.pickle.gz"
        packed.write_bytes(gzip.compress(pickle.read_bytes(), mtime=0))
        # The remedied program fails no more: the question is then whether the same request would be served again.
        asked = _python(["-m", "oortriage", "snapshot", str(packed), "--format", "json"])
        found["reports"][name] = {
            "pickle_bytes": pickle.stat().st_size,
            "exit_code": asked.returncode,
            "report": json.loads(asked.stdout) if asked.stdout.startswith("{") else None,
            "stderr": asked.stderr[-1000:],
        }
    reports = [one.get("report") for one in found["reports"].values()]
    found["causes"] = [_cause(one) for one in reports]
    served = case["expect"] == "served"
    found["as_expected"] = found["message"].endswith("served") if served else set(found["causes"]) == {case["expect"]}
    found["seconds"] = round(time.monotonic() - started, 1)
    return found


def _cause(report: dict[str, Any] | None) -> str:
    judged = [one["verdict"]["cause"] for one in (report or {}).get("devices", []) if one.get("verdict")]
    return judged[0] if judged else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
