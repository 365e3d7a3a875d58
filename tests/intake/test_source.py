"""Where logs come from: compressions, encodings, and inputs that cannot be read."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import itertools
import lzma
import random
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from oortriage.errors import InputError
from oortriage.intake import source
from oortriage.intake.source import Notes, as_utf8, find_logs, read_chunks

TEXT = b"INFO start\nRuntimeError: CUDA error: out of memory\nend without newline"


def noise(size: int) -> bytes:
    """Bytes that no compression shortens, in printable lines."""
    rng = random.Random(7)
    return bytes(rng.choice(b"abcdefghijklmnopqrstuvwxyz 0123456789\n") for _ in range(size))


def read(path: str | Path) -> tuple[bytes, list[str]]:
    notes = Notes()
    return b"".join(read_chunks(path, notes)), notes.notes


def stored(tmp_path: Path, data: bytes, name: str = "crash.log") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def cut(chunks: bytes, *at: int) -> Iterator[bytes]:
    edges = [0, *at, len(chunks)]
    return iter([chunks[low:high] for low, high in itertools.pairwise(edges)])


def decoded(data: bytes) -> tuple[bytes, list[str]]:
    notes = Notes()
    return b"".join(as_utf8(iter([data]), notes)), notes.notes


# --- plain files


def test_a_plain_file_passes_unchanged(tmp_path: Path) -> None:
    assert read(stored(tmp_path, TEXT)) == (TEXT, [])


def test_an_empty_file_gives_nothing_and_no_note(tmp_path: Path) -> None:
    assert read(stored(tmp_path, b"")) == (b"", [])


def test_a_path_may_be_a_string(tmp_path: Path) -> None:
    assert read(str(stored(tmp_path, TEXT)))[0] == TEXT


def test_a_large_file_comes_in_chunks_of_at_most_one_mebibyte(tmp_path: Path) -> None:
    data = b"0123456789abcde\n" * (5 << 15)  # 2.5 MiB
    chunks = list(read_chunks(stored(tmp_path, data), Notes()))
    assert b"".join(chunks) == data
    assert len(chunks) >= 3
    assert max(map(len, chunks)) <= 1 << 20


def test_standard_input_is_read_and_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(gzip.compress(TEXT))

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert read("-") == (TEXT, [])
    assert not Stdin.buffer.closed


def test_nul_bytes_pass(tmp_path: Path) -> None:
    data = b"a\0b\0\0c\n" + b"text " * 100 + b"\0\n"
    assert read(stored(tmp_path, data)) == (data, [])


def test_a_log_that_holds_only_nul_bytes_passes(tmp_path: Path) -> None:
    assert read(stored(tmp_path, b"\0" * 5000)) == (b"\0" * 5000, [])


def test_damaged_utf8_passes_unchanged(tmp_path: Path) -> None:
    data = b"ok\n\xff\xfe\xfd half \xe2\x82 letter\n\x80\x80\n"
    assert read(stored(tmp_path, data)) == (data, [])


# --- inputs that cannot be read


def test_a_missing_file_is_an_input_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.log: no such file"):
        read(tmp_path / "missing.log")


def test_a_folder_is_an_input_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        read(tmp_path)


def test_a_path_below_a_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read(stored(tmp_path, TEXT) / "inner.log")


@pytest.mark.parametrize("name", ["a\0b.log", "x" * 5000])
def test_an_impossible_name_is_an_input_error(name: str) -> None:
    with pytest.raises(InputError):
        read(name)


def test_an_input_error_ends_with_exit_code_2(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path / "missing.log")
    assert caught.value.exit_code == 2


def test_a_read_that_fails_half_way_is_an_input_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell():
                raise OSError(5, "Input/output error")
            return super().read(size)

    monkeypatch.setattr(source, "_open", lambda _: Failing(b"x" * (3 << 20)))
    with pytest.raises(InputError, match="Input/output error"):
        read(tmp_path / "crash.log")


def test_the_file_is_closed_when_reading_stops_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = stored(tmp_path, b"line\n" * (1 << 19)).open("rb")
    monkeypatch.setattr(source, "_open", lambda _: opened)
    chunks = read_chunks("crash.log", Notes())
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    assert opened.closed


# --- compressions

COMPRESS = {
    "gzip": gzip.compress,
    "xz": lambda data: lzma.compress(data, preset=0),
    # The zstd program writes a checksum unless told not to; the library does not.
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_compressed_file_is_read_whatever_its_name(kind: str, tmp_path: Path) -> None:
    assert read(stored(tmp_path, COMPRESS[kind](TEXT), "crash.log")) == (TEXT, [])


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_plain_file_with_a_suffix_of_a_compressed_one_is_read(suffix: str, tmp_path: Path) -> None:
    assert read(stored(tmp_path, TEXT, f"crash.log{suffix}")) == (TEXT, [])


@pytest.mark.parametrize("kind", COMPRESS)
def test_frames_one_after_the_other_are_all_read(kind: str, tmp_path: Path) -> None:
    pieces = [b"first\n", b"", b"second\n" * 40_000, b"third"]
    data = b"".join(COMPRESS[kind](piece) for piece in pieces)
    assert read(stored(tmp_path, data)) == (b"".join(pieces), [])


@pytest.mark.parametrize("kind", COMPRESS)
def test_an_empty_compressed_file_gives_nothing(kind: str, tmp_path: Path) -> None:
    assert read(stored(tmp_path, COMPRESS[kind](b""))) == (b"", [])


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_compressed_file_over_a_mebibyte_is_read(kind: str, tmp_path: Path) -> None:
    data = noise(1_100_000)
    assert read(stored(tmp_path, COMPRESS[kind](data))) == (data, [])


@pytest.mark.parametrize("kind", COMPRESS)
def test_half_a_compressed_file_gives_its_beginning_and_a_note(kind: str, tmp_path: Path) -> None:
    # zstd gives its data out a block (128 KiB) at a time, xz and gzip as they go.
    data = noise(500_000)
    packed = COMPRESS[kind](data)
    got, notes = read(stored(tmp_path, packed[: len(packed) // 2]))
    assert data.startswith(got)
    assert len(data) // 4 < len(got) < len(data)
    assert len(notes) == 1
    assert kind in notes[0]
    assert "breaks off" in notes[0]


def before_the_break(kind: str, packed: bytes) -> bytes:
    """What a plain streaming decoder makes of a cut file, without any reader round it."""
    if kind == "gzip":
        return zlib.decompressobj(wbits=31).decompress(packed)
    return lzma.LZMADecompressor().decompress(packed)


@pytest.mark.parametrize("part", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("kind", ["gzip", "xz"])
def test_all_that_came_before_the_break_is_kept(kind: str, part: float, tmp_path: Path) -> None:
    """The crash stands at the end of a log, so the last piece before the break matters most."""
    packed = COMPRESS[kind](noise(50_000))
    half = packed[: int(len(packed) * part)]
    expected = before_the_break(kind, half)
    assert len(expected) > 10_000
    got, notes = read(stored(tmp_path, half))
    assert got == expected
    assert len(notes) == 1


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_file_cut_within_its_last_bytes_is_a_note(kind: str, tmp_path: Path) -> None:
    """Only the checksum is missing; the reader cannot know that nothing else is."""
    _, notes = read(stored(tmp_path, COMPRESS[kind](noise(5000))[:-3]))
    assert len(notes) == 1
    assert kind in notes[0]


@pytest.mark.parametrize("kind", COMPRESS)
def test_damage_in_the_middle_of_a_compressed_file_is_a_note(kind: str, tmp_path: Path) -> None:
    data = noise(500_000)
    packed = bytearray(COMPRESS[kind](data))
    middle = len(packed) // 2
    packed[middle : middle + 64] = bytes(255 - byte for byte in packed[middle : middle + 64])
    _, notes = read(stored(tmp_path, bytes(packed)))
    assert len(notes) == 1
    assert kind in notes[0]


@pytest.mark.parametrize(
    ("kind", "magic"),
    [("gzip", b"\x1f\x8b"), ("zstd", b"\x28\xb5\x2f\xfd"), ("xz", b"\xfd7zXZ\x00")],
)
def test_rubbish_after_the_magic_number_is_a_note(kind: str, magic: bytes, tmp_path: Path) -> None:
    got, notes = read(stored(tmp_path, magic + b"\xff" * 200))
    assert got == b""
    assert len(notes) == 1
    assert kind in notes[0]


@pytest.mark.parametrize("magic", [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00"])
def test_a_magic_number_and_nothing_else_is_no_exception(magic: bytes, tmp_path: Path) -> None:
    assert read(stored(tmp_path, magic))[0] == b""


def test_rubbish_after_a_whole_gzip_keeps_the_text(tmp_path: Path) -> None:
    got, notes = read(stored(tmp_path, gzip.compress(TEXT) + b"rubbish"))
    assert got == TEXT
    assert len(notes) == 1


def test_a_compression_that_is_not_supported_is_read_as_it_is(tmp_path: Path) -> None:
    packed = bz2.compress(TEXT)
    assert read(stored(tmp_path, packed))[0] == packed


def test_compressed_utf16_is_read(tmp_path: Path) -> None:
    packed = gzip.compress(TEXT.decode().encode("utf-16"))
    assert read(stored(tmp_path, packed))[0] == TEXT


@given(data=st.binary(max_size=400), magic=st.sampled_from([m for m, _ in source._MAGIC]))
def test_no_bytes_after_a_magic_number_raise(data: bytes, magic: bytes) -> None:
    notes = Notes()
    b"".join(as_utf8(source._decompressed(io.BytesIO(magic + data), notes), notes))


# --- encodings


def test_a_utf8_mark_is_taken_off() -> None:
    assert decoded(codecs.BOM_UTF8 + TEXT) == (TEXT, [])


def test_a_utf8_mark_in_the_middle_stays() -> None:
    data = b"a" + codecs.BOM_UTF8 + b"b"
    assert decoded(data) == (data, [])


UMLAUTS = "Fehler: zu wenig Speicher für die Größe – 显存不足 😀\nRuntimeError: out of memory\n"


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [("utf-16-le", codecs.BOM_UTF16_LE), ("utf-16-be", codecs.BOM_UTF16_BE)],
)
def test_utf16_with_a_mark_becomes_utf8_with_a_note(encoding: str, mark: bytes) -> None:
    text, notes = decoded(mark + UMLAUTS.encode(encoding))
    assert text.decode() == UMLAUTS
    assert notes == [f"the text is {encoding.upper()}"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_seen_by_its_nul_bytes(encoding: str) -> None:
    text, notes = decoded(TEXT.decode().encode(encoding))
    assert text == TEXT
    assert notes == [f"the text is {encoding.upper()}"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_an_odd_last_byte_of_utf16_is_a_replacement_character(encoding: str) -> None:
    text, _ = decoded(TEXT.decode().encode(encoding) + b"x")
    assert text.decode() == TEXT.decode() + "\ufffd"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@given(at=st.lists(st.integers(8, 150), max_size=6))
def test_utf16_may_be_cut_anywhere(encoding: str, at: list[int]) -> None:
    mark = codecs.BOM_UTF16_LE if encoding.endswith("le") else codecs.BOM_UTF16_BE
    data = mark + UMLAUTS.encode(encoding)
    got = b"".join(as_utf8(cut(data, *sorted(at)), Notes()))
    assert got.decode() == UMLAUTS


def test_a_few_nul_bytes_do_not_make_text_utf16() -> None:
    data = b"ok \0 ok\n" * 100
    assert decoded(data) == (data, [])


def test_a_lone_surrogate_in_utf16_does_not_raise() -> None:
    text, _ = decoded(codecs.BOM_UTF16_LE + b"a\0\x00\xd8b\0c\0")
    assert text.decode().startswith("a")
    assert text.decode().endswith("c")


def test_no_chunk_at_all_is_empty_text() -> None:
    assert b"".join(as_utf8(iter([]), Notes())) == b""


@given(data=st.binary(max_size=300), at=st.integers(0, 300))
def test_utf8_without_a_mark_is_never_changed(data: bytes, at: int) -> None:
    data = b"log:\n" * 2 + data
    at = max(10, min(at, len(data)))
    notes = Notes()
    got = b"".join(as_utf8(cut(data, at), notes))
    if not notes.notes:  # a great many NUL bytes do make it UTF-16
        assert got == data


# --- notes and folders


def test_a_note_is_kept_once() -> None:
    notes = Notes()
    notes.add("odd")
    notes.add("odd")
    assert notes.notes == ["odd"]


def test_notes_of_two_inputs_are_separate() -> None:
    one, other = Notes(), Notes()
    one.add("odd")
    assert other.notes == []


def test_a_folder_lists_logs_in_order_and_leaves_the_rest(tmp_path: Path) -> None:
    for name in ["b.log", "a.txt", "sub/c.out.gz", "sub/slurm-1", "d.LOG", "e.log.zst", "f.err.xz"]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    for name in ["model.safetensors", "core.bin.gz", "a.py", ".hidden.log", ".git/x.log"]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    (tmp_path / "folder.log").mkdir()
    found = [path.relative_to(tmp_path).as_posix() for path in find_logs(tmp_path)]
    expected = ["a.txt", "b.log", "d.LOG", "e.log.zst", "f.err.xz", "sub/c.out.gz", "sub/slurm-1"]
    assert found == expected


def test_a_folder_inside_a_hidden_folder_is_still_searched(tmp_path: Path) -> None:
    inner = tmp_path / ".cache" / "logs"
    inner.mkdir(parents=True)
    (inner / "a.log").write_text("x")
    assert find_logs(inner) == [inner / "a.log"]


def test_an_empty_folder_has_no_logs(tmp_path: Path) -> None:
    assert find_logs(tmp_path) == []
