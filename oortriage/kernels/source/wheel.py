"""A source in a package index: single files of a wheel, read by HTTP range and kept in the cache.

Forty kilobytes of a 430 MB wheel are enough. Every file is checked against the wheel's own record.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

from oortriage.cache import cache_folder
from oortriage.kernels.source._interface import NoWheelError, SourceError, SourceSpec

_EXTRA = "reading a wheel needs `pip install 'oortriage[source]'`"
#: Any wheel of a release holds the same Python files; this one is the commonest.
_PREFERRED = ("none-any", "x86_64", "aarch64")


class WheelSource:
    """Files of one wheel, each fetched when first asked for."""

    def __init__(self, spec: SourceSpec) -> None:
        """Open a wheel; nothing is read before a file is asked for."""
        self.version, self._spec = spec.version, spec
        self._folder = (
            cache_folder() / "wheels" / f"{spec.library}-{spec.version}-{(spec.digest or _short(spec.location))[:16]}"
        )

    @cached_property
    def _zip(self) -> Any:
        try:
            from remotezip import RemoteZip
        except ImportError as problem:
            raise SourceError(_EXTRA) from problem
        try:
            return RemoteZip(self._spec.location, timeout=60)
        except Exception as problem:  # remotezip hands on whatever requests and zipfile raise
            _kept_address(self._spec.library, self._spec.version).unlink(missing_ok=True)  # the index is asked anew
            raise SourceError(_plain(f"{self._spec.location}: cannot be read: {problem}")) from problem

    @cached_property
    def _record(self) -> dict[str, str]:
        """Map paths to ``sha256=...`` as the wheel's RECORD states them; kept beside the files."""
        kept = self._folder / "RECORD"
        if kept.is_file():
            text = kept.read_text(encoding="utf-8")
        else:
            name = next((one for one in self._zip.namelist() if one.endswith(".dist-info/RECORD")), "")
            if not name:
                raise SourceError(_plain(f"{self._spec.location}: the wheel has no record of its files"))
            text = self._read(name).decode("utf-8", "replace")
            _keep(kept, text.encode())
        try:
            return {row[0]: row[1] for row in csv.reader(io.StringIO(text)) if len(row) >= 2}
        except csv.Error as problem:
            raise SourceError(_plain(f"{self._spec.location}: its record cannot be read: {problem}")) from problem

    def _read(self, path: str) -> bytes:
        try:
            data: bytes = self._zip.read(path)
        except SourceError:
            raise
        except Exception as problem:  # as above
            raise SourceError(_plain(f"{self._spec.location}: {path} cannot be read: {problem}")) from problem
        return data

    def has(self, path: str) -> bool:
        """Tell whether the wheel holds a file."""
        return path in self._record

    def names(self, folder: str) -> list[str]:
        """List a folder, as the wheel's record has it."""
        return sorted(path for path in self._record if path.rpartition("/")[0] == folder)

    def fetch(self, path: str) -> Path:
        """Return a checked local copy."""
        local = self._folder / path
        stated = self._record.get(path, "")
        if local.is_file() and _matches(local.read_bytes(), stated):
            return local
        data = self._read(path)
        if not _matches(data, stated):
            raise SourceError(
                f"{path} of {self._spec.library} {self._spec.version} is not what the wheel's record says"
            )
        return _keep(local, data)


def wheel_spec(library: str, version: str) -> SourceSpec:
    """Find a release's wheel in the user's package index.

    Raises:
        NoWheelError: the release has none.
        SourceError: no way to the index.
    """
    kept = _kept_address(library, version)
    if kept.is_file():
        url, _, digest = kept.read_text(encoding="utf-8").partition(" ")
        return SourceSpec(library, version, "wheel", url, digest)
    packages = _packages(library)
    wheels = [one for one in packages if _same(one.version or "", version) and one.package_type == "wheel"]
    if not wheels:
        raise NoWheelError(
            f"the package index has no wheel of {library} {version}; "
            + _near(version, [one.version for one in packages if one.version])
        )
    wheel = min(wheels, key=lambda one: next((i for i, tag in enumerate(_PREFERRED) if tag in one.filename), 9))
    digest = (wheel.digests or {}).get("sha256", "")
    _keep(kept, f"{wheel.url} {digest}".encode())
    return SourceSpec(library, version, "wheel", wheel.url, digest)


