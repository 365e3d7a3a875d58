"""Compiles cells twice: stopped after allocation, and whole. A child process: compilers crash, and say goodbye at length.

Cells come on standard input as JSON, answers go to standard output, one line each.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from typing import Any

import msgspec

from oortriage.gpu.virtual.adapter import Allocation, Target, allocate, gpu_target, machine_code
from oortriage.gpu.virtual.module_text import read_ledger
from oortriage.ledger.allocation import Ledger

#: Arguments of the kernels in ``kernels.py`` that are neither pointers to the cell's type nor integers.
_POINTERS = ("a", "b", "x", "out", "queries", "keys", "values")
_TYPES = {
    "c": "*fp32",
    "y": "*fp32",
    "counts": "*i32",
    "block_table": "*i32",
    "lengths": "*i32",
    "starts": "*i32",
    "scale": "fp32",
    "a_scale": "*u8",
    "b_scale": "*u8",
}


class Twice(msgspec.Struct, frozen=True):
    """One kernel for one target: ``dtype`` as Triton writes it, ``constants`` and launch ``options``."""

    name: str
    kernel: str
    target: Target
    dtype: str = "fp16"
    constants: dict[str, Any] = {}
    options: dict[str, Any] = {}
    whole: bool = True


class Answer(msgspec.Struct, frozen=True):
    """Bytes of shared memory, columns of tensor memory and warps, stopped and whole; ledgers of the stopped one.

    ``measured`` is the ledger without the sizes that newer Tritons state. ``text`` is the module.
    """

    name: str
    triton: str = ""
    shared: int = -1
    columns: int = -1
    warps: int = -1
    whole_shared: int = -1
    whole_columns: int = -1
    whole_warps: int = -1
    ledger: Ledger = Ledger((), 0)
    measured: Ledger = Ledger((), 0)
    states_sizes: bool = False
    text: str = ""
    refused: str = ""


def source(cell: Twice) -> Any:
    """Make the compiler's input of a cell: pointers aligned to 16 bytes, integers divisible by 16."""
    from triton.compiler import ASTSource

    function = _function(cell.kernel)
    constants = {name: value for name, value in cell.constants.items() if name in function.arg_names}
    signature = {}
    for name in function.arg_names:
        pointer = f"*{cell.dtype}" if name in _POINTERS else "i32"
        signature[name] = "constexpr" if name in constants else _TYPES.get(name, pointer)
    aligned = {
        (index,): [["tt.divisibility", 16]]
        for index, name in enumerate(function.arg_names)
        if signature[name].startswith("*") or signature[name] == "i32"
    }
    return ASTSource(fn=function, signature=signature, constexprs=constants, attrs=aligned)


def _function(name: str) -> Any:
    if name == "attention":
        from oortriage.kernels.reference_attention import attention

        return attention
    from tests.gpu.virtual import kernels

    return getattr(kernels, name)


def compile_twice(cell: Twice) -> Answer:
    """Compile a cell both ways."""
    import triton

    stopped = allocate(source(cell), cell.target, cell.options)
    answer = Answer(
        cell.name,
        triton.__version__,
        stopped.shared_bytes,
        stopped.tensor_memory_columns,
        stopped.warps,
        ledger=read_ledger(stopped.text, stopped.shared_bytes, stopped.measure),
        measured=_measured(stopped),
        states_sizes="allocation.size" in stopped.text,
        text=stopped.text,
    )
    return msgspec.structs.replace(answer, **_whole(cell)) if cell.whole else answer


def _measured(stopped: Allocation) -> Ledger:
    text = re.sub(r"(?:, )?allocation\.size = \d+ : i32", "", stopped.text)
    return read_ledger(text, stopped.shared_bytes, stopped.measure)


def _whole(cell: Twice) -> dict[str, int]:
    import triton

    if cell.target.backend == "hip":  # up to 3.4 linking needs a ROCm; the figure is known before
        return {"whole_shared": machine_code(source(cell), cell.target, cell.options)[1]}
    metadata = triton.compile(source(cell), target=gpu_target(cell.target), options=cell.options).metadata
    return {
        "whole_shared": metadata.shared,
        "whole_columns": metadata.tmem_size,
        "whole_warps": metadata.num_warps,
    }


def main() -> None:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(TRITON_CACHE_DIR=folder, TRITON_ALWAYS_COMPILE="1")
        for cell in msgspec.json.decode(sys.stdin.buffer.read(), type=list[Twice]):
            try:
                answer = compile_twice(cell)
            except Exception as problem:  # noqa: BLE001 (the test says which may)
                answer = Answer(cell.name, refused=f"{type(problem).__name__}: {problem}")
            out.write(msgspec.json.encode(answer) + b"\n")
            out.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
