"""Source locations of MLIR: aliases, calls, names, escapes; and the statement they point at."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.gpu.virtual.locations import Locations, Place, source_line, variable_at

MODULE = r"""
#loc = loc("/home/someone/kernel.py":3:0)
#loc1 = loc(unknown)
#loc2 = loc("/home/someone/kernel.py":12:16)
#loc3 = loc("/opt/triton/language/standard.py":200:8)
#loc4 = loc("/home/someone/kernel.py":20:4)
#loc5 = loc("S"(#loc2))
#loc6 = loc(callsite(#loc3 at #loc4))
#loc7 = loc("m_new"(#loc6))
#loc8 = loc(fused[#loc1, #loc5])
#loc9 = loc(fused<"a, [b] (c">[#loc4, #loc2])
#loc10 = loc(callsite(#loc2 at #loc4))
#loc11 = loc("/home/some\22one\22/k\C3\B6rner at (1.py":7:2)
#loc12 = loc(callsite("/x/triton/language/a at b.py":1:1 at "/home/someone/at (work.py":5:8))
#loc13 = loc(callsite(#loc13 at #loc13))
#loc14 = loc(fused[#loc15, #loc14, #loc15])
#loc15 = loc("x"(#loc14))
#loc16 = loc(callsite(callsite(#loc3 at #loc3) at callsite(#loc3 at #loc4)))
"""
KERNEL = "/home/someone/kernel.py"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("#loc", Place(KERNEL, 3, 1)),
        (" #loc2 ", Place(KERNEL, 12, 17)),
        ("#loc1", Place()),
        ("unknown", Place()),
        ("#loc99", Place()),
        ("#loc5", Place(KERNEL, 12, 17, "S")),
        ("#loc6", Place(KERNEL, 20, 5)),
        ("#loc7", Place(KERNEL, 20, 5, "m_new")),
        ("#loc8", Place(KERNEL, 12, 17, "S")),
        ("#loc9", Place(KERNEL, 20, 5)),
        ("#loc10", Place(KERNEL, 12, 17)),
        ("#loc11", Place('/home/some"one"/körner at (1.py', 7, 3)),
        ("#loc12", Place("/home/someone/at (work.py", 5, 9)),
        ("#loc16", Place(KERNEL, 20, 5)),
        ('"K"("/a/b.py":1:0)', Place("/a/b.py", 1, 1, "K")),
        ('"K"(#loc2)', Place(KERNEL, 12, 17, "K")),
        ("callsite(#loc3 at #loc3)", Place("/opt/triton/language/standard.py", 200, 9)),
    ],
)
def test_a_location_is_resolved(text: str, place: Place) -> None:
    assert Locations(MODULE).find(text) == place


@pytest.mark.parametrize("text", ["#loc13", "#loc14", "#loc15"])
def test_a_location_within_itself_ends_at_once(text: str) -> None:
    begin = time.monotonic()
    assert Locations(MODULE).find(text).file == ""
    assert time.monotonic() - begin < 1


def test_deep_nesting_ends() -> None:
    aliases = "\n".join(f'#loc{index} = loc("v{index}"(#loc{index + 1}))' for index in range(5_000))
    assert Locations(aliases).find("#loc0").file == ""
    assert Locations("").find("callsite(" * 5_000 + " at ").file == ""


PIECES = st.sampled_from(
    [
        "#loc", "#loc1", "#loc2 = loc(", "loc(", "callsite(", "fused[", "fused<", ">[", " at ", '"', "\\", "\\22", "\\0", ":1:2", "(", ")", "[", "]", "<",
        ", ", "\n", '"a.py":1:2', '"x"(', "unknown",
    ]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES | st.text(max_size=5), max_size=40).map("".join), st.lists(PIECES, max_size=12).map("".join))
def test_no_text_makes_it_fail(module: str, text: str) -> None:
    place = Locations(module).find(text)
    assert place.line >= 0
    assert isinstance(source_line(place.file, place.line), str)
    assert isinstance(variable_at(place.file, place.line, place.column), str)


SOURCE = """\
import triton


def kernel(x):
    K = tl.load(
        keys + base[None, :],
        mask=in_head[:, None],
    )
    acc += tl.dot(P, V); L: int = 5
    first, second = tl.split(x)
    for tile in range(3):
        Q = inner(
            lambda: outer,
        )
    größe = x; y = "ä"; S = tl.dot(x, y)
    tl.store(out, acc)
"""


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    path = tmp_path / "kernel.py"
    path.write_text(SOURCE, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (5, "K = tl.load(keys + base[None, :], mask=in_head[:, None])"),
        (6, "K = tl.load(keys + base[None, :], mask=in_head[:, None])"),
        (9, "acc += tl.dot(P, V); L: int = 5"),
        (16, "tl.store(out, acc)"),
        (0, ""),
        (-3, ""),
        (99, ""),
    ],
)
def test_the_statement_at_a_line(kernel: str, line: int, text: str) -> None:
    assert source_line(kernel, line) == text


def test_a_long_statement_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "long.py"
    path.write_text(f"x = {'1 + ' * 200}1\n")
    assert len(source_line(str(path), 1)) == 160


@pytest.mark.parametrize(
    ("line", "column", "name"),
    [
        (5, 9, "K"),
        (6, 9, "K"),
        (9, 12, "acc"),
        (9, 26, "L"),
        (10, 21, ""),
        (13, 20, "Q"),
        (15, 40, "S"),
        (16, 5, ""),
    ],
)
def test_the_variable_that_is_assigned(kernel: str, line: int, column: int, name: str) -> None:
    assert variable_at(kernel, line, column) == name


@pytest.mark.parametrize("content", [b"def (", b"\x00", b"\xff\xfe", b"(" * 3_000, b""])
def test_a_file_that_is_no_python_has_no_variables(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.py"
    path.write_bytes(content)
    assert variable_at(str(path), 1, 1) == ""


@pytest.mark.parametrize("file", ["", "/nowhere/kernel.py", "\x00", "."])
def test_a_file_that_is_not_there_has_no_lines(file: str) -> None:
    assert source_line(file, 1) == ""
    assert variable_at(file, 1, 1) == ""
