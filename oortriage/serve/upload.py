"""A log as it comes in: counted while it is written to a temporary file, which is gone when it was read."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

from oortriage.errors import OortriageError
from oortriage.intake.source import Notes, read_chunks
from oortriage.report.escape import shorten, visible
from oortriage.serve.limits import Limits

T = TypeVar("T")
#: Characters of a name that are kept.
_LONGEST_NAME = 120
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00")


class TooLargeError(OortriageError):
    """The log is over a limit."""


def shown_name(name: str) -> str:
    """Return the last part of what a browser calls a file, with nothing in it that acts; never empty."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    cleaned = shorten(visible(last).replace("\n", " ").strip(), _LONGEST_NAME)
    return cleaned if cleaned.strip(". ") else "pasted.log"


@contextlib.asynccontextmanager
async def received(chunks: AsyncIterator[bytes], limits: Limits) -> AsyncIterator[tuple[Path, int]]:
    """Write an upload to a temporary file and delete it at the end, whatever happened; yields it and its bytes.

    Raises:
        TooLargeError: more came than the limit allows; the rest is not read.
        OSError: the temporary folder is full or may not be written.
    """
    handle, name = tempfile.mkstemp(prefix="oortriage-")
    try:
        with os.fdopen(handle, "wb") as file:
            size = 0
            async for chunk in chunks:
                size += len(chunk)
                if size > limits.upload_bytes:
                    raise TooLargeError(too_large(limits))
                file.write(chunk)
        yield Path(name), size
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)  # noqa: PTH108 (pathlib's is taken for a blocking call, which this is no more than)


def too_large(limits: Limits) -> str:
    """Say what the limit is, and what to do with a larger log."""
    return (
        f"The log is larger than {limits.upload_bytes / (1 << 20):,.0f} MiB. "
        "`oortriage analyze` reads a log of any size; or start `oortriage serve --max-upload MIB`."
    )


def refuse_bomb(path: Path, limits: Limits) -> None:
    """Look how large a compressed log becomes.

    Raises:
        TooLargeError: larger than ``expanded_bytes``.
    """
    with path.open("rb") as file:
        if not file.read(8).startswith(_COMPRESSED):
            return
    size = 0
    chunks = read_chunks(path, Notes())
    for chunk in chunks:
        size += len(chunk)
        if size > limits.expanded_bytes:
            raise TooLargeError(
                f"The log is larger than {limits.expanded_bytes / (1 << 20):,.0f} MiB when it is decompressed. "
                "`oortriage analyze` reads a log of any size."
            )


async def in_thread(work: Callable[[], T]) -> T:
    """Do work in a thread that does not keep the server from ending; what it raises is raised here."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, problem: BaseException | None) -> None:
        if future.done():
            return
        if problem is not None:
            future.set_exception(problem)
        else:
            future.set_result(value)  # type: ignore[arg-type]

    def body() -> None:
        value: T | None = None
        problem: BaseException | None = None
        try:
            value = work()
        except BaseException as caught:  # noqa: BLE001 (handed on)
            problem = caught
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, value, problem)

    threading.Thread(target=body, daemon=True).start()
    return await future
