"""Headers of checkpoints: what they say, and that nonsense in them is said plainly."""

from __future__ import annotations

import contextlib
import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.budget.checkpoint import MOST_HEADER, read_checkpoint, read_header
from oortriage.errors import InputError


def write(path: Path, tensors: dict[str, tuple[str, list[int], int]], *, body: bool = True) -> Path:
    header, place = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(place if body else 0))
    return path


def test_a_file_s_tensors_and_bytes(tmp_path: Path) -> None:
    path = write(
        tmp_path / "model.safetensors", {"a": ("BF16", [4, 3], 24), "b": ("F8_E4M3", [5], 5), "c": ("F32", [], 4)}
    )
    found = read_checkpoint(path)
    assert (found.kind, found.size, found.files) == ("safetensors", 33, 1)
    assert [(one.name, one.dtype, one.shape, one.size) for one in found.tensors] == [
        ("a", "BF16", (4, 3), 24), ("b", "F8_E4M3", (5,), 5), ("c", "F32", (), 4),
    ]  # fmt: skip


def test_a_folder_reads_its_index_and_only_what_the_index_names(tmp_path: Path) -> None:
    write(tmp_path / "model-1.safetensors", {"a": ("F16", [2], 4), "stray": ("F16", [100], 200)})
    write(tmp_path / "model-2.safetensors", {"b": ("F16", [3], 6)})
    index = {"metadata": {"total_size": 10}, "weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    found = read_checkpoint(tmp_path)
    assert (found.kind, found.size, found.files) == ("safetensors", 10, 2)
    (tmp_path / "model-2.safetensors").unlink()
    found = read_checkpoint(tmp_path)
    assert (found.kind, found.size, found.tensors) == ("index", 10, ())


def test_a_folder_without_an_index_leaves_the_second_copy_out(tmp_path: Path) -> None:
    write(tmp_path / "model.safetensors", {"a": ("F16", [2], 4)})
    write(tmp_path / "consolidated.safetensors", {"a": ("F16", [2], 4)})
    assert read_checkpoint(tmp_path).size == 4


def test_gguf_is_its_size(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + struct.pack("<I", 3) + bytes(100))
    assert (read_checkpoint(tmp_path).kind, read_checkpoint(tmp_path).size) == ("gguf", 108)
    (tmp_path / "n.gguf").write_bytes(b"GGML1234")
    with pytest.raises(InputError, match="not a GGUF file"):
        read_checkpoint(tmp_path / "n.gguf")


def entry(**changed: object) -> bytes:
    told = {"dtype": "F16", "shape": [2], "data_offsets": [0, 4], **changed}
    return json.dumps({"evil\x1b[31m": told}).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cut short: 0 bytes"),
        (b"\x01\x02", "cut short: 2 bytes"),
        (struct.pack("<Q", 2**63), "not a safetensors file: its header would have 9,223,372,036,854,775,808"),
        (struct.pack("<Q", MOST_HEADER + 1), "its header would have 100,000,001"),
        (struct.pack("<Q", 50) + b"{}", "cut short: a header of 50 bytes in a file of 10"),
        (struct.pack("<Q", 4) + b"\xff\xfe\x00{", "its header is not JSON"),
        (struct.pack("<Q", 2) + b"[]", "its header is not a JSON object"),
        (struct.pack("<Q", 9) + b'{"a": 12}', "its header says nothing of 'a'"),
        (struct.pack("<Q", len(entry())) + entry(), "cut short: its tensors end at byte"),
        *(
            (struct.pack("<Q", len(text)) + text + bytes(64), message)
            for text, message in (
                (entry(dtype="F99"), "has the unknown type 'F99'"),
                (entry(dtype=7), "has the unknown type"),
                (entry(shape=[-1]), "has no shape"),
                (entry(shape=[True]), "has no shape"),
                (entry(shape=[1] * 40), "has no shape"),
                (entry(shape=[1 << 60]), "has no shape"),
                (entry(data_offsets=[0]), "has no place in the file"),
                (entry(data_offsets=[4, 0]), "has -4 bytes, and its shape and type make 4"),
                (entry(data_offsets=[0, 6]), "has 6 bytes, and its shape and type make 4"),
            )
        ),
    ],
)
def test_a_broken_file_is_said_in_a_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_checkpoint(path)
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_deep_nesting_is_no_traceback(tmp_path: Path) -> None:
    text = b'{"a":' * 200_000
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
    with pytest.raises(InputError):
        read_header(tmp_path / "x.safetensors")


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("[]", "not a JSON object"),
        ("{", "not JSON"),
        ('{"weight_map": [1]}', "no weight_map"),
        ('{"weight_map": {"a": 1}}', "no weight_map"),
        ('{"weight_map": {"a": "../../etc/passwd"}}', "files outside its folder"),
        ('{"weight_map": {"a": "gone.safetensors"}}', "states no total_size"),
        ('{"weight_map": {"a": "gone.safetensors"}, "metadata": {"total_size": -5}}', "states no total_size"),
        ('{"weight_map": {"a": "gone.safetensors"}, "metadata": {"total_size": "big"}}', "states no total_size"),
        ('{"weight_map": {}}', "states no total_size"),
    ],
)
def test_a_broken_index_is_said_in_a_line(tmp_path: Path, index: str, message: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(InputError, match=message):
        read_checkpoint(tmp_path)


def test_nothing_of_the_kind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.safetensors"):
        read_checkpoint(tmp_path)
    (tmp_path / "model.bin").touch()
    with pytest.raises(InputError, match=r"neither \.safetensors"):
        read_checkpoint(tmp_path / "model.bin")
    with pytest.raises(InputError, match="cannot be read"):
        read_checkpoint(tmp_path / "gone.safetensors")


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "x.safetensors"
    path.write_bytes(content)
    with contextlib.suppress(InputError):
        assert all(one.size >= 0 for one in read_header(path))
