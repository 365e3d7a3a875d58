"""``oortriage run``: the user's command as it is, triaged the moment it crashes."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from oortriage.capture.capsule import Capsule, read_capsule
from oortriage.capture.command import Ended, run_command
from oortriage.capture.environment import capsules_in, capture_folder, capture_variables
from oortriage.errors import InputError, UsageError
from oortriage.report.escape import visible
from oortriage.triage.diagnosis import Diagnosis

#: For typer: what follows the command's name is the command's own.
SETTINGS = {"ignore_unknown_options": True, "allow_interspersed_args": False}
_SHOWN, _KILLED = 3, 9


def run(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND...", help="The command, with its own options.")
    ] = None,
    capsules: Annotated[
        Path | None,
        typer.Option(
            "--capsules", help="Where capsules go; else OORTRIAGE_CAPTURE, else ./oortriage-capsules.", file_okay=False
        ),
    ] = None,
    triage_exit: Annotated[
        bool, typer.Option("--triage-exit", help="End with the verdict's code (0, 1, 3), not the command's own.")
    ] = False,
    show_environment: Annotated[
        bool,
        typer.Option(
            "--show-environment", help="Only print the variables to set where the command is started otherwise."
        ),
    ] = False,
) -> None:
    """Run a command as it is and, when it fails, say at once which memory ran out.

    Output, signals and exit code are the command's own. In its Python processes a kernel that Triton refuses
    for lack of resources leaves a capsule: source text, constants, types, versions; no tensor data, no
    environment, no command line. `oortriage reproduce CAPSULE.json` compiles it again on any machine. Python
    started with -I, -E or -S is not seen.

    Examples: `oortriage run -- python serve.py --model m`, `oortriage run --capsules /tmp/c -- torchrun train.py`.
    """
    folder = capture_folder(capsules, os.environ)
    variables = capture_variables(folder, os.environ)
    if show_environment:
        for name, value in variables.items():
            sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
        raise typer.Exit
    if not command:
        raise UsageError("which command? oortriage run -- python serve.py")
    before = capsules_in(folder)
    ended = run_command(command, variables)
    new = [path for path, written in capsules_in(folder).items() if before.get(path) != written]
    code = _verdict(ended, new)
    raise typer.Exit(code if triage_exit else ended.code)


def _verdict(ended: Ended, paths: list[Path]) -> int:
    """Print what is to be said, on stderr, and return the verdict's exit code."""
    if not paths and (ended.code == 0 or ended.interrupted):
        return 0
    found = _capsules(paths)
    diagnosis = _diagnosis(ended)
    code = 1 if found else diagnosis.exit_code
    if diagnosis.exit_code:
        _say(f"{diagnosis.resource} ({diagnosis.code or 'no code'}, confidence {diagnosis.confidence:.2f})")
        _say(diagnosis.summary)
        if diagnosis.prescriptions:
            _say(f"change: {diagnosis.prescriptions[0].change}")
    elif ended.signal:
        killed = "; the kernel sends it where host memory runs out: see `dmesg`" if ended.signal == _KILLED else ""
        _say(f"the command was ended by {_name(ended.signal)}; its output names no memory that ran out{killed}")
    for path, capsule in found[:_SHOWN]:
        _say(capsule.sentence)
        _say(f"capsule: {path}")
    if len(found) > _SHOWN:
        _say(f"and {len(found) - _SHOWN} more capsules in {paths[0].parent}")
    if found:
        _say(f"next: oortriage reproduce {shlex.quote(str(found[0][0]))}")
    return code


def _diagnosis(ended: Ended) -> Diagnosis:
    from oortriage.api import Analyzer
    from oortriage.config import find_config

    return Analyzer(find_config().rule_folders).text(ended.output, name="<output>")


def _capsules(paths: list[Path]) -> list[tuple[Path, Capsule]]:
    found = []
    for path in paths:
        try:
            found.append((path, read_capsule(str(path))))
        except InputError as problem:
            _say(str(problem))
    return found


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _say(text: str) -> None:
    """Print one line that no output of the command's can act through."""
    line = visible(" ".join(text.splitlines()))
    sys.stderr.write(f"oortriage: {line}\n")
    sys.stderr.flush()