def _kept_address(library: str, version: str) -> Path:
    return cache_folder() / "wheels" / f"{library}-{version}.url"


def _same(one: str, other: str) -> bool:
    """Compare versions: 0.17 is 0.17.0."""
    return bool(one) and re.sub(r"(?:\.0)+$", "", one) == re.sub(r"(?:\.0)+$", "", other)


def _near(version: str, there: list[str]) -> str:
    """Name the releases of the same minor version, or the ones before and after it; and the newest."""
    versions = sorted(set(there), key=_order)
    if not versions:
        return "it has no release at all"
    wanted = _order(version)
    near = [one for one in versions if _order(one)[:2] == wanted[:2]]
    if not near:
        place = sum(_order(one) < wanted for one in versions)
        near = versions[max(0, place - 2) : place + 2]
    return f"near ones: {', '.join(near[-6:])}; the newest is {versions[-1]}"


def released_versions(library: str, since: str) -> list[str]:
    """List the last patch of every minor release from ``since`` on, oldest first, without pre-releases.

    Raises:
        SourceError: no way to the index.
    """
    minors: dict[tuple[int, ...], str] = {}
    for one in _packages(library):
        version = one.version or ""
        if one.package_type == "wheel" and re.fullmatch(r"[\d.]+", version) and _order(version) >= _order(since):
            minor = _order(version)[:2]
            minors[minor] = max(minors.get(minor, version), version, key=_order)
    return [minors[minor] for minor in sorted(minors)]


def all_versions(library: str, since: str) -> list[str]:
    """List every release from ``since`` on, oldest first, post-releases too, without pre-releases.

    Raises:
        SourceError: no way to the index.
    """
    shape = re.compile(r"(\d+(?:\.\d+)*)(?:\.post(\d+))?")
    found: dict[str, tuple[tuple[int, ...], int]] = {}
    for one in _packages(library):
        match = shape.fullmatch(one.version or "")
        if one.package_type == "wheel" and match and _order(match[1]) >= _order(since):
            found[match[0]] = (_order(match[1]), int(match[2] or 0))
    return sorted(found, key=lambda version: found[version])


def _packages(library: str) -> list[Any]:
    try:
        from pypi_simple import PyPISimple
    except ImportError as problem:
        raise SourceError(_EXTRA) from problem
    try:
        with PyPISimple(_index()) as client:
            return list(client.get_project_page(library, timeout=30).packages)
    except Exception as problem:  # pypi-simple hands on whatever requests raises
        raise SourceError(_plain(f"the package index has no {library}, or cannot be reached: {problem}")) from problem


def _index() -> str:
    """Return the package index that the user's pip uses."""
    if url := os.environ.get("PIP_INDEX_URL"):
        return url
    said = ""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        said = subprocess.run(
            [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        ).stdout.strip()
    return said or "https://pypi.org/simple/"


def _plain(text: str) -> str:
    """Leave out the password that an index's address may hold."""
    return re.sub(r"(?<=//)[^/@\s]+@", "", text)


def _matches(data: bytes, stated: str) -> bool:
    """Compare with a record's ``sha256=`` entry (base64, without padding)."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return stated == f"sha256={digest}"


def _keep(path: Path, data: bytes) -> Path:
    """Write a file whole or not at all: another process may be reading or writing the same.

    Raises:
        SourceError: the cache cannot be written; source that a compiler reads must be a file.
    """
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except OSError as problem:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise SourceError(f"{path}: cannot be written: {problem.strerror or problem}") from problem
    return path


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _order(version: str) -> tuple[int, ...]:
    """Order releases; what follows the numbers (``rc1``, ``.dev3+g1a2b``) does not count."""
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in numbers.group().split(".")) if numbers else ()
