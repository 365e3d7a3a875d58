"""A source in a package index that has no wheel: the whole source archive, read once and kept in the cache.

Libraries that compile extensions (mamba_ssm) publish only this. The archive is checked against the
SHA-256 that the index states before anything in it is used; nothing of it is built or run.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from functools import cached_property
from pathlib import Path, PurePosixPath

from oortriage.cache import cache_folder
from oortriage.kernels.source._interface import SourceError, SourceSpec
from oortriage.kernels.source.wheel import _keep, _packages, _plain

#: Folders below the archive's root that a package may stand in.
_ROOTS = ("src", "python")
_TIMEOUT_S = 60


class SdistSource:
    """Files of one source archive."""

    def __init__(self, spec: SourceSpec) -> None:
        """Open an archive; it is downloaded when a file is first asked for."""
        self.version, self._spec = spec.version, spec
        self._folder = cache_folder() / "sdists" / f"{spec.library}-{spec.version}-{spec.digest[:16]}"

    @cached_property
    def _files(self) -> dict[str, bytes]:
        """Map paths in the package to contents; archives of source are a few megabytes at most."""
        kept = self._folder / "archive.tar.gz"
        data = kept.read_bytes() if kept.is_file() else b""
        if hashlib.sha256(data).hexdigest() != self._spec.digest:
            data = _download(self._spec.location)
            if hashlib.sha256(data).hexdigest() != self._spec.digest:
                raise SourceError(
                    _plain(f"{self._spec.location} is not the file whose SHA-256 the package index states")
                )
            _keep(kept, data)
        return _python_files(data, self._spec.location)

    def has(self, path: str) -> bool:
        """Tell whether the package holds a file."""
        return path in self._files

    def names(self, folder: str) -> list[str]:
        """Return the paths of the files of a folder of the package, not of folders within."""
        return sorted(path for path in self._files if path.rpartition("/")[0] == folder.rstrip("/"))

    def fetch(self, path: str) -> Path:
        """Return a local copy."""
        if path not in self._files:
            raise SourceError(f"{self._spec.library} {self.version} has no {path}")
        local = self._folder / "files" / path
        if local.is_file() and local.read_bytes() == self._files[path]:
            return local
        return _keep(local, self._files[path])


def sdist_spec(library: str, version: str) -> SourceSpec:
    """Find a release's source archive in the user's package index.

    Raises:
        SourceError: there is none, none with a SHA-256, or no way to the index.
    """
    kept = cache_folder() / "sdists" / f"{library}-{version}.url"
    if kept.is_file():
        url, _, digest = kept.read_text(encoding="utf-8").partition(" ")
        return SourceSpec(library, version, "sdist", url, digest)
    for one in _packages(library):
        digest = one.digests.get("sha256", "")
        if one.version == version and one.package_type == "sdist" and one.filename.endswith(".tar.gz") and digest:
            _keep(kept, f"{one.url} {digest}".encode())
            return SourceSpec(library, version, "sdist", one.url, digest)
    raise SourceError(f"the package index has neither a wheel nor a source archive of {library} {version}")


def _download(url: str) -> bytes:
    import requests

    try:
        answer = requests.get(url, timeout=_TIMEOUT_S)
        answer.raise_for_status()
    except requests.RequestException as problem:
        raise SourceError(_plain(f"{url}: cannot be read: {problem}")) from problem
    return answer.content


def _python_files(archive: bytes, name: str) -> dict[str, bytes]:
    """Read an archive into paths as a wheel has them; members that point outside are left out."""
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as opened:
            for member in opened:
                parts = PurePosixPath(member.name).parts[1:]  # the first is NAME-VERSION
                if parts and parts[0] in _ROOTS:
                    parts = parts[1:]
                if not member.isfile() or not parts or ".." in parts or not member.name.endswith((".py", ".json")):
                    continue
                content = opened.extractfile(member)
                files["/".join(parts)] = content.read() if content else b""
    except (tarfile.TarError, OSError, EOFError) as problem:
        raise SourceError(_plain(f"{name}: no readable archive: {problem}")) from problem
    return files
