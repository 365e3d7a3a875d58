"""Ledgers of compiled kernels add up, and no text makes the reader fail."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.gpu.virtual.module_text import read_ledger
from oortriage.ledger.allocation import Buffer, Ledger, covered, overlaps
from tests.gpu.virtual.compiling import CELLS, FP32_HEAD_256, ROOT, installed

NAMES = [cell.name for cell in CELLS]
KERNEL = ROOT / "oortriage" / "kernels" / "reference_attention.py"


def ledger(name: str) -> Ledger:
    return installed()[name].ledger


def one(name: str, buffer: str) -> Buffer:
    (found,) = [one for one in ledger(name).buffers if one.name == buffer]
    return found


def stated(buffer: Buffer) -> tuple[object, ...]:
    return buffer.role, buffer.shape, buffer.dtype, buffer.bytes, buffer.offset, buffer.copies


@pytest.mark.parametrize("name", NAMES)
def test_the_highest_end_is_the_total(name: str) -> None:
    answer = installed()[name]
    assert answer.ledger.total_bytes == answer.shared
    assert answer.ledger.residual == 0


@pytest.mark.parametrize("name", NAMES)
def test_roles_and_gaps_add_up_to_the_total(name: str) -> None:
    found = ledger(name)
    assert sum(found.by_role.values()) + found.gaps == found.total_bytes
    assert covered(found.buffers) == found.total_bytes - found.gaps
    assert found.gaps < 64  # alignment of barriers


@pytest.mark.parametrize("name", NAMES)
def test_every_buffer_is_exact_and_has_a_name(name: str) -> None:
    buffers = ledger(name).buffers
    assert all(buffer.exact and buffer.bytes > 0 and buffer.name and buffer.op for buffer in buffers)
    assert len({buffer.name for buffer in buffers}) == len(buffers)


@pytest.mark.parametrize("name", NAMES)
def test_who_shares_bytes_is_told_on_both_sides(name: str) -> None:
    buffers = {buffer.name: buffer for buffer in ledger(name).buffers}
    for buffer in buffers.values():
        for other in buffers.values():
            assert (other.name in buffer.shares_with) == (other is not buffer and overlaps(buffer, other))


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_those_of_the_kernel(name: str) -> None:
    for buffer in ledger(name).buffers:
        if buffer.op == "tt.func" or not buffer.line:
            continue
        source = (KERNEL if "attention" in name else ROOT / "tests" / "gpu" / "virtual" / "kernels.py").read_text()
        assert buffer.file.endswith(".py")
        assert source.splitlines()[buffer.line - 1].strip() == buffer.text or buffer.text.startswith(
            source.splitlines()[buffer.line - 1].strip()[:20]
        )


def test_the_bill_of_the_public_report_to_the_byte() -> None:
    name = FP32_HEAD_256.name
    assert stated(one(name, "K")) == ("operand", (256, 32), "f32", 32_768, 0, 1)
    assert stated(one(name, "V")) == ("operand", (32, 256), "f32", 32_768, 32_768, 1)
    assert stated(one(name, "Q")) == ("operand", (16, 256), "f32", 16_384, 65_536, 1)
    assert stated(one(name, "P")) == ("operand", (16, 32), "f32", 2_048, 0, 1)
    assert "K" in one(name, "P").shares_with
    assert not one(name, "Q").shares_with
    lines = KERNEL.read_text().splitlines()
    for variable in "KVQ":
        buffer = one(name, variable)
        assert lines[buffer.line - 1].strip() == buffer.text
        assert buffer.text.startswith(f"{variable} = tl.load(")
        assert buffer.file.endswith("reference_attention.py")
    assert ledger(name).by_role == {"operand": 81_920, "scratch": 0}
    assert ledger(name).gaps == 0


def test_turing_widens_half_precision_and_the_names_stay() -> None:
    name = "attention sm_75 fp16 head 128 tile 32 num_warps=2"
    assert {"K", "V", "Q", "P"} <= {buffer.name for buffer in ledger(name).buffers}
    assert one(name, "Q").dtype == "f32"


def test_copies_of_a_pipeline_lie_behind_each_other() -> None:
    name = "matmul sm_80 fp16 (128, 128, 32) num_stages=4 num_warps=8"
    assert stated(one(name, "left")) == ("pipeline", (128, 32), "f16", 3 * 8_192, 0, 3)
    assert stated(one(name, "right")) == ("pipeline", (32, 128), "f16", 3 * 8_192, 24_576, 3)


def test_barriers_are_told_from_operands() -> None:
    found = ledger("matmul sm_100 fp16 (128, 128, 32) num_stages=3 num_warps=8")
    barriers = [buffer for buffer in found.buffers if buffer.role == "barrier"]
    assert [(buffer.bytes, buffer.dtype) for buffer in barriers] == [(16, "i64")]
    assert found.by_role["barrier"] == 16


def test_an_atomic_operation_whose_result_is_read_has_scratch() -> None:
    found = [buffer for buffer in ledger("handing_over sm_75").buffers if "atomic" in buffer.op]
    assert [(buffer.name, buffer.dtype, buffer.shape, buffer.bytes) for buffer in found] == [
        ("before", "i32", (32,), 128)
    ]


def test_descriptors_and_warp_specialisation_are_measured() -> None:
    buffers = ledger("descriptors sm_100 specialised num_stages=3").buffers
    sizes = {op: {one.bytes for one in buffers if one.op == op} for op in ("ttng.tensormap_create", "tt.func")}
    assert sizes == {"ttng.tensormap_create": {128}, "tt.func": {4}}  # a byte for each waiting warp: 1 + 2 + 1
    (captured,) = [buffer for buffer in buffers if buffer.op == "ttg.warp_specialize"]
    assert 96 <= captured.bytes <= 128
    assert "warp_specialize=SPECIALISED" in captured.text


def test_what_a_called_function_holds_lies_behind_its_caller() -> None:
    buffers = ledger("calling sm_80").buffers
    scans = sorted(buffer.offset for buffer in buffers if buffer.op == "tt.scan")
    assert len(scans) == 2  # at the start it stands where the pipeline will be, in the loop behind it
    assert scans[1] >= max(buffer.end for buffer in buffers if buffer.role == "pipeline")
    assert not any(buffer.op == "tt.call" for buffer in buffers)


MODULE = """\
#blocked = #ttg.blocked<{sizePerThread = [1]}>
#loc = loc("kernel.py":3:0)
module attributes {"ttg.num-warps" = 4 : i32, ttg.shared = 512 : i32} {
  tt.func public @kernel(%x: tensor<64xf32, #blocked>) {
    %a = my.conversion %x, %x {allocation.offset = 0 : i32} : tensor<64xf32, #blocked> -> tensor<64xf32, #blocked> loc(#loc1)
    %b = ttg.convert_layout %a {allocation.offset = 384 : i32} : tensor<64xf32, #blocked> -> tensor<64xf32, #blocked> loc(#loc1)
    tt.return
  }
}
#loc1 = loc("total"(#loc))
"""


def test_what_cannot_be_put_alone_is_bounded_by_the_next_buffer() -> None:
    asked: list[str] = []
    found = read_ledger(MODULE, 512, lambda text: asked.append(text) or 128)
    first, second = found.buffers
    assert (first.bytes, first.exact) == (384, False)
    assert (second.bytes, second.exact) == (128, True)
    assert len(asked) == 1
    assert "tt.return %result : tensor<64xf32, #blocked>" in asked[0]
    assert "allocation" not in asked[0]
    assert "ttg.shared" not in asked[0]


def test_what_the_compiler_does_not_measure_is_bounded_by_the_total() -> None:
    found = read_ledger(MODULE, 512, lambda _text: None)
    assert [(buffer.bytes, buffer.exact) for buffer in found.buffers] == [(384, False), (128, False)]
    assert found.residual == 0


def test_stated_sizes_are_taken_and_nothing_is_asked() -> None:
    def never(_text: str) -> int:
        raise AssertionError

    text = MODULE.replace("offset = 0 : i32", "offset = 0 : i32, allocation.size = 256 : i32").replace(
        "offset = 384 : i32", "offset = 384 : i32, allocation.size = 128 : i32"
    )
    found = read_ledger(text, 512, never)
    assert [(buffer.bytes, buffer.exact) for buffer in found.buffers] == [(256, True), (128, True)]
    assert found.gaps == 128


def test_operands_that_are_named_like_arguments_are_not_mixed_up() -> None:
    asked: list[str] = []
    text = MODULE.replace("%x, %x", "%arg1, %arg0").replace(
        ": tensor<64xf32, #blocked> -> tensor<64xf32, #blocked> loc",
        ": (tensor<64xi8, #blocked>, tensor<64xf32, #blocked>) -> tensor<64xf32, #blocked> loc",
        1,
    )
    read_ledger(text, 512, lambda one: asked.append(one) or 0)
    assert "@alone(%arg0: tensor<64xi8, #blocked>, %arg1: tensor<64xf32, #blocked>)" in asked[0]
    assert "my.conversion %arg0, %arg1 :" in asked[0]


@pytest.mark.parametrize(
    "line", ["%a = ttg.local_alloc %a {allocation.offset = 0 : i32}", "}) {allocation.offset = 7 : i32}"]
)
def test_broken_operations_are_still_listed(line: str) -> None:
    (buffer,) = read_ledger(f"  {line}", 64, lambda _text: None).buffers
    assert not buffer.exact


def test_a_value_made_of_itself_ends() -> None:
    text = "  %a = tt.trans %a\n  %b = ttg.local_alloc %a {allocation.offset = 0 : i32}\n"
    assert len(read_ledger(text, 0, lambda _text: None).buffers) == 1


def test_functions_that_call_each_other_end() -> None:
    functions = [
        f"  tt.func {'public' if not index else 'private'} @f{index}() {{\n"
        + "".join(f"    tt.call @f{other} {{allocation.offset = {other + 1} : i32}}\n" for other in range(5))
        + '    "tt.reduce" {allocation.offset = 1 : i32}\n'
        for index in range(5)
    ]
    assert len(read_ledger("\n".join(functions), 99, lambda _text: None).buffers) < 5_000


PIECES = st.sampled_from(
    [
        "module {\n", "tt.func public @f(", "tt.func private @g(", "tt.call @g", "%a", "%a = ", "%0:2 = ", "#loc", "#loc1 = loc(",
        "loc(#loc1)", '"tt.reduce"(', "({", "})", "ttg.local_alloc ", "ttg.warp_specialize(", "partition0() num_warps(4) {",
        "{allocation.offset = 0 : i32}", "allocation.offset = [3, 4]", "allocation.offset = 99999999999999", "allocation.size = 8 : i32",
        " : ", " -> ", "!ttg.memdesc<3x1xi64, #smem, mutable>", "tensor<2x4xf32, #b>", "tensor<", ">", "(", ")", "\n", " ", '"', "\\", ", ",
    ]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES | st.text(max_size=6), max_size=60).map("".join), st.integers(0, 1 << 20))
def test_no_text_makes_it_fail(text: str, total: int) -> None:
    found = read_ledger(text, total, lambda alone: len(alone) % 999)
    assert sum(found.by_role.values()) + found.gaps == total or found.residual < 0
    assert all(buffer.bytes >= 0 and buffer.offset >= 0 for buffer in found.buffers)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 10_000), st.text(alphabet='()"{}<>#%, \n', max_size=4))
def test_a_damaged_module_is_read_as_far_as_it_goes(at: int, until: int, put: str) -> None:
    text = MODULE * 3
    damaged = text[: at % len(text)] + put + text[until % len(text) :]
    found = read_ledger(damaged, 512, lambda _text: 64)
    assert len(found.buffers) <= len(re.findall("allocation.offset", damaged))
