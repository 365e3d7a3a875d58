"""A capsule as data: what a kernel that did not fit was compiled of. Reading one executes nothing of it."""

from __future__ import annotations

import contextlib
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from oortriage.errors import InputError

SCHEMA = "oortriage-capsule"
#: A capsule holds source text; one of this size is something else.
_MOST_BYTES = 32 << 20


class CapsuleTarget(msgspec.Struct, frozen=True):
    """What Triton compiled for."""

    backend: Literal["cuda", "hip"]
    arch: int | str
    warp_size: int

    @property
    def name(self) -> str:
        """The name people type: ``sm_75``, ``gfx942``."""
        return f"sm_{self.arch}" if self.backend == "cuda" else str(self.arch)


class CapsuleFunction(msgspec.Struct, frozen=True):
    """A jitted function: its text from ``def`` on, where it stands, and what the global names in it stand for."""

    id: str
    name: str
    source: str
    module: str = ""
    kind: str = "JITFunction"
    file: str = ""
    sha256: str = ""
    line: int = 1
    noinline: bool = False
    globals: dict[str, Any] = {}


class Capsule(msgspec.Struct, frozen=True):
    """One failure. ``required`` and ``limit`` are bytes for shared memory, else the resource's own unit."""

    schema: Literal["oortriage-capsule"]
    schema_version: Literal[1]
    kernel: str
    resource: str
    required: int
    limit: int
    target: CapsuleTarget
    signature: dict[str, Any]
    entry: str = ""
    module: str = ""
    language: str = "triton"
    parameters: list[str] = []
    constants: list[tuple[list[int], Any]] = []
    attributes: list[tuple[list[int], Any]] = []
    options: dict[str, Any] = {}
    arguments: dict[str, Any] = {}
    functions: list[CapsuleFunction] = []
    versions: dict[str, str] = {}
    gpu: str = ""
    time: str = ""

    @property
    def required_bytes(self) -> int:
        """The figure to come out again; 0 where the resource is not shared memory."""
        return self.required if self.resource == "shared memory" else 0

    @property
    def source_hash(self) -> str:
        """SHA-256 over the text of all its functions: what replaying it would run."""
        whole = hashlib.sha256()
        for function in self.functions:
            whole.update(function.source.encode("utf-8", "surrogatepass"))
            whole.update(msgspec.json.encode(function.globals, order="sorted"))
        return whole.hexdigest()

    @property
    def sentence(self) -> str:
        """What happened, in one line."""
        unit = {"shared memory": " bytes of shared memory", "tensor memory": " columns of tensor memory"}
        where = f"{self.gpu} ({self.target.name})" if self.gpu else self.target.name
        return (
            f"{self.kernel} needs {self.required:,}{unit.get(self.resource, ' ' + self.resource)} a block, "
            f"{where} has {self.limit:,}: {self.required - self.limit:,} too many"
        )


def is_capsule(name: str) -> bool:
    """Tell by its beginning whether a file is a capsule, whole or broken."""
    if not name.endswith(".json"):
        return False
    with contextlib.suppress(OSError, ValueError), Path(name).open("rb") as file:
        return f'"{SCHEMA}"'.encode() in file.read(200)
    return False


def read_capsule(name: str) -> Capsule:
    """Read a capsule.

    Raises:
        InputError: it cannot be read, or is none.
    """
    try:
        path = Path(name).resolve()
        state = path.stat()
        if state.st_size > _MOST_BYTES:
            raise InputError(f"{name}: too large for a capsule: {state.st_size:,} bytes")
        return _read(str(path), state.st_mtime_ns, state.st_size)
    except OSError as problem:
        raise InputError(f"{name}: cannot be read: {problem.strerror or problem}") from problem
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"{name}: no capsule of this version: {problem}") from problem


@lru_cache(maxsize=8)
def _read(path: str, _changed: int, _size: int) -> Capsule:
    return msgspec.json.decode(Path(path).read_bytes(), type=Capsule)
