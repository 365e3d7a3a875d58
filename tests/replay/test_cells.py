"""Cells come out of the cache when nothing they depend on changed, and a cache that fails costs a note only."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from oortriage.gpu.virtual.adapter import Target
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.source import SourceSpec
from oortriage.ledger.allocation import Ledger
from oortriage.replay import cells as module
from oortriage.replay.cells import Compilation, compile_cells
from oortriage.replay.child import ChildError
from oortriage.replay.compiler_env import CompilerEnv, compiler_env
from oortriage.replay.job import Cell, Failure, Job, Kernel, Outcome

CARD = Card(Target("cuda", 75, 32), 65_536)
CELL = Cell({"dtype": "float16"})
PLAIN = Compilation("reference.attention", CARD, CompilerEnv("3.6.0"))


def outcome(cell: int, required: int = 1_024, **named: Any) -> Outcome:
    return Outcome(cell, (Kernel("attention", {}, required, 0, 128, Ledger((), required)),), **named)


class Compiler:
    """Stands for the child: counts what is compiled, and answers with the tile as the figure."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.files: dict[str, str] = {}
        self.fail: Callable[[Job, int], Outcome | None] = lambda _job, _index: None

    def __call__(self, job: Job, _env: CompilerEnv, done: Callable[[Outcome], None], **_: Any) -> None:
        self.jobs.append(job)
        for index, cell in enumerate(job.cells):
            figure = cell.overrides.get("TILE_SIZE", 0) + 1_024
            done(self.fail(job, index) or outcome(index, figure, files=self.files))

    @property
    def count(self) -> int:
        return sum(len(job.cells) for job in self.jobs)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "cache"
    monkeypatch.setenv("OORTRIAGE_CACHE", str(folder))
    yield folder
    assert not list(folder.glob("cells/tmp*")) if folder.is_dir() else True


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    made = Compiler()
    monkeypatch.setattr(module, "run_job", made)
    return made


def tile(size: int) -> Cell:
    return Cell({"dtype": "float16"}, {"TILE_SIZE": size})


def figures(outcomes: list[Outcome]) -> list[int]:
    return [one.kernels[0].required_bytes - 1_024 for one in outcomes]


def test_what_was_compiled_before_starts_no_child(compiler: Compiler) -> None:
    first = compile_cells(PLAIN, [CELL, tile(16)])
    assert compiler.count == 2
    assert compile_cells(PLAIN, [CELL, tile(16)]) == first
    assert compiler.count == 2
    assert first[1] == []


def test_only_what_is_missing_is_compiled(compiler: Compiler) -> None:
    compile_cells(PLAIN, [tile(16), tile(64)])
    found, _notes = compile_cells(PLAIN, [tile(32), tile(64), tile(128), tile(16)])
    assert figures(found) == [32, 64, 128, 16]
    assert [one.cell for one in found] == [0, 1, 2, 3]
    assert compiler.jobs[-1].cells == (tile(32), tile(128))


def test_without_the_cache_everything_is_compiled_and_nothing_kept(compiler: Compiler, cache: Path) -> None:
    for _ in range(2):
        compile_cells(PLAIN, [CELL], use_cache=False)
    assert compiler.count == 2
    assert not cache.exists()


@pytest.mark.parametrize(
    "other",
    [
        {"kernel": "other.attention"},
        {"card": msgspec.structs.replace(CARD, limit_bytes=49_152)},
        {"card": Card(Target("cuda", 80, 32), 65_536)},
        {"env": CompilerEnv("3.9.0", "/cache/triton")},
        {"registers": True},
        {"source": SourceSpec("vllm", "0.17.1", "wheel", "https://example.invalid/vllm.whl")},
    ],
)
def test_another_compilation_is_another_entry(compiler: Compiler, other: dict[str, Any]) -> None:
    compile_cells(PLAIN, [CELL])
    compile_cells(msgspec.structs.replace(PLAIN, **other), [CELL])
    assert compiler.count == 2


@pytest.mark.parametrize(
    "cell", [Cell({"dtype": "float32"}), tile(16), Cell({"dtype": "float16"}, {"num_warps": 8}), Cell({"dtype": 1})]
)
def test_another_cell_is_another_entry(compiler: Compiler, cell: Cell) -> None:
    compile_cells(PLAIN, [CELL])
    compile_cells(PLAIN, [cell])
    assert compiler.count == 2


def test_true_and_one_are_not_the_same(compiler: Compiler) -> None:
    compile_cells(PLAIN, [Cell({}, {"EVEN": True}), Cell({}, {"EVEN": 1})])
    compile_cells(PLAIN, [Cell({}, {"EVEN": 1}), Cell({}, {"EVEN": True})])
    assert compiler.count == 2


