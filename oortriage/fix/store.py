"""Writes files so that a kill at any moment leaves the old one or the new one, and keeps others out meanwhile."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from oortriage.errors import OortriageError

_WAIT_SECONDS = 30.0
_LOOK_SECONDS = 0.05

#: Called between steps with the step's name; tests let a process die there.
Step = Callable[[str], None]


def nothing(_step: str) -> None:
    """Do nothing between steps."""


def digest(data: bytes) -> str:
    """Return a SHA-256 in hex digits."""
    return hashlib.sha256(data).hexdigest()


def write_whole(path: Path, data: bytes, step: Step = nothing, *, like: Path | None = None) -> None:
    """Write a file beside its place, flush it to the disk, and put it there in one step.

    Args:
        path: the file.
        data: what it is to hold.
        step: called between the steps.
        like: a file whose owner and mode the new one takes.

    Raises:
        OSError: it cannot be written; the old file is as it was.
    """
    temporary = path.with_name(f".{path.name}.oortriage-{os.getpid()}.tmp")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
        with os.fdopen(handle, "wb") as file:
            step(f"opened {path.name}")
            file.write(data)
            file.flush()
            step(f"written {path.name}")
            os.fsync(file.fileno())
        if like is not None:
            stat = like.stat()
            temporary.chmod(stat.st_mode & 0o7777)
            if (stat.st_uid, stat.st_gid) != (os.getuid(), os.getgid()):
                os.chown(temporary, stat.st_uid, stat.st_gid)
        step(f"before {path.name}")
        temporary.replace(path)
        step(f"after {path.name}")
        _flush_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _flush_folder(folder: Path) -> None:
    """Make a rename last; where a file system cannot, the rename itself is whole all the same."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sweep(path: Path) -> None:
    """Remove what a killed process left beside a file; only with the lock held."""
    for left in path.parent.glob(f".{path.name}*.oortriage-*.tmp"):
        left.unlink(missing_ok=True)


def forget_compiled(path: Path) -> None:
    """Remove a module's compiled files: one made with unchecked hashes would be taken for good."""
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path: Path, wait: float = _WAIT_SECONDS) -> Iterator[None]:
    """Hold a file's lock; its lock file lies beside it and goes with the lock.

    Raises:
        OortriageError: another process holds it for too long.
    """
    import fcntl

    lock = path.with_name(f".{path.name}.oortriage.lock")
    deadline = time.monotonic() + wait
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held it before has removed the file that we opened: then it is no lock any more.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), lock.stat()):
                    break
        except BlockingIOError:
            pass
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if time.monotonic() > deadline:
            raise OortriageError(f"another oortriage patches {path.name} and did not end within {wait:g} s")
        time.sleep(_LOOK_SECONDS)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)
