"""A checkpoint's tensors from its headers: safetensors and GGUF files, and safetensors indexes; no weights are read."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from oortriage.errors import InputError

#: Bits an element, by the names safetensors has for types.
BITS = {
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U64": 64, "U32": 32,
    "U16": 16, "U8": 8, "BOOL": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
#: The format's own limit of a header, bytes (safetensors, MAX_HEADER_SIZE).
MOST_HEADER = 100_000_000
#: Of an index file, bytes; those of the largest models have 10 MB.
MOST_INDEX = 100_000_000
#: Files a checkpoint may have.
MOST_FILES = 5000
_MOST_DIMENSIONS = 32


class Tensor(msgspec.Struct, frozen=True):
    """One tensor: its name, safetensors' name of its type, its shape, and the bytes it takes in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int


class Checkpoint(msgspec.Struct, frozen=True):
    """What a checkpoint holds. ``size`` in bytes. ``tensors`` is empty where only a total is known (GGUF, index).

    ``kind``: safetensors, index (its stated total: the files it names are not there) or gguf.
    """

    kind: str
    size: int
    tensors: tuple[Tensor, ...]
    files: int
    how: str


def read_checkpoint(source: Path) -> Checkpoint:
    """Read a checkpoint's headers: a ``.safetensors`` or ``.gguf`` file, an index, or a model's folder.

    Raises:
        InputError: nothing of the kind is there, or a header is cut short, too large or nonsense.
    """
    if source.is_dir():
        return _folder(source)
    if source.name.endswith(".safetensors.index.json"):
        return _index(source)
    if source.suffix == ".gguf":
        return _gguf(source)
    if source.suffix == ".safetensors":
        tensors = read_header(source)
        return _whole((tensors,), 1, source.name)
    raise InputError(f"{source}: neither .safetensors, .safetensors.index.json, .gguf nor a folder with one")


def _folder(folder: Path) -> Checkpoint:
    for index in sorted(folder.glob("*.safetensors.index.json")):
        return _index(index)
    files = sorted(folder.glob("*.safetensors"))
    # the same weights a second time, under Mistral's own names; vLLM leaves them out as well
    files = [one for one in files if not one.name.startswith("consolidated")] or files
    if len(files) > MOST_FILES:
        raise InputError(f"{folder}: {len(files):,} safetensors files")
    if files:
        return _whole((read_header(one) for one in files), len(files), f"{len(files)} safetensors files")
    for found in sorted(folder.glob("*.gguf")):
        return _gguf(found)
    raise InputError(f"{folder}: no .safetensors, .safetensors.index.json or .gguf in it")


def _whole(parts: Iterator[tuple[Tensor, ...]] | tuple[tuple[Tensor, ...], ...], files: int, what: str) -> Checkpoint:
    tensors = tuple(tensor for part in parts for tensor in part)
    return Checkpoint("safetensors", sum(one.size for one in tensors), tensors, files, f"the headers of {what}")


def _index(path: Path) -> Checkpoint:
    """Read the files an index names; where they are not all there, take the total that it states."""
    index = _json(path, path.name, _read(path, MOST_INDEX))
    listed = index.get("weight_map")
    if not isinstance(listed, dict) or not all(isinstance(name, str) for name in listed.values()):
        raise InputError(f"{path}: not an index of safetensors files: no weight_map in it")
    names = sorted(set(listed.values()))
    if len(names) > MOST_FILES:
        raise InputError(f"{path}: it names {len(names):,} files")
    if any("/" in name or "\\" in name or name in ("", ".", "..") for name in names):
        raise InputError(f"{path}: it names files outside its folder")
    files = [path.parent / name for name in names]
    if files and all(one.is_file() for one in files):
        tensors = tuple(tensor for one in files for tensor in read_header(one) if tensor.name in listed)
        return _whole((tensors,), len(files), f"{len(files)} files of {path.name}")
    about = index.get("metadata")
    total = about.get("total_size") if isinstance(about, dict) else None
    if isinstance(total, float) and total.is_integer():
        total = int(total)
    if not isinstance(total, int) or isinstance(total, bool) or not 0 < total < 1 << 50:
        raise InputError(f"{path}: the files it names are not all there, and it states no total_size")
    return Checkpoint("index", total, (), len(files), f"total_size of {path.name}")


def read_header(path: Path) -> tuple[Tensor, ...]:
    """Read the header of a safetensors file: eight bytes of length, then JSON.

    Raises:
        InputError: it is cut short, claims to be too large, or its tensors do not fit their types or the file.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            first = file.read(8)
            if len(first) < 8:
                raise InputError(f"{path}: cut short: {len(first)} bytes, and a safetensors file begins with 8")
            (length,) = struct.unpack("<Q", first)
            if length > MOST_HEADER:
                raise InputError(f"{path}: not a safetensors file: its header would have {length:,} bytes")
            if length > size - 8:
                raise InputError(f"{path}: cut short: a header of {length:,} bytes in a file of {size:,}")
            text = file.read(length)
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror or problem}") from problem
    header = _json(path, "its header", text)
    tensors = tuple(_tensor(path, name, entry) for name, entry in header.items() if name != "__metadata__")
    end = max((entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"), default=0)
    if 8 + length + end > size:
        raise InputError(f"{path}: cut short: its tensors end at byte {8 + length + end:,} of {size:,}")
    return tensors


def _tensor(path: Path, name: str, entry: Any) -> Tensor:
    shown = ascii(name[:80])
    if not isinstance(entry, dict):
        raise InputError(f"{path}: its header says nothing of {shown}")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in BITS:
        raise InputError(f"{path}: {shown} has the unknown type {str(dtype)[:20]!a}")
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS or not all(_size(one) for one in shape):
        raise InputError(f"{path}: {shown} has no shape")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_size(one) for one in offsets):
        raise InputError(f"{path}: {shown} has no place in the file")
    size = offsets[1] - offsets[0]
    bits = math.prod(shape) * BITS[dtype]
    if size < 0 or -(-bits // 8) != size:
        raise InputError(f"{path}: {shown} has {size:,} bytes, and its shape and type make {-(-bits // 8):,}")
    return Tensor(name, dtype, tuple(shape), size)


def _size(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 1 << 50


def _json(path: Path, what: str, text: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"{path}: {what} is not JSON: {problem}") from problem
    except RecursionError as problem:
        raise InputError(f"{path}: {what} is nested too deeply") from problem
    if not isinstance(found, dict):
        raise InputError(f"{path}: {what} is not a JSON object")
    return found


def _read(path: Path, most: int) -> bytes:
    try:
        size = path.stat().st_size
        if size > most:
            raise InputError(f"{path}: {size:,} bytes, and an index has at most {most:,}")
        return path.read_bytes()
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror or problem}") from problem


def _gguf(path: Path) -> Checkpoint:
    """Take a GGUF file's size: its header (vocabulary, metadata) is a few MB of it."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            first = file.read(8)
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror or problem}") from problem
    if len(first) < 8 or first[:4] != b"GGUF":
        raise InputError(f"{path}: not a GGUF file")
    return Checkpoint("gguf", size, (), 1, f"the size of {path.name}")
