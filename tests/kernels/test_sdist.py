"""Source archives: checked against the index, read without being unpacked, nothing outside the package."""

from __future__ import annotations

import hashlib
import io
import tarfile
from types import SimpleNamespace

import pytest

from oortriage.kernels.source import SourceError, find, open_source, sdist, wheel

FILES = {
    "lib-1.0/lib/__init__.py": b"",
    "lib-1.0/lib/ops/kernel.py": b"BLOCK = 64\n",
    "lib-1.0/lib/ops/deeper/other.py": b"",
    "lib-1.0/csrc/kernel.cu": b"int x;",
    "lib-1.0/../../evil.py": b"",
}


def archive(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as opened:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return out.getvalue()


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path) -> dict[str, bytes]:
    """An index of one release that has a source archive and no wheel; what it serves can be changed."""
    served = {"data": archive(FILES)}
    monkeypatch.setenv("OORTRIAGE_CACHE", str(tmp_path))
    package = SimpleNamespace(
        version="1.0",
        package_type="sdist",
        filename="lib-1.0.tar.gz",
        url="https://index.invalid/lib-1.0.tar.gz",
        digests={"sha256": hashlib.sha256(served["data"]).hexdigest()},
    )
    for module in (sdist, wheel):
        monkeypatch.setattr(module, "_packages", lambda _library: [package])
    monkeypatch.setattr(sdist, "_download", lambda _url: served["data"])
    return served


@pytest.mark.usefixtures("index")
def test_a_release_without_a_wheel_is_read_from_its_archive() -> None:
    spec = find.find_source("lib", "1.0")
    assert (spec.kind, str(spec)) == ("sdist", "lib 1.0, its source archive")
    source = open_source(spec)
    assert source.has("lib/ops/kernel.py")
    assert not source.has("csrc/kernel.cu")
    assert source.names("lib/ops") == ["lib/ops/kernel.py"]
    assert source.fetch("lib/ops/kernel.py").read_bytes() == FILES["lib-1.0/lib/ops/kernel.py"]


@pytest.mark.usefixtures("index")
def test_it_is_downloaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    open_source(find.find_source("lib", "1.0")).fetch("lib/ops/kernel.py")
    for module, name in ((sdist, "_download"), (sdist, "_packages")):
        monkeypatch.setattr(module, name, lambda _: pytest.fail("asked again"))
    assert open_source(sdist.sdist_spec("lib", "1.0")).has("lib/__init__.py")


def test_another_file_than_the_index_states_is_refused(index: dict[str, bytes]) -> None:
    spec = find.find_source("lib", "1.0")
    index["data"] = archive({"lib-1.0/lib/__init__.py": b"other"})
    with pytest.raises(SourceError, match="SHA-256"):
        open_source(spec).has("lib/__init__.py")


@pytest.mark.usefixtures("index")
def test_members_that_point_outside_are_left_out() -> None:
    source = open_source(find.find_source("lib", "1.0"))
    assert not any("evil" in name for name in source._files)
    with pytest.raises(SourceError, match="has no"):
        source.fetch("../../evil.py")


@pytest.mark.usefixtures("index")
def test_a_release_that_has_neither_lists_those_there_are() -> None:
    with pytest.raises(SourceError, match=r"newest is 1\.0"):
        find.find_source("lib", "2.0")


def test_what_is_no_archive_says_so() -> None:
    with pytest.raises(SourceError, match="no readable archive"):
        sdist._python_files(b"nonsense", "lib.tar.gz")
