"""Gathers what a report is made of: the diagnosis, what is run on it now, and what was run before."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from oortriage.cli.output import complain
from oortriage.cli.progress import progress
from oortriage.errors import InputError, OortriageError, UsageError
from oortriage.triage.diagnosis import Diagnosis

if TYPE_CHECKING:
    from oortriage.replay.experiment import Experiment
    from oortriage.replay.reproduce import Reproduction
    from oortriage.report.material import Material

T = TypeVar("T")


class Wanted(msgspec.Struct, frozen=True):
    """What the command line asks to be in the report."""

    log: str
    reproduce: bool = False
    experiment: bool = False
    reproduction_file: Path | None = None
    experiment_file: Path | None = None
    verification_file: Path | None = None


def gather(diagnosis: Diagnosis, wanted: Wanted) -> Material:
    """Run and read what is wanted; what cannot be run is told on stderr and missing in the report.

    Raises:
        UsageError: a part is asked for twice, or is of another failure.
        InputError: a file is not what the option takes.
    """
    from oortriage.fix.verify import Verification
    from oortriage.replay.experiment import Experiment
    from oortriage.replay.reproduce import Reproduction
    from oortriage.report.environment import environment
    from oortriage.report.material import Material

    if wanted.reproduce and wanted.reproduction_file:
        raise UsageError("--reproduce and --reproduction do not go together")
    if wanted.experiment and wanted.experiment_file:
        raise UsageError("--experiment and --experiment-file do not go together")
    name = shlex.quote(wanted.log)
    commands = [f"oortriage analyze {name}"]
    reproduction = _read(wanted.reproduction_file, Reproduction, "oortriage reproduce --format json")
    if reproduction and wanted.reproduction_file:
        _same_failure(wanted.reproduction_file, reproduction.printed_bytes, diagnosis)
    experiment = _read(wanted.experiment_file, Experiment, "oortriage experiment --format json")
    verification = _read(wanted.verification_file, Verification, "oortriage patch verify --format json")
    if wanted.reproduce:
        reproduction = _tried("reproduce", lambda: _reproduced(diagnosis))
    if wanted.experiment:
        experiment = _tried("experiment", lambda: _experimented(diagnosis))
    commands += [f"oortriage reproduce {name}"] if reproduction else []
    commands += [f"oortriage experiment {name}"] if experiment else []
    commands += ["oortriage patch verify"] if verification else []
    return Material(
        diagnosis=diagnosis,
        reproduction=reproduction,
        experiment=experiment,
        verification=verification,
        commands=commands,
        environment=environment(),
    )


def _reproduced(diagnosis: Diagnosis) -> Reproduction:
    from oortriage.replay import reproduce as replay
    from oortriage.replay.options import Options
    from oortriage.replay.selection import select

    chosen = select(Options(), diagnosis)
    with progress("compiling") as report:
        return replay.reproduce(chosen, progress=report)


def _experimented(diagnosis: Diagnosis) -> Experiment:
    from oortriage.replay import experiment as replay
    from oortriage.replay.options import Options
    from oortriage.replay.selection import select

    chosen = select(Options(), diagnosis)
    with progress("compiling") as report:
        return replay.experiment(chosen, replay.read_vary([]), progress=report)


def _tried(verb: str, run: Callable[[], T]) -> T | None:
    try:
        return run()
    except OortriageError as problem:
        complain(f"{verb} was not run: {problem}")
        return None


def _read(path: Path | None, kind: type[T], written_by: str) -> T | None:
    """Read a result that was written before.

    Raises:
        InputError: the file cannot be read, or holds something else.
    """
    if path is None:
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror or problem}") from problem
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InputError(f"{path}: not what `{written_by}` writes: {problem}") from problem


def _same_failure(path: Path, printed_bytes: int | None, diagnosis: Diagnosis) -> None:
    """Refuse a proof of another figure than the log's: in a report it would prove something wrong."""
    wanted = diagnosis.numbers.get("required_bytes")
    if printed_bytes is not None and wanted is not None and printed_bytes != wanted:
        raise UsageError(f"{path}: it is of another failure: {printed_bytes:,} bytes, and the log prints {wanted:,}")
