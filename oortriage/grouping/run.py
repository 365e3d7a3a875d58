"""From paths to groups: the loop that adds up, and what an interrupt leaves."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from oortriage.api import Analyzer
from oortriage.errors import InputError
from oortriage.grouping.inputs import find_inputs
from oortriage.grouping.pool import Pool
from oortriage.grouping.worker import look, shown
from oortriage.triage.groups import By, Grouping, Groups

#: A log is read in well under a second; what takes so long stalls.
LOG_SECONDS = 120.0

Progress = Callable[[int, int], None]


def group(
    paths: Sequence[str | Path],
    *,
    by: By = "fingerprint",
    jobs: int = 0,
    rules: Sequence[Path] = (),
    seconds: float = LOG_SECONDS,
    progress: Progress | None = None,
) -> Groups:
    """Diagnose logs in several processes and group them; the result does not depend on how many.

    An interrupt (Ctrl-C) ends the work; what was found until then is returned, marked as interrupted.

    Args:
        paths: logs, folders of logs, ``-`` for standard input.
        by: what the logs of one group share.
        jobs: processes; 0 for the cores that this process may use.
        rules: folders of the user's own rules.
        seconds: how long one log may take.
        progress: called with (done, all).

    Raises:
        PoolError: no log can be read at all, as when a rule is not valid.
    """
    grouping = Grouping(by)
    try:
        files = find_inputs(paths, grouping.fail)
        if "-" in files:  # only this process has it
            files.remove("-")
            _own(grouping, rules)
        pool = Pool(rules, jobs or cores(), seconds)
        answers = pool.over(files)
        try:
            for done, (path, answer) in enumerate(answers, 1):
                if answer.sighting:
                    grouping.add(answer.sighting)
                else:
                    grouping.fail(shown(path), answer.failed)
                if progress:
                    progress(done, len(files))
        finally:
            answers.close()
    except KeyboardInterrupt:
        return grouping.result(interrupted=True)
    return grouping.result()


def _own(grouping: Grouping, rules: Sequence[Path]) -> None:
    try:
        grouping.add(look(Analyzer(rules), "-"))
    except InputError as problem:
        grouping.fail("<stdin>", str(problem))


def cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
