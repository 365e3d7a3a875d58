"""Files in every form, and what is none."""

from __future__ import annotations

import gzip
import json
import lzma
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from oortriage.errors import InputError
from oortriage.snapshot.parse import parse
from oortriage.snapshot.source import read_snapshot
from tests.snapshot import allocator


def written(folder: Path, data: bytes) -> Path:
    path = folder / "snapshot.bin"
    path.write_bytes(data)
    return path


FORMS = {
    "pickle": lambda data: data,
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("pack", FORMS.values(), ids=list(FORMS))
def test_the_same_snapshot_in_every_packing(pack: Any, tmp_path: Path) -> None:
    one = allocator.stranded_pool()
    assert read_snapshot(written(tmp_path, pack(one.pickle()))) == parse(one.snapshot(), "pickle, protocol 4")


def test_json_says_the_same_as_the_pickle(tmp_path: Path) -> None:
    one = allocator.fragmentation()
    found = read_snapshot(written(tmp_path, json.dumps(one.snapshot()).encode()))
    assert found == parse(one.snapshot(), "JSON")


def test_the_segments_alone_are_a_snapshot_too(tmp_path: Path) -> None:
    """``torch.cuda.memory_snapshot()`` gives the list of segments."""
    segments = allocator.fragmentation().snapshot()["segments"]
    found = read_snapshot(written(tmp_path, pickle.dumps(segments)))
    assert len(found.segments) == len(segments)
    assert found.traces == {}


def test_fields_of_old_releases(tmp_path: Path) -> None:
    """PyTorch before 2.1 kept stacks in a block's history and wrote no addresses of blocks, flags or pools."""
    frames = allocator.stack()
    block = {
        "size": 2048,
        "state": "active_allocated",
        "history": [{"addr": 4096, "real_size": 2000, "frames": frames}],
    }
    rest = {"size": 2 * allocator.MIB - 2048, "state": "inactive"}
    segment = {
        "device": 0, "address": 4096, "total_size": 2 * allocator.MIB, "allocated_size": 2048, "active_size": 2048,
        "stream": 0, "segment_type": "small", "blocks": [block, rest],
    }  # fmt: skip
    (found,) = read_snapshot(written(tmp_path, pickle.dumps({"segments": [segment], "device_traces": [[]]}))).segments
    first, second = found.blocks
    assert (first.requested, first.frames[2].file, first.frames[2].line) == (2000, "/srv/app/model.py", 10)
    assert (second.address, found.pool, found.expandable) == (4096 + 2048, (0, 0), False)


def test_the_writer_in_cpp_has_another_word_for_a_pending_free() -> None:
    values = allocator.awaiting_free().snapshot()
    values["segments"][0]["blocks"][0]["state"] = "active_pending_free"
    assert parse(values, "").segments[0].blocks[0].state == "awaiting_free"


def test_settings_are_kept_as_json_can_hold_them() -> None:
    values = allocator.capacity().snapshot()
    values["allocator_settings"] |= {
        "garbage_collection_threshold": float("nan"),
        "backend": "native",
        7: 1.5,
        "x": [1],
    }
    settings = parse(values, "").settings
    assert (settings["garbage_collection_threshold"], settings["backend"], settings["7"]) == ("nan", "native", 1.5)
    assert "x" not in settings


def test_an_unknown_action_is_left_out_and_told() -> None:
    values = allocator.capacity().snapshot()
    values["device_traces"][0].insert(0, {"action": "teleport", "addr": 1, "size": 1, "stream": 0})
    found = parse(values, "")
    assert any("unknown kind" in note for note in found.notes)
    assert len(found.traces[0]) == len(values["device_traces"][0]) - 1


NONE_OF_THEM = [
    (b"", "empty"),
    (b"Tue Nov 30 INFO all well\n", "neither a pickle nor JSON"),
    (b'{"segments": [', "not valid JSON"),
    (b"[" * 100_000, "not valid JSON"),
    (b"{}", "no `segments`"),
    (b'"text"', "neither"),
    (pickle.dumps([1, 2]), "segments\\[0\\] is no dictionary but int"),
    (pickle.dumps({"segments": 5}), "segments is no list but int"),
    (pickle.dumps({"segments": [{}]}), r"segments\[0\].address is None"),
    (pickle.dumps({"segments": [{"address": -1, "total_size": 1}]}), r"segments\[0\].address is -1"),
    (pickle.dumps({"segments": [{"address": 1, "total_size": True}]}), r"total_size is True"),
    (pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc", "addr": "x"}]]}), r"addr is 'x'"),
    (pickle.dumps({"segments": [], "device_traces": [[]] * 1000}), "1,000 devices"),
    (pickle.dumps({"segments": []})[:-3], "breaks off"),
    (gzip.compress(pickle.dumps({"segments": []}))[:-12], "gzip data breaks off"),
    (b"\x80\x04cos\nsystem\n.", r"it names os\.system"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "said"), NONE_OF_THEM, ids=range(len(NONE_OF_THEM)))
def test_what_is_no_snapshot_is_told_in_one_line(data: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said) as caught:
        read_snapshot(written(tmp_path, data))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "field", ["address", "total_size", "stream", "device", "segment_type", "segment_pool_id", "blocks"]
)
@pytest.mark.parametrize("value", [[[]], {"a": 1}, -(2**100), 2**100, "x", 1.5, float("nan"), b"x"])
def test_a_field_of_the_wrong_kind_is_named(field: str, value: Any) -> None:
    values = allocator.capacity().snapshot()
    values["segments"][0][field] = value
    with pytest.raises(InputError, match="no memory snapshot: segments"):
        parse(values, "")


def test_a_saved_model_is_told_from_a_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("archive/data.pkl", b"")
    with pytest.raises(InputError, match=r"torch\.save"):
        read_snapshot(path)


def test_a_file_that_unpacks_to_more_than_the_limit_stops_there(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(b"\x80\x04" + b"N" * 50_000_000))
    with pytest.raises(InputError, match="larger than 1,000,000 bytes when unpacked"):
        read_snapshot(path, limit_bytes=1_000_000)


def test_json_that_is_too_large_is_told_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oortriage.snapshot.source.MAX_JSON_BYTES", 1000)
    with pytest.raises(InputError, match="JSON of more than 1,000 bytes"):
        read_snapshot(written(tmp_path, json.dumps(allocator.capacity().snapshot()).encode()))


def test_shared_lists_that_stand_for_too_much_stop_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small pickle may hold one block a million times, in a segment that is there a million times."""
    monkeypatch.setattr("oortriage.snapshot.parse.MAX_PARTS", 10_000)
    values = allocator.capacity().snapshot()
    segment = values["segments"][0]
    segment["blocks"] = segment["blocks"] * 1000
    values["segments"] = [segment] * 1000
    with pytest.raises(InputError, match="more than 10,000 blocks, events and frames"):
        parse(values, "")


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_snapshot(tmp_path / "nothing.pickle")
    with pytest.raises(InputError, match="is a folder"):
        read_snapshot(tmp_path)
