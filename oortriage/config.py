"""Settings from ``oortriage.toml`` or ``[tool.oortriage]`` in ``pyproject.toml``, nearest first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from oortriage.errors import UsageError

_UNREADABLE = (OSError, UnicodeDecodeError, msgspec.DecodeError)


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a project may set. ``rules`` are folders, relative to the file that names them.

    ``ledger``: compile a failing kernel again whenever a log is analyzed.
    """

    rules: list[str] = []
    ledger: bool = False
    exit_zero: bool = False
    folder: str = "."

    @property
    def rule_folders(self) -> list[Path]:
        """The folders of the project's own rules."""
        return [Path(self.folder) / one for one in self.rules]


def find_config(start: Path | None = None) -> Config:
    """Read the nearest settings, from a folder upwards.

    Raises:
        UsageError: the settings are there and not valid; the message names the file.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        own, project = folder / "oortriage.toml", folder / "pyproject.toml"
        if own.is_file():
            return _config(own, _own_table(own))
        if project.is_file() and (table := _project_table(project)) is not None:
            return _config(project, table)
    return Config()


def _own_table(path: Path) -> Any:
    try:
        return msgspec.toml.decode(path.read_bytes())
    except _UNREADABLE as problem:
        raise UsageError(f"{path}: {problem}") from problem


def _project_table(path: Path) -> Any:
    """Return ``[tool.oortriage]``; None where there is none, or the file is broken: theirs to mend."""
    try:
        tool = msgspec.toml.decode(path.read_bytes()).get("tool")
    except _UNREADABLE:
        return None
    return tool.get("oortriage") if isinstance(tool, dict) else None


def _config(path: Path, table: Any) -> Config:
    try:
        config = msgspec.convert(table, Config)
    except msgspec.ValidationError as problem:
        raise UsageError(f"{path}: {problem}") from problem
    return msgspec.structs.replace(config, folder=str(path.parent))
