"""A stopped compilation gives the figure of a whole one: shared memory, tensor memory and warps."""

from __future__ import annotations

import sys

import pytest

from oortriage.gpu.virtual.adapter import Target, UnsupportedTritonError, ptxas_path, version
from tests.gpu.virtual.both_ways import Answer
from tests.gpu.virtual.compiling import (
    A100,
    B200,
    CELLS,
    H100,
    MI300,
    T4,
    attention,
    both_ways,
    descriptors,
    environment,
    installed,
    other,
    product,
)

#: Cells that every release compiles; the first is the fix of a public report.
OF_EACH_RELEASE = (
    attention(T4, "fp32", 256, 16),
    attention(A100, "fp16", 128, num_stages=3),
    product("matmul", B200, (128, 128, 32), num_stages=3, num_warps=8),
    product("matmul", MI300, (64, 64, 32), num_stages=2),
    descriptors(H100, specialised=True, num_stages=3),
    other("handing_over", T4, N=32, M=32),
    other("handing_over", MI300, N=32, M=32),
    other("calling", A100, BLOCK=64),
)


def same(answer: Answer) -> None:
    assert not answer.refused
    assert answer.shared == answer.whole_shared
    assert answer.columns == max(answer.whole_columns, 0)
    assert answer.whole_warps in (answer.warps, -1)


@pytest.mark.parametrize("name", [cell.name for cell in CELLS])
def test_the_stopped_figure_is_that_of_the_whole_compilation(name: str) -> None:
    same(installed()[name])


def test_the_figures_are_those_of_a_public_report_and_of_its_fix() -> None:
    shared = {name: answer.shared for name, answer in installed().items()}
    assert shared["attention sm_75 fp32 head 256 tile 32 num_stages=3"] == 81_920
    assert shared["attention sm_75 fp32 head 256 tile 16"] == 49_152
    assert shared["copying sm_75"] == 0


def test_warp_specialisation_launches_more_warps_than_it_is_given() -> None:
    answers = installed()
    assert answers["descriptors sm_90 specialised num_stages=3"].warps == 12
    assert answers["descriptors sm_90 num_stages=3"].warps == 4


def test_blackwell_takes_tensor_memory() -> None:
    answers = installed()
    assert answers["matmul sm_100 fp16 (128, 128, 32) num_stages=3 num_warps=8"].columns == 128
    assert answers["scaled sm_100 fp8e4nv (128, 128, 128)"].columns == 256
    assert answers["matmul sm_120 fp8e4nv (64, 128, 64) num_stages=2"].columns == 0


@pytest.mark.index
@pytest.mark.parametrize("release", ["3.4.0", "3.9.0"])
def test_other_releases_agree_with_themselves(release: str) -> None:
    pytest.importorskip("triton")
    answers = both_ways(OF_EACH_RELEASE, environment(release))
    for answer in answers.values():
        assert answer.triton == release
        same(answer)
        assert answer.ledger.residual == 0
    assert answers["attention sm_75 fp32 head 256 tile 16"].shared == 49_152
    if release == "3.9.0":  # it states sizes of scratch; what we measure is what it states
        assert any(answer.states_sizes for answer in answers.values())
        for answer in answers.values():
            for stated, measured in zip(answer.ledger.buffers, answer.measured.buffers, strict=True):
                assert measured.bytes == stated.bytes or (not measured.exact and measured.bytes > stated.bytes), (
                    measured
                )
                assert measured.exact or measured.op == "amdg.buffer_atomic_rmw"


@pytest.mark.parametrize(("arch", "blackwell"), [(75, False), (80, False), (100, True), (120, True)])
def test_blackwell_has_an_assembler_of_its_own(arch: int, blackwell: bool) -> None:
    pytest.importorskip("triton")
    path = ptxas_path(Target("cuda", arch, 32))
    assert path.endswith("ptxas-blackwell" if blackwell else "ptxas")


def test_names_are_those_people_type() -> None:
    assert (Target("cuda", 75, 32).name, Target("hip", "gfx942", 64).name) == ("sm_75", "gfx942")


def test_no_triton_is_said_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(UnsupportedTritonError, match=r"pip install 'oortriage\[triton\]'"):
        version()


def test_an_old_triton_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    triton = pytest.importorskip("triton")
    monkeypatch.setattr(triton, "__version__", "3.3.1")
    with pytest.raises(UnsupportedTritonError, match=r"3\.3\.1 is older than 3\.4"):
        version()
    monkeypatch.setattr(triton, "__version__", "3.10.0+git1234")
    assert version() == "3.10.0+git1234"
