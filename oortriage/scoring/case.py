"""A labelled case: a folder with a log and ``case.toml``, which holds the verdict it should get."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from oortriage.errors import InputError
from oortriage.evidence.rule import Resource
from oortriage.triage.diagnosis import Phase, Status


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The verdict a case should get. Empty lists and tables are not judged."""

    resource: Resource
    causes: list[str] = []
    status: Status = "fatal"
    phases: list[Phase] = []
    root: str = ""
    root_line: int = 0
    numbers: dict[str, int | float] = {}
    facts: dict[str, str | int | float] = {}


class LabelledCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One case. ``origin`` says whether its figures come from a run or from a public report."""

    title: str
    log: str
    origin: Literal["run", "public"]
    expect: Expected
    source: str = ""
    note: str = ""
    folder: str = ""

    @property
    def name(self) -> str:
        """Group and slug."""
        return "/".join(Path(self.folder).parts[-2:])

    @property
    def path(self) -> Path:
        """The log's path."""
        return Path(self.folder) / self.log


def load_case(path: Path) -> LabelledCase:
    """Read one ``case.toml``.

    Raises:
        InputError: not a case; the message names the file.
    """
    try:
        table = msgspec.toml.decode(path.read_bytes())
        case = msgspec.convert(table, LabelledCase)
    except (
        OSError,
        UnicodeDecodeError,
        msgspec.DecodeError,
        msgspec.ValidationError,
    ) as problem:
        raise InputError(f"{path}: {problem}") from problem
    return msgspec.structs.replace(case, folder=str(path.parent))


def load_cases(folder: Path) -> list[LabelledCase]:
    """Read every case below a folder, in order of name.

    Raises:
        InputError: there is no case, or one is not valid.
    """
    cases = [load_case(path) for path in sorted(folder.rglob("case.toml"))]
    if not cases:
        raise InputError(f"{folder}: no case.toml below it")
    return cases
