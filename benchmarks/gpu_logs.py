"""Make real failure logs on a CUDA card: Triton OutOfResources, torch OOM, a recovered autotune.

Usage: ``python benchmarks/gpu_logs.py OUT_DIR [CASE...]``. Each case runs in a process of its own, and what it
prints on stdout and stderr is the log. The fixtures ``fixtures/runs/h200-*`` were made by it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

_HEAD = """
import torch, triton, triton.language as tl
print(f"torch {torch.__version__}, triton {triton.__version__}, {torch.cuda.get_device_name(0)}", flush=True)
"""

_MATMUL = """
@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(a + rm[:, None] * K + rk[None, :])
        y = tl.load(b + rk[:, None] * N + rn[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + rm[:, None] * N + rn[None, :], acc)

a = torch.randn(1024, 1024, device="cuda")
b = torch.randn(1024, 1024, device="cuda")
c = torch.empty(1024, 1024, device="cuda")
"""

CASES = {
    "triton-out-of-resources": _HEAD
    + _MATMUL
    + """
for tile in (32, 64, 128):
    matmul_kernel[(1024 // tile, 1024 // tile)](a, b, c, 1024, 1024, 1024, tile, tile, tile, num_stages=4)
    torch.cuda.synchronize()
    print(f"tile {tile} ok, error {(c - a @ b).abs().max().item():.3g}", flush=True)
""",
    "triton-threads": _HEAD
    + """
@triton.jit
def fill(out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, at)

out = torch.empty(65536, device="cuda", dtype=torch.int32)
fill[(1,)](out, 65536, num_warps=64)
""",
    "triton-autotune-recovered": _HEAD
    + """
import os
os.environ["TRITON_PRINT_AUTOTUNING"] = "1"
"""
    + _MATMUL
    + """
configs = [triton.Config({"BM": t, "BN": t, "BK": k}, num_stages=s, num_warps=4)
           for t in (64, 128, 256) for k in (64, 128) for s in (2, 4)]
tuned = triton.autotune(configs, key=["M", "N", "K"])(matmul_kernel)
for step in range(3):
    tuned[lambda meta: (1024 // meta["BM"], 1024 // meta["BN"])](a, b, c, 1024, 1024, 1024)
    torch.cuda.synchronize()
    print(f"step {step}: max error {(c - a @ b).abs().max().item():.3g}", flush=True)
print("finished", flush=True)
""",
    "inductor-autotune-recovered": _HEAD
    + """
torch.set_float32_matmul_precision("high")
@torch.compile(mode="max-autotune-no-cudagraphs")
def step(x, y):
    return torch.relu(x @ y)
x = torch.randn(2048, 2048, device="cuda")
y = torch.randn(2048, 2048, device="cuda")
for i in range(3):
    out = step(x, y)
    torch.cuda.synchronize()
    print(f"step {i}: loss={out.mean().item():.4f}", flush=True)
print("finished", flush=True)
""",
    "flex-attention-block-256": _HEAD
    + """
from torch.nn.attention.flex_attention import flex_attention
flex = torch.compile(flex_attention)
q, k, v = (torch.randn(1, 4, 2048, 256, device="cuda") for _ in range(3))
print(flex(q, k, v).shape, flush=True)
print(flex(q, k, v, kernel_options={"BLOCK_M": 128, "BLOCK_N": 128, "num_stages": 4}).shape, flush=True)
""",
    "torch-oom-plain": _HEAD
    + """
held = []
for step in range(1000):
    held.append(torch.empty(6 * 2**30, dtype=torch.uint8, device="cuda"))
    print(f"step {step}: allocated {torch.cuda.memory_allocated() / 2**30:.2f} GiB", flush=True)
""",
    # Pieces of 6 MiB share segments of 20 MiB; with one of three kept no segment can be given back.
    "torch-oom-fragmentation": _HEAD
    + """
held = []
try:
    while True:
        held.append(torch.empty(6 * 2**20, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError:
    pass
held = held[::3]
print(f"{len(held)} pieces of 6 MiB kept, two of three freed", flush=True)
torch.empty(4 * 2**30, dtype=torch.uint8, device="cuda")
""",
    "torch-oom-other-process": _HEAD
    + """
import subprocess, sys
hog = subprocess.Popen([sys.executable, "-c",
    "import torch, time; x = torch.empty(int(torch.cuda.get_device_properties(0).total_memory * 0.7), "
    "dtype=torch.uint8, device='cuda'); print('hog ready', flush=True); time.sleep(120)"],
    stdout=subprocess.PIPE, text=True)
print(hog.stdout.readline().strip(), flush=True)
try:
    held = [torch.empty(8 * 2**30, dtype=torch.uint8, device="cuda") for _ in range(20)]
finally:
    hog.kill()
""",
    "torch-oom-fraction": _HEAD
    + """
torch.cuda.set_per_process_memory_fraction(0.05)
torch.empty(10 * 2**30, dtype=torch.uint8, device="cuda")
""",
    "torch-oom-retried": _HEAD
    + """
batch = 4096
while True:
    try:
        x = torch.empty(batch, 2**26, dtype=torch.uint8, device="cuda")
        break
    except torch.OutOfMemoryError as problem:
        print(f"batch {batch} failed: {problem}", flush=True)
        batch //= 2
        torch.cuda.empty_cache()
        print(f"retrying with batch size {batch}", flush=True)
for step in range(5):
    print(f"step {step}: loss={1 / (step + 1):.3f} batch={batch}", flush=True)
print("finished", flush=True)
""",
    "torch-absurd": _HEAD
    + """
x = torch.randn(1, 2**20, device="cuda")
print((x.T @ x).shape, flush=True)
torch.empty((2**30, 2**20), device="cuda")
""",
    "clean": _HEAD
    + """
x = torch.randn(4096, 4096, device="cuda")
for step in range(3):
    x = torch.tanh(x @ x)
    print(f"step {step}: allocated {torch.cuda.memory_allocated()} of {torch.cuda.mem_get_info()[1]} bytes", flush=True)
print("no CUDA out of memory this time", flush=True)
""",
}


def main() -> None:
    """Run every case and write its log."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    chosen = sys.argv[2:] or list(CASES)
    for name in chosen:
        source = CASES[name]
        script = folder / f"{name}.py"
        script.write_text(textwrap.dedent(source), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-u", script.name],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TRITON_PRINT_AUTOTUNING": "1"},
            timeout=240,
            check=False,
        )
        (folder / f"h200-{name}.log").write_bytes(done.stdout)
        script.unlink()
        print(name, "exit", done.returncode, len(done.stdout), "bytes", flush=True)


if __name__ == "__main__":
    main()
