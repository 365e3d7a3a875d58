"""Single files of a wheel by HTTP range: checked against its record, kept, and every way a server can fail said."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pypi_simple", reason="reading wheels needs the extra [source]")
pytest.importorskip("remotezip", reason="reading wheels needs the extra [source]")

from oortriage.kernels.source import Source, SourceError, find_source, open_source
from oortriage.kernels.source.wheel import _near, _order, all_versions, released_versions, wheel_spec
from tests.kernels.source._server import FILES, Index, serving, wheel

KERNEL = "gizmo/ops/kernel.py"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    with serving() as served:
        monkeypatch.setenv("PIP_INDEX_URL", served.url)
        monkeypatch.setenv("OORTRIAGE_CACHE", str(tmp_path / "cache"))
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
        yield served


def opened(version: str = "1.2.0") -> Source:
    return open_source(find_source("gizmo", version))


def test_files_come_by_range_and_as_they_are(index: Index) -> None:
    filler = os.urandom(3_000_000)
    index.wheel = wheel({**FILES, "gizmo/big.bin": filler})
    source = opened()
    assert source.version == "1.2.0"
    assert source.has(KERNEL)
    assert not source.has("gizmo/absent.py")
    assert source.names("gizmo/ops") == ["gizmo/ops/kernel.py", "gizmo/ops/table.json"]
    assert source.fetch(KERNEL).read_bytes() == FILES[KERNEL]
    assert index.sent < len(filler) / 2, "most of the wheel must not be read"
    assert [one for one in index.asked if one.startswith("GET /files/gizmo-1.2.0-py3-none-any.whl bytes=")]


def test_what_was_read_once_needs_no_index(index: Index) -> None:
    first = opened().fetch(KERNEL)
    index.mode, index.versions = "gone", []
    before = len(index.asked)
    again = opened()
    assert again.fetch(KERNEL) == first
    assert again.has("gizmo/ops/table.json")
    assert len(index.asked) == before
    with pytest.raises(SourceError, match="cannot be read"):
        again.fetch("gizmo/ops/table.json")


def test_a_kept_file_that_was_changed_is_read_again(index: Index) -> None:  # noqa: ARG001
    path = opened().fetch(KERNEL)
    path.write_bytes(b"BLOCK = 128\n")
    assert opened().fetch(KERNEL).read_bytes() == FILES[KERNEL]


def test_a_file_that_its_record_does_not_know_is_refused(index: Index) -> None:
    index.wheel = wheel({**FILES, KERNEL: b"BLOCK = 1\n"})
    source = opened()
    with pytest.raises(SourceError, match=r"gizmo/ops/kernel\.py of gizmo 1\.2\.0 is not what the wheel's record says"):
        source.fetch(KERNEL)
    assert source.fetch("gizmo/ops/table.json").read_bytes() == b"{}"
    with pytest.raises(SourceError, match=r"record says|cannot be read"):
        source.fetch("gizmo/absent.py")


@pytest.mark.parametrize(
    ("mode", "words"),
    [("whole", "cannot be read: .*[Rr]ange"), ("gone", "cannot be read: .*404"), ("cut", "cannot be read")],
)
def test_servers_that_fail_are_told(index: Index, mode: str, words: str) -> None:
    index.mode = mode
    with pytest.raises(SourceError, match=words):
        opened().has(KERNEL)
    index.mode = "ranges"
    assert opened().has(KERNEL), "nothing wrong may stay in the cache"


@pytest.mark.parametrize(
    "content", [b"", b"PK", wheel()[:-40], os.urandom(5000)], ids=["empty", "mark", "cut", "noise"]
)
def test_files_that_are_no_wheel(index: Index, content: bytes) -> None:
    index.wheel = content
    with pytest.raises(SourceError, match="cannot be read"):
        opened().has(KERNEL)


@pytest.mark.parametrize(
    "record", ["", "gizmo/ops/kernel.py,,\n", 'a,"\x00', "x" * 200_000], ids=["none", "bare", "nul", "long"]
)
def test_records_that_say_nothing(index: Index, record: str) -> None:
    index.wheel = wheel(record=record)
    with pytest.raises(SourceError):
        opened().fetch(KERNEL)


def test_an_address_that_went_stale_is_asked_for_anew(index: Index) -> None:
    spec = wheel_spec("gizmo", "1.2.0")
    (kept,) = Path(os.environ["OORTRIAGE_CACHE"]).glob("wheels/*.url")
    kept.write_text(spec.location.replace("/files/", "/moved/"))
    with pytest.raises(SourceError, match="404"):
        opened().has(KERNEL)
    assert opened().has(KERNEL)
    assert index.asked[-1].startswith("GET /files/")


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("1.2.7", r"no wheel of gizmo 1\.2\.7; near ones: 1\.2\.0, 1\.2\.1rc1; the newest is 2\.0\.1"),
        ("1.5.0", r"near ones: 1\.2\.0, 1\.2\.1rc1, 2\.0\.0, 2\.0\.1; the newest is 2\.0\.1"),
        ("2.0.1.dev5+gabc123", r"near ones: 2\.0\.0, 2\.0\.1;"),
        ("9", r"near ones: 2\.0\.0, 2\.0\.1; the newest"),
    ],
)
def test_a_release_that_is_not_there_names_near_ones(index: Index, version: str, words: str) -> None:  # noqa: ARG001
    with pytest.raises(SourceError, match=words) as caught:
        find_source("gizmo", version)
    assert "--source PATH" in str(caught.value)


@pytest.mark.parametrize("version", ["v1.2.0", "1.2", "1.2.0.0"])
def test_other_spellings_of_a_release(index: Index, version: str) -> None:  # noqa: ARG001
    assert find_source("gizmo", version).location.endswith("gizmo-1.2.0-py3-none-any.whl")


@pytest.mark.parametrize("version", ["../../etc", "1/../../x", "1 2", "\x1b[31m", "latest", "1" * 80])
def test_a_version_that_could_name_a_file_elsewhere_is_none(index: Index, version: str) -> None:
    with pytest.raises(SourceError, match="that is no version"):
        find_source("gizmo", version)
    assert index.asked == []


def test_a_library_that_the_index_does_not_have(index: Index) -> None:  # noqa: ARG001
    with pytest.raises(SourceError, match=r"the package index has no gadget, or cannot be reached: "):
        find_source("gadget", "1.0")


def test_no_index_at_all_is_told_without_its_password(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "PIP_INDEX_URL", index.url.replace("127.0.0.1", "someone:secret@127.0.0.1").replace("simple", "no")
    )
    with pytest.raises(SourceError, match="cannot be reached") as caught:
        find_source("gizmo", "1.2.0")
    assert "secret" not in str(caught.value)


def test_the_last_patch_of_every_minor_release(index: Index) -> None:
    assert released_versions("gizmo", "1.0.0") == ["1.0.0", "1.1.0", "1.2.0", "2.0.1"]
    assert released_versions("gizmo", "1.2.0") == ["1.2.0", "2.0.1"]
    index.versions = ["1.9.0", "1.10.0", "1.10.2", "1.10.10"]
    assert released_versions("gizmo", "1.9") == ["1.9.0", "1.10.10"]
    assert released_versions("gizmo", "3.0") == []


def test_every_release_with_its_post_releases(index: Index) -> None:
    index.versions = ["1.9.0", "1.10.0", "1.9.0.post1", "1.10.0rc1", "1.8"]
    assert all_versions("gizmo", "1.9") == ["1.9.0", "1.9.0.post1", "1.10.0"]
    assert all_versions("gizmo", "3.0") == []


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid"), reason="needs a folder that cannot be written")
def test_a_cache_that_cannot_be_written_is_told(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("OORTRIAGE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(SourceError, match="cannot be written: Not a directory"):
        find_source("gizmo", "1.2.0")


def test_versions_are_ordered_as_numbers() -> None:
    assert max(["0.10.0", "0.9.2", "0.9.10", "0.9.2rc1"], key=_order) == "0.10.0"
    assert _order("0.22.1rc1.dev188+g3f5a1e17") == (0, 22, 1)
    assert _near("1.0", []) == "it has no release at all"
