"""Settings from ``oortriage.toml`` or ``[tool.oortriage]`` in ``pyproject.toml``, nearest first."""

from __future__ import annotations

from pathlib import Path

import msgspec

from oortriage.errors import UsageError


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a project may set. ``rules`` are folders, relative to the file that names them."""

    rules: list[str] = []
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
            return _read(own, ())
        if project.is_file():
            found = _read(project, ("tool", "oortriage"))
            if found.rules or found.exit_zero:
                return found
    return Config()


def _read(path: Path, keys: tuple[str, ...]) -> Config:
    try:
        table = msgspec.toml.decode(path.read_bytes())
        for key in keys:
            table = table.get(key, {})
        config = msgspec.convert(table, Config)
    except (
        OSError,
        UnicodeDecodeError,
        msgspec.DecodeError,
        msgspec.ValidationError,
    ) as problem:
        if keys and not isinstance(problem, msgspec.ValidationError):
            return Config()  # somebody else's pyproject.toml; theirs to mend
        raise UsageError(f"{path}: {problem}") from problem
    return msgspec.structs.replace(config, folder=str(path.parent))
