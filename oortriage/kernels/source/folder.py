"""A source in a folder: a checkout, or the installed package."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

from oortriage.kernels.source._interface import SourceError, SourceSpec


class FolderSource:
    """Files below a folder that holds the package."""

    def __init__(self, spec: SourceSpec) -> None:
        """Open the folder."""
        self.version, self._root = spec.version, Path(spec.location)

    def has(self, path: str) -> bool:
        """Tell whether the file is there."""
        return (self._root / path).is_file()

    def names(self, folder: str) -> list[str]:
        """List a folder."""
        here = self._root / folder
        return sorted(f"{folder}/{one.name}" for one in here.iterdir() if one.is_file()) if here.is_dir() else []

    def fetch(self, path: str) -> Path:
        """Return the file itself."""
        return self._root / path


def folder_spec(library: str, path: Path, version: str) -> SourceSpec:
    """Take a folder that holds the package, or is it.

    Raises:
        SourceError: the package is not in there.
    """
    package = library.replace("-", "_")
    for root in (path, path / "python", path.parent):
        if (root / package).is_dir() and (root != path.parent or path.name == package):
            return SourceSpec(library, version or _stated_version(root / package), "folder", str(root.resolve()))
    raise SourceError(f"{path}: there is no package {package} in there")


def installed_spec(library: str) -> SourceSpec | None:
    """Find the installed package without importing it; None when it is not installed."""
    package = library.replace("-", "_")
    try:
        found = importlib.util.find_spec(package)
        version = importlib.metadata.version(library)
    except (ImportError, ValueError, importlib.metadata.PackageNotFoundError):
        return None
    if found is None or not found.submodule_search_locations:
        return None
    return SourceSpec(library, version, "installed", str(Path(next(iter(found.submodule_search_locations))).parent))


def _stated_version(package: Path) -> str:
    for name in ("_version.py", "version.py"):
        try:
            text = (package / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for line in text.splitlines():
            if line.startswith(("__version__", "version")) and line.count("'") + line.count('"') >= 2:
                return line.replace('"', "'").split("'")[1]
    return ""