def test_a_setting_of_triton_is_part_of_the_entry(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_cells(PLAIN, [CELL])
    monkeypatch.setenv("TRITON_F32_DEFAULT", "ieee")
    compile_cells(PLAIN, [CELL])
    monkeypatch.setenv("TRITON_CACHE_DIR", "/elsewhere")
    compile_cells(PLAIN, [CELL])
    assert compiler.count == 2


def test_our_own_code_is_part_of_the_entry(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_cells(PLAIN, [CELL])
    assert len(module._own_code()) == 64
    monkeypatch.setattr(module, "_own_code", lambda: "another version of oortriage")
    compile_cells(PLAIN, [CELL])
    assert compiler.count == 2


def test_a_changed_file_of_the_user_is_compiled_again(compiler: Compiler, tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("# first\n")
    what = msgspec.structs.replace(PLAIN, kernel=f"{kernel}:kernel")
    for _ in range(2):
        compile_cells(what, [CELL])
    assert compiler.count == 1
    kernel.write_text("# second\n")
    compile_cells(what, [CELL])
    assert compiler.count == 2
    kernel.write_text("# first\n")
    compile_cells(what, [CELL])
    assert compiler.count == 2  # that is known


def test_a_changed_file_that_the_user_s_imports_is_compiled_again(compiler: Compiler, tmp_path: Path) -> None:
    kernel, helper = tmp_path / "kernel.py", tmp_path / "helper.py"
    kernel.write_text("import helper\n")
    helper.write_text("# first\n")
    compiler.files = {str(helper): module._digest(helper)}
    what = msgspec.structs.replace(PLAIN, kernel=f"{kernel}:kernel")
    for _ in range(2):
        compile_cells(what, [CELL])
    assert compiler.count == 1
    helper.write_text("# second\n")
    compile_cells(what, [CELL])
    assert compiler.count == 2


def of_folder(folder: Path, compiler: Compiler) -> Compilation:
    path = folder / "vllm" / "attention.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("# first\n")
    compiler.files = {"vllm/attention.py": module._digest(path)}
    return msgspec.structs.replace(PLAIN, source=SourceSpec("vllm", "", "folder", str(folder)))


def test_a_changed_file_of_a_source_folder_is_compiled_again(compiler: Compiler, tmp_path: Path) -> None:
    what = of_folder(tmp_path / "tree", compiler)
    for _ in range(2):
        compile_cells(what, [CELL])
    assert compiler.count == 1
    (tmp_path / "tree" / "vllm" / "attention.py").write_text("# second\n")
    compile_cells(what, [CELL])
    assert compiler.count == 2


def test_a_file_of_a_source_folder_that_is_gone_is_compiled_again(compiler: Compiler, tmp_path: Path) -> None:
    what = of_folder(tmp_path / "tree", compiler)
    compile_cells(what, [CELL])
    (tmp_path / "tree" / "vllm" / "attention.py").unlink()
    compile_cells(what, [CELL])
    assert compiler.count == 2


@pytest.mark.parametrize("broken", [b"", b"{", b"null", b'{"cell": "x"}', b"\xff\x00", b"[1, 2]"])
def test_a_broken_entry_is_compiled_again(compiler: Compiler, cache: Path, broken: bytes) -> None:
    whole = compile_cells(PLAIN, [CELL])
    (entry,) = cache.glob("cells/*.json")
    entry.write_bytes(broken)
    assert compile_cells(PLAIN, [CELL]) == whole
    assert compiler.count == 2
    assert msgspec.json.decode(entry.read_bytes(), type=Outcome) == whole[0][0]


def test_a_truncated_entry_is_compiled_again(compiler: Compiler, cache: Path) -> None:
    compile_cells(PLAIN, [CELL])
    (entry,) = cache.glob("cells/*.json")
    entry.write_bytes(entry.read_bytes()[:-20])
    compile_cells(PLAIN, [CELL])
    assert compiler.count == 2


def test_failures_are_not_kept(compiler: Compiler) -> None:
    compiler.fail = lambda _job, index: Outcome(index, failure=Failure("timeout", "too long"))
    for _ in range(2):
        found, notes = compile_cells(PLAIN, [CELL])
        assert found[0].failure
        assert notes == []
    assert compiler.count == 2


def in_vain(cells: list[Cell]) -> str:
    """Compile cells where the cache cannot be written; return the one note."""
    found, notes = compile_cells(PLAIN, cells)
    assert len(found) == len(cells)
    assert all(one.kernels for one in found)
    (note,) = notes
    assert note.startswith("compiled cells could not be kept in ")
    return note


def test_a_file_in_the_place_of_the_folder(compiler: Compiler, cache: Path) -> None:
    cache.write_text("not a folder")
    assert "Not a directory" in in_vain([CELL, tile(16)])
    cache.unlink()
    cache.mkdir()
    (cache / "cells").write_text("not a folder either")
    in_vain([CELL, tile(16)])
    assert compiler.count == 4


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_may_not_be_written(compiler: Compiler, cache: Path) -> None:
    (cache / "cells").mkdir(parents=True)
    (cache / "cells").chmod(0o500)
    assert "Permission denied" in in_vain([CELL])
    assert compiler.count == 1


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_folder_that_cannot_be_made(compiler: Compiler, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(self: Path, **_: Any) -> None:
        raise OSError(number, os.strerror(number), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert os.strerror(number) in in_vain([CELL, tile(16)])
    assert compiler.count == 2


def test_a_full_disk(compiler: Compiler, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    assert "No space left on device" in in_vain([CELL, tile(16)])
    assert list((cache / "cells").iterdir()) == []
    monkeypatch.setattr(module.tempfile, "mkstemp", full)
    assert "No space left on device" in in_vain([CELL])
    assert compiler.count == 3


WRITER = """
import sys
from tests.replay.test_cells import PLAIN, Outcome, module, outcome, tile
store = module._Store(PLAIN)
for turn in range(300):
    store.keep(tile(16), outcome(0, 1_000 + turn, stand_ins=("x" * 20_000,)))
    assert store.load(tile(16)), turn
assert store.notes == []
"""


def test_two_processes_write_the_same_cell(cache: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER], stderr=subprocess.PIPE, cwd=Path(__file__).parents[2])
        for _ in range(2)
    ]
    for writer in writers:
        _, said = writer.communicate(timeout=120)
        assert writer.returncode == 0, said.decode()[-2000:]
    (entry,) = (cache / "cells").iterdir()
    assert msgspec.json.decode(entry.read_bytes(), type=Outcome).kernels[0].required_bytes == 1_299


def test_progress_is_told_from_first_to_last(compiler: Compiler) -> None:
    compile_cells(PLAIN, [tile(16)])
    seen: list[tuple[int, int]] = []
    compile_cells(PLAIN, [tile(16), tile(32), tile(64)], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    seen.clear()
    compile_cells(PLAIN, [tile(16)], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 1)]
    assert compiler.count == 3


@pytest.mark.parametrize(("cells", "workers", "children"), [(5, 8, 1), (12, 8, 2), (40, 3, 3), (40, 1, 1)])
def test_many_cells_are_shared_out(compiler: Compiler, cells: int, workers: int, children: int) -> None:
    found, _ = compile_cells(PLAIN, [tile(size) for size in range(cells)], workers=workers)
    assert figures(found) == list(range(cells))
    assert len(compiler.jobs) == children
    assert max(len(job.cells) for job in compiler.jobs) - min(len(job.cells) for job in compiler.jobs) <= 1


def test_no_cells_are_nothing_to_do(compiler: Compiler) -> None:
    assert compile_cells(PLAIN, []) == ([], [])
    assert compiler.jobs == []


def test_what_one_child_cannot_do_at_all_stops_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[bool] = []

    def run(job: Job, _env: CompilerEnv, _done: Any, *, stop: threading.Event, **_: Any) -> None:
        if tile(0) in job.cells:
            time.sleep(0.1)
            raise ChildError("no compiler")
        waited.append(stop.wait(30))

    monkeypatch.setattr(module, "run_job", run)
    with pytest.raises(ChildError, match="no compiler"):
        compile_cells(PLAIN, [tile(size) for size in range(24)], workers=2)
    assert waited == [True]


def test_an_interrupt_ends_the_children(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[bool] = []

    def run(_job: Job, _env: CompilerEnv, _done: Any, *, stop: threading.Event, **_: Any) -> None:
        stopped.append(stop.wait(30))

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run_job", run)
    monkeypatch.setattr(module, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        compile_cells(PLAIN, [tile(size) for size in range(24)], workers=2)
    assert stopped == [True, True]


KERNEL = """
import triton
import triton.language as tl
from helper import WIDTH


@triton.jit
def summing(x, y, BLOCK: tl.constexpr, WIDE: tl.constexpr = WIDTH):
    index = tl.arange(0, BLOCK * WIDE)
    tl.store(y + index, tl.cumsum(tl.load(x + index), axis=0))
"""


def test_a_kernel_and_what_it_imports_for_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    kernel, helper = tmp_path / "kernel.py", tmp_path / "helper.py"
    kernel.write_text(KERNEL)
    helper.write_text("WIDTH = 2\n")
    what = Compilation(f"{kernel}:summing", CARD, compiler_env())
    cells = [Cell({"x": "*fp32", "y": "*fp32", "BLOCK": "1024"}, {"num_warps": warps}) for warps in (4, 8)]
    first, notes = compile_cells(what, cells)
    assert [one.kernels[0].required_bytes for one in first] == [64, 64]
    assert [one.kernels[0].threads for one in first] == [128, 256]
    assert notes == []
    assert set(first[0].files) == {str(kernel), str(helper)}
    with monkeypatch.context() as patched:
        patched.setattr(module, "run_job", lambda *_, **__: pytest.fail("a child was started"))
        assert compile_cells(what, cells)[0] == first
    helper.write_text("WIDTH = 8\n")
    changed, _ = compile_cells(what, cells[:1])
    assert changed[0].kernels[0].required_bytes != 64
