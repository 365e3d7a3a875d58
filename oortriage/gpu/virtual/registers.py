"""Registers and spills: on to machine code, with the assembler that Triton's own wheel carries."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from oortriage.gpu.virtual.adapter import Target, machine_code, ptxas_path


def assemble(source: Any, target: Target, options: dict[str, Any]) -> dict[str, Any]:
    """Assemble a kernel for its real target; no card is needed.

    Returns:
        registers (a thread), spill_stores and spill_loads (bytes a thread), stack (bytes a thread),
        static_shared (bytes a block), assembler (its name and version).

    Raises:
        RuntimeError: the assembler refuses the kernel; the message is its own.
    """
    text, _shared = machine_code(source, target, options)
    return _nvidia(text, target) if target.backend == "cuda" else _amd(text)


def _nvidia(ptx: str, target: Target) -> dict[str, Any]:
    program = ptxas_path(target)
    named = re.search(r"^\.target (sm_\w+)", ptx, re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.ptx")
        path.write_text(ptx, encoding="utf-8")
        done = subprocess.run(  # noqa: S603 (Triton's own program on a file of ours)
            [program, "-v", f"--gpu-name={named.group(1) if named else target.name}", str(path), "-o", f"{path}.o"],
            capture_output=True,
            text=True,
            check=False,
        )
        stated = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    version = re.search(r"V([\d.]+)", stated.stdout)
    return {**read_ptxas(done.stderr), "assembler": f"ptxas {version.group(1) if version else '?'}"}


def read_ptxas(log: str) -> dict[str, int]:
    """Read what ``ptxas -v`` prints of the entry function (the largest, where there are several)."""

    def largest(pattern: str) -> int:
        return max((int(one) for one in re.findall(pattern, log)), default=0)

    return {
        "registers": largest(r"Used (\d+) registers"),
        "spill_stores": largest(r"(\d+) bytes spill stores"),
        "spill_loads": largest(r"(\d+) bytes spill loads"),
        "stack": largest(r"(\d+) bytes stack frame"),
        "static_shared": largest(r"(\d+) bytes smem"),
    }


def _amd(assembly: str) -> dict[str, Any]:
    """Read the metadata that LLVM writes at the end of AMD's assembly.

    It counts spilled registers of a lane; each is four bytes, stored once and loaded at least once.
    """

    def value(name: str) -> int:
        found = re.search(rf"\.{name}:\s+(\d+)", assembly)
        return int(found.group(1)) if found else 0

    spilled = 4 * value("vgpr_spill_count")
    return {
        "registers": value("vgpr_count"),
        "spill_stores": spilled,
        "spill_loads": spilled,
        "stack": value("private_segment_fixed_size"),
        "static_shared": value("group_segment_fixed_size"),
        "assembler": "LLVM",
    }
