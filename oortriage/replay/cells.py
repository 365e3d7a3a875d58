"""Compiles cells: out of the cache where they were compiled before, else in parallel children."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import lru_cache
from pathlib import Path
from threading import Event, Lock
from typing import Any

import msgspec

from oortriage import kernels, ledger
from oortriage.cache import cache_folder
from oortriage.gpu import virtual
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.source import SourceSpec
from oortriage.kernels.user_kernel import is_user_kernel
from oortriage.replay.child import CELL_SECONDS, run_job
from oortriage.replay.compiler_env import CompilerEnv
from oortriage.replay.job import Cell, Job, Outcome

Progress = Callable[[int, int], None]
#: Starting a child costs seconds; fewer cells than this are not worth a second one.
_WORTH_A_CHILD = 6


class Compilation(msgspec.Struct, frozen=True):
    """What to compile for, and with what; the cells come with each call."""

    kernel: str
    card: Card
    env: CompilerEnv
    source: SourceSpec | None = None
    registers: bool = False


def compile_cells(
    what: Compilation,
    cells: Sequence[Cell],
    *,
    progress: Progress | None = None,
    workers: int | None = None,
    cell_seconds: float = CELL_SECONDS,
    use_cache: bool = True,
) -> tuple[list[Outcome], list[str]]:
    """Compile cells and return their outcomes in order, with notes (a cache that cannot be written).

    Args:
        what: kernel, card, compiler, source.
        cells: shapes and overrides.
        progress: called with (done, all).
        workers: children at a time; the machine's cores by default.
        cell_seconds: time limit for one cell.
        use_cache: whether results of earlier runs count.

    Raises:
        ChildError: no cell can be compiled at all.
    """
    store = _Store(what) if use_cache else None
    found: dict[int, Outcome] = {}
    if store:
        for index, cell in enumerate(cells):
            if (kept := store.load(cell)) is not None:
                found[index] = kept
    missing = [index for index in range(len(cells)) if index not in found]
    lock, stop = Lock(), Event()

    def report() -> None:
        if progress:
            progress(len(found), len(cells))

    def work(share: list[int]) -> None:
        def done(outcome: Outcome) -> None:
            index = share[outcome.cell]
            with lock:
                found[index] = msgspec.structs.replace(outcome, cell=index)
                if store:
                    store.keep(cells[index], found[index])
                report()

        job = Job(what.kernel, what.card, tuple(cells[index] for index in share), what.source, what.registers)
        try:
            run_job(job, what.env, done, cell_seconds=cell_seconds, stop=stop)
        except BaseException:
            stop.set()  # what one child cannot do at all, the others need not try
            raise

    report()
    if missing:
        count = max(1, min(workers or os.cpu_count() or 1, len(missing) // _WORTH_A_CHILD))
        # Neighbours in a grid differ in cost; dealt out in turn, every child gets of each.
        shares = [missing[start::count] for start in range(count)]
        with ThreadPoolExecutor(count) as pool:
            futures = [pool.submit(work, share) for share in shares]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                stop.set()  # after an interrupt no child goes on
            for future in futures:
                future.result()
    return [
        msgspec.structs.replace(found[index], cell=index) for index in range(len(cells))
    ], store.notes if store else []


class _Store:
    """Outcomes on disk, one file a cell; failures are not kept.

    The key holds everything the outcome depends on, our own code included; what a library's files held
    is checked when an outcome is taken out again.
    """

    def __init__(self, what: Compilation) -> None:
        self.notes: list[str] = []
        self._folder = cache_folder() / "cells"
        self._what = what
        self._base = [
            _own_code(),
            what.kernel,
            _digest(Path(what.kernel.rpartition(":")[0])) if is_user_kernel(what.kernel) else "",
            msgspec.to_builtins(what.card),
            what.env.version,
            _settings_of_triton(),
            msgspec.to_builtins(what.source),
            what.registers,
        ]

    def _path(self, cell: Cell) -> Path:
        text = json.dumps([*self._base, msgspec.to_builtins(cell)], sort_keys=True)
        return self._folder / f"{hashlib.sha256(text.encode()).hexdigest()}.json"

    def load(self, cell: Cell) -> Outcome | None:
        try:
            outcome = msgspec.json.decode(self._path(cell).read_bytes(), type=Outcome)
        except (OSError, msgspec.DecodeError):
            return None
        return outcome if self._current(outcome.files) else None

    def _current(self, files: dict[str, str]) -> bool:
        source = self._what.source
        if source and source.kind in ("wheel", "sdist"):
            return True  # a release's files never change, and were checked when fetched
        folder = source.location if source else ""  # a kernel of the user's own names its files wholly
        return all(_digest(Path(folder, path)) == digest for path, digest in files.items())

    def keep(self, cell: Cell, outcome: Outcome) -> None:
        if outcome.failure:
            return
        path = self._path(cell)
        temporary = ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(outcome))
            Path(temporary).replace(path)
        except OSError as problem:
            if temporary:
                with contextlib.suppress(OSError):
                    Path(temporary).unlink()
            note = f"compiled cells could not be kept in {path.parent}: {problem.strerror or problem}"
            if note not in self.notes:
                self.notes.append(note)


def _settings_of_triton() -> dict[str, str]:
    """Return the environment variables that change what Triton compiles (``TRITON_F32_DEFAULT``)."""
    places = ("TRITON_HOME", "TRITON_CACHE_DIR", "TRITON_CACHE_MANAGER", "TRITON_DUMP_DIR", "TRITON_INTERPRET")
    return {name: value for name, value in os.environ.items() if name.startswith("TRITON_") and name not in places}


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


@lru_cache(maxsize=1)
def _own_code() -> str:
    """Hash the code that calls kernels and reads what was allocated: a change there makes old outcomes stale."""
    whole: Any = hashlib.sha256()
    files = [path for package in (kernels, ledger, virtual) for path in Path(package.__path__[0]).rglob("*.py")]
    for path in sorted([*files, Path(__file__).with_name("worker.py"), Path(__file__).with_name("job.py")]):
        whole.update(path.read_bytes())
    return str(whole.hexdigest())
