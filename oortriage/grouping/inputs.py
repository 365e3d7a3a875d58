"""Which files are read: the logs below folders, and what in there cannot be read, which is told and not passed over."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from oortriage.intake.source import LOG_SUFFIXES, find_logs

Fail = Callable[[str, str], None]


def find_inputs(paths: Iterable[str | Path], fail: Fail) -> list[str]:
    """List the files to read, each once, in order of arguments and names.

    Args:
        paths: files, folders, ``-``.
        fail: called with a file's name and a reason, for links that lead nowhere and folders that cannot be opened.
    """
    found: dict[str, None] = {}
    for path in paths:
        if str(path) == "-" or not Path(path).is_dir():
            found[str(path)] = None
            continue
        for log in find_logs(Path(path)):
            found[str(log)] = None
        _unreadable(Path(path), fail)
    return list(found)


def _unreadable(folder: Path, fail: Fail) -> None:
    def refused(problem: OSError) -> None:
        fail(str(problem.filename), f"cannot be read: {problem.strerror or problem}")

    for place, folders, files in os.walk(folder, onerror=refused):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place, name)
            if name.startswith(".") or path.suffix.lower() not in LOG_SUFFIXES:
                continue
            if path.is_symlink() and not path.exists():
                fail(str(path), "a link that leads nowhere")
