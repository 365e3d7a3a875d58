"""Where a log comes from: a file, a pipe or a compressed file, turned into chunks of UTF-8 bytes."""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from oortriage.errors import InputError

CHUNK = 1 << 20

#: Files a folder is searched for; compressed forms of them too.
LOG_SUFFIXES = frozenset({".log", ".txt", ".out", ".err", ".md", ".json", ".jsonl", ""})
_COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".xz": "xz"}
#: The encoding is told from so many bytes.
_PROBE = 4096
#: Bytes given to the zstd decoder at a time.
_ZSTD_INPUT = 1 << 10
#: How a pickle of protocols 2 to 5 begins, as PyTorch writes memory snapshots: a dictionary or a list, or a frame.
_PICKLE = re.compile(rb"\x80(?:[\x02\x03][}\]]|[\x04\x05]\x95)")
_MAGIC = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\x00", "xz"))


class Notes(msgspec.Struct):
    """What was odd about an input, for the person who reads the verdict."""

    notes: list[str] = []

    def add(self, note: str) -> None:
        """Keep a note once."""
        if note not in self.notes:
            self.notes.append(note)


def read_chunks(path: str | Path, notes: Notes) -> Iterator[bytes]:
    """Read a log in chunks of about 1 MiB of UTF-8, whatever its compression and encoding.

    ``-`` is standard input. A compressed file that breaks off gives what could be read, and a note.

    Raises:
        InputError: the file is missing, a folder, a pickle, or may not be read.
    """
    stream = _open(path)
    try:
        yield from as_utf8(_no_pickle(path, _decompressed(stream, notes)), notes)
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem}") from problem
    finally:
        if stream is not sys.stdin.buffer:
            stream.close()


def read_whole(path: str | Path, limit_bytes: int) -> bytes:
    """Read a binary file as a whole, its compression undone; ``-`` is standard input.

    Raises:
        InputError: the file is missing, a folder, may not be read, is compressed and breaks off, or has more than
            ``limit_bytes`` when unpacked.
    """
    stream, notes = _open(path), Notes()
    pieces, size = [], 0
    try:
        for piece in _decompressed(stream, notes):
            size += len(piece)
            if size > limit_bytes:
                raise InputError(f"{path}: larger than {limit_bytes:,} bytes when unpacked, which is the limit")
            pieces.append(piece)
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem}") from problem
    finally:
        if stream is not sys.stdin.buffer:
            stream.close()
    if notes.notes:
        raise InputError(f"{path}: {notes.notes[0]}")
    return b"".join(pieces)


def _no_pickle(path: str | Path, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Pass a log through; a pickle is none, and most likely a memory snapshot."""
    for number, chunk in enumerate(chunks):
        if not number and _PICKLE.match(chunk):
            raise InputError(
                f"{path}: a pickle and no log; a PyTorch memory snapshot is read by: oortriage snapshot {path}"
            )
        yield chunk


def find_logs(folder: Path) -> list[Path]:
    """List the files below a folder that look like logs, in order of name."""
    found = []
    for path in sorted(folder.rglob("*")):
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        inner = Path(path.stem) if path.suffix in _COMPRESSED else path
        if path.is_file() and inner.suffix.lower() in LOG_SUFFIXES:
            found.append(path)
    return found


def _open(path: str | Path) -> IO[bytes]:
    if str(path) == "-":
        return sys.stdin.buffer
    try:
        if Path(path).is_dir():
            raise InputError(f"{path}: is a folder")
        return Path(path).open("rb")
    except FileNotFoundError as problem:
        raise InputError(f"{path}: no such file") from problem
    except (OSError, ValueError) as problem:
        raise InputError(f"{path}: cannot be read: {problem}") from problem


def _decompressed(stream: IO[bytes], notes: Notes) -> Iterator[bytes]:
    """Undo the compression that the first bytes name; the suffix of the name is not trusted."""
    head = stream.read(CHUNK)
    kind = next((kind for magic, kind in _MAGIC if head.startswith(magic)), "")
    if not kind:
        while head:
            yield head
            head = stream.read(CHUNK)
        return
    joined: io.BufferedReader = io.BufferedReader(_Rejoined(head, stream))
    try:
        yield from _READERS[kind](joined)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as problem:
        notes.add(f"the {kind} data breaks off ({problem}); only what came before was read")


def _gzip(joined: io.BufferedReader) -> Iterator[bytes]:
    return _pieces(gzip.GzipFile(fileobj=joined))


def _xz(joined: io.BufferedReader) -> Iterator[bytes]:
    return _pieces(lzma.LZMAFile(joined))


def _pieces(opened: gzip.GzipFile | lzma.LZMAFile) -> Iterator[bytes]:
    """Read what one step of the decoder gives: ``read`` would collect more, and lose it at the break."""
    while piece := opened.read1(1 << 16):
        yield piece


def _zstd(joined: io.BufferedReader) -> Iterator[bytes]:
    """Decode frame after frame; the library's own reader takes half a frame for a whole one.

    Little goes in at a time: a block of four bytes may come out as 128 KiB.
    """
    from zstandard import ZstdDecompressor, ZstdError

    decompressor = ZstdDecompressor()
    data = joined.read(_ZSTD_INPUT)
    while data:
        frame = decompressor.decompressobj()
        while not frame.eof:
            if not data:
                raise EOFError("the last frame is cut short")
            try:
                piece = frame.decompress(data)
            except ZstdError as problem:
                raise OSError(str(problem)) from problem
            if piece:
                yield piece
            data = frame.unused_data if frame.eof else joined.read(_ZSTD_INPUT)
        data = data or joined.read(_ZSTD_INPUT)


_READERS = {"gzip": _gzip, "xz": _xz, "zstd": _zstd}


class _Rejoined(io.RawIOBase):
    """The bytes already read in front of the rest of the stream."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        super().__init__()
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        """Only reading is asked of it."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the head while it lasts, then from the stream."""
        view = memoryview(buffer)
        piece = self._head[: len(view)] or self._stream.read(len(view))
        self._head = self._head[len(piece) :]
        view[: len(piece)] = piece
        return len(piece)


def as_utf8(chunks: Iterator[bytes], notes: Notes) -> Iterator[bytes]:
    """Turn UTF-16 (with a mark, or seen by its NUL bytes) into UTF-8; other text passes as it is."""
    first = b""
    for chunk in chunks:  # a decoder may begin with a few bytes, too few to tell
        first += chunk
        if len(first) >= _PROBE:
            break
    encoding, skip = _encoding_of(first)
    if not encoding:
        yield first[skip:]
        yield from chunks
        return
    notes.add(f"the text is {encoding.upper()}")
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    yield decoder.decode(first[skip:]).encode("utf-8", "replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _encoding_of(first: bytes) -> tuple[str, int]:
    """Tell the encoding (empty for UTF-8 and its kin) and the length of the byte-order mark."""
    if first.startswith(codecs.BOM_UTF8):
        return "", 3
    if first.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le", 2
    if first.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be", 2
    probe = first[:_PROBE]
    if len(probe) >= 8:
        even, odd = probe[0::2].count(0), probe[1::2].count(0)
        half = len(probe) // 2
        if odd > half * 0.7 and even < half * 0.1:
            return "utf-16-le", 0
        if even > half * 0.7 and odd < half * 0.1:
            return "utf-16-be", 0
    return "", 0
