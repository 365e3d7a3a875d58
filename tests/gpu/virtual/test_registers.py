"""Registers and spills: what assemblers print is read, and kernels are assembled for cards that are not there."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from oortriage.gpu.virtual import registers
from oortriage.gpu.virtual.adapter import Target, ptxas_path
from oortriage.gpu.virtual.driver import Card
from oortriage.gpu.virtual.registers import assemble, read_ptxas
from oortriage.kernels.registry import find_recipe
from oortriage.replay.child import run_job
from oortriage.replay.compiler_env import CompilerEnv, compiler_env
from oortriage.replay.job import Cell, Job, Outcome, Registers
from tests.gpu.virtual.compiling import B200, MI300, T4, environment

LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'attention' for 'sm_75'
ptxas info    : Function properties for attention
    2344 bytes stack frame, 2568 bytes spill stores, 2280 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 2344 bytes cumulative stack size, 24 bytes smem, 440 bytes cmem[0]
ptxas info    : Compile time = 250.000 ms
"""

FUNCTIONS = """\
ptxas info    : Function properties for helper
    16 bytes stack frame, 4 bytes spill stores, 900 bytes spill loads
ptxas info    : Function properties for kernel
    0 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 90 registers, 400 bytes cmem[0]
ptxas info    : Used 64 registers
"""

#: The end of AMD's assembly, shortened.
METADATA = """\
; NumVgprs: 96
amdhsa.kernels:
  - .agpr_count:     0
    .group_segment_fixed_size: 128
    .private_segment_fixed_size: 380
    .sgpr_count:     40
    .sgpr_spill_count: 3
    .vgpr_count:     512
    .vgpr_spill_count: 95
"""


def test_what_ptxas_prints_of_a_kernel() -> None:
    assert read_ptxas(LOG) == {
        "registers": 255,
        "spill_stores": 2_568,
        "spill_loads": 2_280,
        "stack": 2_344,
        "static_shared": 24,
    }


def test_of_several_functions_the_largest_counts() -> None:
    found = read_ptxas(FUNCTIONS)
    assert (found["registers"], found["spill_stores"], found["spill_loads"], found["stack"]) == (90, 8, 900, 16)


@pytest.mark.parametrize("log", ["", "ptxas fatal : Unresolved extern function", "Used registers"])
def test_nothing_printed_is_nothing_used(log: str) -> None:
    assert set(read_ptxas(log).values()) == {0}


def test_amd_states_it_in_its_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registers, "machine_code", lambda *_: (METADATA, 0))
    assert assemble(None, MI300, {}) == {
        "registers": 512,
        "spill_stores": 380,
        "spill_loads": 380,
        "stack": 380,
        "static_shared": 128,
        "assembler": "LLVM",
    }


def program(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_target_is_the_one_the_text_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ptxas = program(tmp_path / "ptxas", 'echo "Used 7 registers for $2" >&2; echo "Cuda, release 12.8, V12.8.93"')
    monkeypatch.setattr(registers, "machine_code", lambda *_: (".version 8.7\n.target sm_90a\n", 0))
    monkeypatch.setattr(registers, "ptxas_path", lambda _target: ptxas)
    found = assemble(None, Target("cuda", 90, 32), {})
    assert (found["registers"], found["assembler"]) == (7, "ptxas 12.8.93")


def test_a_refusal_is_told_in_the_words_of_the_assembler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ptxas = program(tmp_path / "ptxas", 'echo "ptxas error : Entry function uses too much" >&2; exit 255')
    monkeypatch.setattr(registers, "machine_code", lambda *_: ("no target", 0))
    monkeypatch.setattr(registers, "ptxas_path", lambda _target: ptxas)
    with pytest.raises(RuntimeError, match="ptxas error : Entry function uses too much"):
        assemble(None, T4, {})


def test_releases_ask_for_their_assembler_in_two_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    from triton.backends.nvidia import compiler

    class Tool:
        path = "/opt/cuda/bin/ptxas"

    def of_3_4() -> Tool:
        return Tool()

    def of_3_6(arch: int) -> str:
        return f"ptxas for {arch}"

    monkeypatch.setattr(compiler, "get_ptxas", of_3_4)
    assert ptxas_path(T4) == "/opt/cuda/bin/ptxas"
    monkeypatch.setattr(compiler, "get_ptxas", of_3_6)
    assert ptxas_path(B200) == "ptxas for 100"


def assembled(target: Target, env: CompilerEnv, *cells: dict[str, Any], **shape: Any) -> list[Registers]:
    """Assemble the embedded kernel in a child, with overrides a cell."""
    pytest.importorskip("triton")
    recipe = find_recipe("reference.attention")
    full, _assumed = recipe.shape(shape)
    outcomes: list[Outcome] = []
    job = Job(recipe.name, Card(target, 65_536), tuple(Cell(full, cell) for cell in cells), registers=True)
    run_job(job, env, outcomes.append)
    found = []
    for outcome in outcomes:
        assert outcome.failure is None
        assert outcome.largest
        assert outcome.largest.registers
        found.append(outcome.largest.registers)
    return found


WIDE = {"dtype": "float32", "head_size": 256}
TWO_WARPS, SMALL_TILE = {"TILE_SIZE": 32, "num_warps": 2}, {"TILE_SIZE": 16, "num_warps": 4}


def test_a_tile_of_32_spills_with_two_warps_and_one_of_16_with_four_does_not() -> None:
    wide, small = assembled(T4, compiler_env(), TWO_WARPS, SMALL_TILE, **WIDE)
    assert wide.registers == 255
    assert wide.spill_stores > 500
    assert wide.stack > 0
    assert (small.spill_stores, small.spill_loads, small.stack) == (0, 0, 0)
    assert 100 < small.registers < 255
    assert wide.assembler.startswith("ptxas 1")
    assert wide.static_shared == small.static_shared == 0


def test_blackwell_and_amd_are_assembled() -> None:
    (blackwell,) = assembled(B200, compiler_env(), {})
    (amd,) = assembled(MI300, compiler_env(), {})
    assert 30 < blackwell.registers < 256
    assert (amd.assembler, amd.stack) == ("LLVM", 0)
    assert 64 <= amd.registers <= 512


@pytest.mark.index
@pytest.mark.parametrize(("release", "assembler"), [("3.4.0", "ptxas 12"), ("3.9.0", "ptxas 13")])
def test_other_releases_assemble(release: str, assembler: str) -> None:
    (blackwell,) = assembled(B200, environment(release), {})
    assert 30 < blackwell.registers < 256
    assert blackwell.assembler.startswith(assembler)
