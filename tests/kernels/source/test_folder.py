"""A library's files in a folder: however a checkout is laid out, and the installed package without importing it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from oortriage.kernels.source import SourceError, find_source, open_source
from oortriage.kernels.source.folder import folder_spec, installed_spec


def laid_out(root: Path, name: str = "gizmo", version: str = "") -> Path:
    package = root / name
    (package / "ops").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "ops" / "kernel.py").write_text("BLOCK = 64\n")
    if version:
        (package / "_version.py").write_text(f"# made\n__version__ = version = '{version}'\n")
    return package


@pytest.mark.parametrize("given", ["root", "package", "repository"])
def test_the_folder_may_be_the_root_the_package_or_a_repository(tmp_path: Path, given: str) -> None:
    below = tmp_path / "python" if given == "repository" else tmp_path
    package = laid_out(below, version="0.17.1")
    spec = folder_spec("gizmo", package if given == "package" else tmp_path, "")
    assert (spec.kind, spec.version, spec.location) == ("folder", "0.17.1", str(below.resolve()))
    source = open_source(spec)
    assert source.has("gizmo/ops/kernel.py")
    assert source.fetch("gizmo/ops/kernel.py").read_text() == "BLOCK = 64\n"
    assert not source.has("gizmo/ops")
    assert "gizmo 0.17.1, from " in str(spec)


def test_the_release_that_is_named_counts_before_the_one_that_stands_there(tmp_path: Path) -> None:
    laid_out(tmp_path, version="0.17.1")
    assert find_source("gizmo", "0.18.0", tmp_path).version == "0.18.0"
    assert find_source("gizmo", "", tmp_path).version == "0.17.1"


@pytest.mark.parametrize("text", ["", "version = 3", "__version__ = get()", "\xff\x00"])
def test_a_version_that_is_not_told_is_unknown(tmp_path: Path, text: str) -> None:
    package = laid_out(tmp_path)
    (package / "version.py").write_text(text, encoding="latin-1")
    spec = folder_spec("gizmo", tmp_path, "")
    assert spec.version == ""
    assert "(version unknown)" in str(spec)


def test_a_distribution_with_a_hyphen_is_a_package_with_an_underscore(tmp_path: Path) -> None:
    laid_out(tmp_path, "giz_mo")
    assert folder_spec("giz-mo", tmp_path, "1.0").location == str(tmp_path.resolve())


@pytest.mark.parametrize("where", ["absent", "gizmo", "file.py"])
def test_a_folder_without_the_package(tmp_path: Path, where: str) -> None:
    (tmp_path / "file.py").write_text("")
    (tmp_path / "other").mkdir()
    with pytest.raises(SourceError, match=r"there is no package gizmo in there"):
        find_source("gizmo", "1.0", tmp_path / where)
    laid_out(tmp_path)
    with pytest.raises(SourceError, match=r"other: there is no package gizmo in there"):
        find_source("gizmo", "1.0", tmp_path / "other")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    laid_out(tmp_path)
    info = tmp_path / "gizmo-3.4.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gizmo\nVersion: 3.4.5\n")
    (tmp_path / "single.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_the_installed_package_is_found_without_importing_it(installed: Path) -> None:
    for version in ("", "3.4.5"):
        spec = find_source("gizmo", version)
        assert (spec.kind, spec.version, spec.location) == ("installed", "3.4.5", str(installed))
        assert str(spec) == "gizmo 3.4.5, installed"
    assert open_source(spec).has("gizmo/ops/kernel.py")
    assert "gizmo" not in sys.modules


def test_another_release_than_the_installed_one_is_looked_for(
    installed: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert installed
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple/")
    monkeypatch.setenv("OORTRIAGE_CACHE", str(tmp_path_factory.mktemp("cache")))
    pytest.importorskip("pypi_simple", reason="reading wheels needs the extra [source]")
    with pytest.raises(SourceError, match=r"no source of gizmo 9\.9: .*install that release"):
        find_source("gizmo", "9.9")


def test_what_is_not_installed_asks_for_a_release() -> None:
    assert installed_spec("gizmo") is None
    with pytest.raises(SourceError, match=r"which gizmo\? Name the release .* or its folder"):
        find_source("gizmo", "")


@pytest.mark.usefixtures("installed")
def test_a_module_that_is_no_package_is_not_taken() -> None:
    assert installed_spec("single") is None
