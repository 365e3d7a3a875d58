"""The two variables by which processes are captured, and the capsules that a run left."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from oortriage.errors import UsageError

VARIABLE = "OORTRIAGE_CAPTURE"
#: Where capsules go when nobody says; made when the first is written.
DEFAULT_FOLDER = "oortriage-capsules"


def hook_folder() -> Path:
    """Return the folder that goes first on the module path.

    Raises:
        UsageError: it is not there as a folder (a zipped installation).
    """
    folder = Path(__file__).resolve().parent / "hook"
    if not (folder / "sitecustomize.py").is_file():
        raise UsageError(f"{folder}: the capture hook is not there; install oortriage unzipped")
    return folder


def capture_folder(chosen: Path | None, environment: Mapping[str, str]) -> Path:
    """Return where capsules go: what was asked for, what the environment says, else a folder here."""
    return (chosen or Path(environment.get(VARIABLE) or DEFAULT_FOLDER)).absolute()


def capture_variables(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to set, the user's own module path kept behind the hook."""
    hook = str(hook_folder())
    own = environment.get("PYTHONPATH", "")
    rest = [one for one in own.split(os.pathsep) if one != hook] if own else []
    return {VARIABLE: str(folder), "PYTHONPATH": os.pathsep.join([hook, *rest])}


def capsules_in(folder: Path) -> dict[Path, int]:
    """List the capsules in a folder with the time each was written at (nanoseconds); none when it is not there."""
    found = {}
    try:
        for path in sorted(folder.glob("*.json")):
            found[path] = path.stat().st_mtime_ns
    except OSError:
        return found
    return found
