"""Chooses a source: the user's folder, the installed package of the log's release, a wheel, a source archive."""

from __future__ import annotations

import re
from pathlib import Path

from oortriage.kernels.source._interface import NoWheelError, Source, SourceError, SourceSpec
from oortriage.kernels.source.folder import FolderSource, folder_spec, installed_spec
from oortriage.kernels.source.sdist import SdistSource, sdist_spec
from oortriage.kernels.source.wheel import WheelSource, wheel_spec

_VERSION = re.compile(r"\d[\w.+!-]{0,60}", re.ASCII)


def find_source(library: str, version: str, folder: Path | None = None) -> SourceSpec:
    """Find a library's source.

    Args:
        library: the distribution: ``vllm``.
        version: the release; empty for whatever is installed.
        folder: where the user says it is.

    Raises:
        SourceError: none of the three is there.
    """
    version = version.removeprefix("v")
    if version and not _VERSION.fullmatch(version):  # it becomes part of a file's name, and may be from a log
        raise SourceError(f"{library} {version[:60]!r}: that is no version")
    if folder:
        return folder_spec(library, folder, version)
    installed = installed_spec(library)
    if installed and version in ("", installed.version):
        return installed
    if not version:
        raise SourceError(f"which {library}? Name the release (--{library} X.Y.Z) or its folder (--source PATH)")
    try:
        try:
            return wheel_spec(library, version)
        except NoWheelError as missing:
            try:
                return sdist_spec(library, version)
            except SourceError:
                raise missing from None  # its message lists the releases there are
    except SourceError as problem:
        raise SourceError(
            f"no source of {library} {version}: {problem}. Give its folder (--source PATH), install that release, or "
            "let the package index be reached"
        ) from problem


def open_source(spec: SourceSpec) -> Source:
    """Open a source that was found."""
    if spec.kind == "wheel":
        return WheelSource(spec)
    return SdistSource(spec) if spec.kind == "sdist" else FolderSource(spec)
