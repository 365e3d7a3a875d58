"""Root cause: of all the events in a log, the one that everything after it follows from.

Wrappers never win, nor do lines a program survived. Runs in one file are told apart, a log printed
newest first is read from its end, and a resource failure that comes after an unrelated death is not
the root.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import msgspec

from oortriage.evidence.event import Event
from oortriage.intake.line import Kind, Line
from oortriage.intake.log import Log
from oortriage.intake.traceback import Raised

#: A line that begins a run of a program; it counts only once something has failed before it.
_RUN_STARTS = re.compile(
    r"vLLM API server version|Initializing an? (?:V1 )?LLM engine|non-default args:|"
    r"server_args=ServerArgs|Started server process|^[\w@.:~/-]{0,60}[$#%] \S|^\$ \S|^\+ (?:python|vllm|sglang)|"
    r"Automatically detected platform|llama_model_loader: loaded meta data|^torchrun "
)
#: A line that shows the program got on with its work.
_PROGRESS = re.compile(
    r"\b(?:step|epoch|iter(?:ation)?|trial)s?\b[ :=\[]*\d|\d it/s\b|\d+s/it\b|\bloss\b['\"]?\s*[:=]?\s*[\d.]|"
    r"\d tokens/s|\b200 OK\b|\| +200 +\||AUTOTUNE \w+\(|retrying with|falling back|fallback|tokens per second|"
    r"llama runner started|best config|\bms/step\b",
    re.IGNORECASE,
)
#: A line that says the run ended well; alone it proves nothing, CI jobs "finish" in failure too.
_ENDED_WELL = re.compile(
    r"\b(?:finished|completed|saved|succeeded)\b|\bdone\b|\bexit(?:ed)? (?:code |status )?0\b", re.IGNORECASE
)
#: A line after which nobody may speak of a failure got over.
_DEATH = re.compile(
    r"\berrors?\b|\bfail(?:ed|ure|s)?\b|\babort(?:ed|ing)?\b|\bkilled\b|\bfatal\b|\bunsuccessful|"
    r"\bexit(?:ed)?\b.{0,12}\b[1-9]\d*\b|\bterminat(?:ed|ing)\b|shutting down|\bdied\b|core dump",
    re.IGNORECASE,
)
#: Reasons for a SIGKILL other than a lack of memory.
_OTHER_KILL = re.compile(
    r"DUE TO (?:TIME LIMIT|PREEMPTION)|CANCELLED (?:AT|by)|Gracefully [Ss]topping|[Ll]iveness probe failed|"
    r"failed liveness probe|timeout (?:-\w+ )*(?:-s|--signal)[ =]?(?:KILL|9)|\b[Pp]reempt(?:ed|ion)\b|"
    r"[Ss]pot (?:instance )?interrupt|operation was canceled|\bp?kill -(?:9|KILL|SIGKILL)\b|stop grace period"
)
#: Words in front of a message that make up for a quiet level.
_SAYS_ERROR = re.compile(r"\berror=|\bexception\b", re.IGNORECASE)
_QUIET_LEVELS = frozenset({"I", "W", "D", "INFO", "WARN", "WARNING", "DEBUG", "TRACE", "NOTICE"})
#: Exceptions that say only that another process or a task failed.
_WRAPPING_TYPES = re.compile(
    r"(?:EngineDead|AsyncEngineDead|MQEngineDead|ChildFailed|ProcessRaised|CalledProcess|RayTask|ActorDied|"
    r"BrokenProcessPool|ProcessExited|WorkerCrashed|SystemExit|KeyboardInterrupt|BrokenPipe|"
    r"ConnectionReset|CancelledError|StopIteration|GeneratorExit|EOFError)"
)


class Root(msgspec.Struct, frozen=True):
    """What was chosen, and what was seen on the way."""

    event: Event | None
    #: The chosen event again, in other ranks or re-raised further down.
    same: tuple[Event, ...] = ()
    #: Failures of the same traceback chain as the root: they tell where it happened.
    companions: tuple[Event, ...] = ()
    wrappers: tuple[Event, ...] = ()
    recovered: tuple[Event, ...] = ()
    warnings: tuple[Event, ...] = ()
    unrelated: tuple[Event, ...] = ()
    #: Exceptions that no rule knows and that are no wrappers.
    unknown: tuple[tuple[Raised, Line], ...] = ()
    mentions: tuple[Event, ...] = ()
    later: tuple[Event, ...] = ()
    #: Position in reading order at which the run of the root begins.
    first_order: int = 0
    #: The line that gives another reason than memory for a process's SIGKILL.
    killed: Line | None = None
    other_runs: tuple[Event, ...] = ()


def find_root(log: Log, events: Sequence[Event]) -> Root:
    """Choose the root event of a log; ``event`` is None where no resource failure is proved."""
    eventful = [event for event in events if event.rule.is_event]
    runs = _runs(log, eventful)
    roots = [_root_of_run(log, run) for run in runs]
    failed = [root for root in roots if root.event]
    if not failed:
        return _joined(roots)
    last = failed[-1]
    # A crash loop prints the same failure again and again; its first run stands for all.
    chosen = next(root for root in failed if _repeats(root, last))
    others = tuple(root.event for root in failed if root.event and not _repeats(root, last))
    return msgspec.structs.replace(chosen, other_runs=others)


def _joined(roots: Sequence[Root]) -> Root:
    """Put together what several runs without a failure had."""
    if len(roots) == 1:
        return roots[0]

    def together(name: str) -> tuple[Event, ...]:
        return tuple(one for root in roots for one in getattr(root, name))

    return Root(
        None,
        wrappers=together("wrappers"),
        recovered=together("recovered"),
        warnings=together("warnings"),
        unrelated=together("unrelated"),
        mentions=together("mentions"),
        unknown=tuple(one for root in roots for one in root.unknown),
        killed=next((root.killed for root in roots if root.killed), None),
    )


def _repeats(one: Root, other: Root) -> bool:
    return bool(
        one.event
        and other.event
        and one.event.code == other.event.code
        and one.event.match.numbers == other.event.match.numbers
    )


class _Run(msgspec.Struct):
    first: int
    last: int
    events: list[Event]


def _runs(log: Log, events: Sequence[Event]) -> list[_Run]:
    """Cut the log where a program starts again after something had failed."""
    fatal = sorted(
        event.order
        for event in events
        if event.rule.role in ("failure", "wrapper", "unrelated") and not event.mentioned
    )
    cuts: list[int] = []
    last_cut = 0
    pending = iter(fatal)
    next_fatal = next(pending, None)
    failed_at: int | None = None
    for line in log.lines:
        while next_fatal is not None and next_fatal < line.order:
            failed_at = next_fatal
            next_fatal = next(pending, None)
        if failed_at is not None and failed_at >= last_cut and _RUN_STARTS.search(line.body):
            # Another process of the same run prints its banner too; a restart starts from the top.
            cuts.append(line.order)
            last_cut = line.order
            failed_at = None
    bounds = [0, *cuts, len(log.lines) + 1]
    return [
        _Run(low, high, [event for event in events if low <= event.order < high])
        for low, high in itertools.pairwise(bounds)
    ]


def _root_of_run(log: Log, run: _Run) -> Root:
    by_role: dict[str, list[Event]] = {}
    mentions: list[Event] = []
    for event in run.events:
        if event.mentioned:
            mentions.append(event)
        else:
            by_role.setdefault(event.rule.role, []).append(event)
    failures = by_role.get("failure", [])
    wrappers = by_role.get("wrapper", [])
    unrelated = by_role.get("unrelated", [])
    recovered = by_role.get("recovered", [])
    killed = _killed_otherwise(log, run, failures)
    failures = [event for event in failures if killed is None or event.rule.resource != "host_memory"]
    survived: list[Event] = []
    deaths = [*wrappers, *unrelated]
    for event in reversed(failures):
        later = [one for one in failures if one.order > event.order and one.rule.resource == event.rule.resource]
        # What is printed again by a failure that was not survived was not survived either.
        if any(_same(event, one) and one not in survived for one in later):
            continue
        died_first = any(event.order <= one.order < later[0].order for one in deaths) if later else True
        if _survived(log, run, event, failures, deaths) or (later and later[0] in survived and not died_first):
            survived.append(event)
    survived.reverse()
    killed_after = [event for event in failures if _is_aftermath(event, wrappers)]
    standing = [event for event in failures if event not in survived and event not in killed_after]
    wrappers = sorted([*wrappers, *killed_after], key=lambda event: event.order)
    unknown = _unknown_exceptions(log, run)
    root = _choose(standing)
    if root is None and recovered:
        root = _blamed(recovered, wrappers)
        recovered = [one for one in recovered if one is not root]
    if root is not None:
        died_before = [
            event
            for event in unrelated
            if event.order < root.order and any(event.order <= wrapper.order < root.order for wrapper in wrappers)
        ]
        if died_before:
            survived.append(root)
            root = None
    same = [one for one in standing if root and one is not root and _same(one, root)]
    companions = [one for one in standing if root and one is not root and one not in same and _close(one, root)]
    later = [one for one in standing if root and one not in (root, *same, *companions)]
    return Root(
        root,
        tuple(same),
        tuple(companions),
        tuple(wrappers),
        tuple(recovered + survived),
        tuple(by_role.get("warning", [])),
        tuple(unrelated),
        tuple(unknown),
        tuple(mentions),
        tuple(later),
        run.first,
        killed,
    )


def _choose(failures: Sequence[Event]) -> Event | None:
    """Take the earliest failure among those told most plainly.

    First come exact wordings that were raised or logged as errors; a guess from a partial wording,
    or a line logged as information, is taken only when there is nothing better.
    """
    for exact, loud in ((True, True), (True, False), (False, True), (False, False)):
        fitting = [
            event for event in failures if (event.match.pattern.quality == "exact") is exact and _is_loud(event) is loud
        ]
        if fitting:
            return min(fitting, key=lambda event: (event.order, event.offset))
    return None


def _killed_otherwise(log: Log, run: _Run, failures: Sequence[Event]) -> Line | None:
    """Find the line that states why a process was killed, where it was not for memory.

    SIGKILL alone proves no shortage; a time limit, a probe or an operator in the log explains it.
    """
    kills = [one for one in failures if one.rule.resource == "host_memory"]
    if not kills or any(one.match.pattern.quality == "exact" for one in kills):
        return None
    return next(
        (line for line in log.lines[run.first : run.last] if not line.in_prose and _OTHER_KILL.search(line.body)),
        None,
    )


def _is_aftermath(event: Event, wrappers: Sequence[Event]) -> bool:
    """Tell a bare kill that follows a death already reported: a parent cleaning up, no shortage.

    SIGKILL alone proves nothing. Where this line or a wrapper before it names the signal as the
    way a process ended, the kill came first.
    """
    if event.rule.resource != "host_memory" or event.match.pattern.quality == "exact":
        return False
    before = [one for one in wrappers if one.order < event.order]
    signals = [one.match.numbers.get("exit_code") for one in (event, *before)]
    return bool(before) and not any(signal in (-9, 137) for signal in signals)


def _blamed(recovered: Sequence[Event], wrappers: Sequence[Event]) -> Event | None:
    """Find the survived failure that a later line turns into the end of the run."""
    blaming = [one.order for one in wrappers if one.rule.blames_recovered]
    if not blaming:
        return None
    before = [one for one in recovered if one.order < max(blaming)]
    return before[0] if before else None


def _is_loud(event: Event) -> bool:
    if event.line.kind is Kind.EXCEPTION or event.line.prefix.level not in _QUIET_LEVELS:
        return True
    return bool(_SAYS_ERROR.search(event.line.body[: event.offset]))


def _survived(log: Log, run: _Run, event: Event, failures: Sequence[Event], deaths: Sequence[Event]) -> bool:
    """Tell whether the program went on with its work after this failure, and did not die of it."""
    until = _next_failure(event, failures, run.last)
    if event.line.in_prose or any(event.order <= one.order < until for one in deaths):
        return False
    # An exception that was printed and got over is rare; it takes plain progress right after.
    needed = 3 if event.line.kind is Kind.EXCEPTION else 1
    quiet = not _is_loud(event)
    progress, ended_well = 0, False
    for line in log.lines[event.last_order + 1 : min(until, len(log.lines))]:
        if line.in_prose or line.kind in (Kind.CODE, Kind.FRAME):
            continue
        if _PROGRESS.search(line.body) and "?it/s" not in line.body:
            progress, ended_well = progress + 1, True
        elif line.kind is Kind.EXCEPTION or _DEATH.search(line.body):
            ended_well = False
        elif (progress or quiet) and _ENDED_WELL.search(line.body):
            # A line logged as a warning needs less to be got over than one logged as an error.
            progress, ended_well = progress + quiet, True
    # What fails again after more work is another failure; this one had been got over.
    return progress >= needed and (ended_well or until < run.last)


def _next_failure(event: Event, failures: Sequence[Event], end: int) -> int:
    """Find where a failure of the same resource with other figures begins; ``end`` where there is none."""
    later = [
        one.order
        for one in failures
        if one.order > event.last_order and one.rule.resource == event.rule.resource and not _same(one, event)
    ]
    return min(later, default=end)


def _same(one: Event, root: Event) -> bool:
    """The same failure in another rank, or printed again: same rule family and same figures."""
    if one.rule.resource != root.rule.resource:
        return False
    figures = ("required_bytes", "limit_bytes", "requested_bytes", "kv_needed_bytes", "kv_tokens")
    ours = {name: root.match.numbers.get(name) for name in figures}
    theirs = {name: one.match.numbers.get(name) for name in figures}
    return ours == theirs or (one.code == root.code and not any(theirs.values()))


def _close(one: Event, root: Event) -> bool:
    """Raised while handling the root, or wrapped round it: same stream and soon after."""
    return one.stream == root.stream and 0 <= one.order - root.order <= 250


def _raised_at(log: Log, event: Event) -> Raised | None:
    for stream in log.streams:
        if stream.name != event.stream:
            continue
        for raised in stream.raised:
            if stream.lines[raised.last] is event.line or (
                raised.first <= 0 and stream.lines[raised.last].order == event.order
            ):
                return raised
    return None


def raised_with(log: Log, event: Event) -> Raised | None:
    """Return the traceback that ends in this event, or that is printed right below it."""
    return _raised_at(log, event) or _raised_below(log, event)


def _raised_below(log: Log, event: Event) -> Raised | None:
    """Some loggers print the message first and its traceback after it."""
    for stream in log.streams:
        if stream.name != event.stream:
            continue
        for raised in stream.raised:
            gap = stream.lines[raised.first].order - event.last_order
            if raised.frames and 0 < gap <= 2:
                return raised
    return None


def _unknown_exceptions(log: Log, run: _Run) -> list[tuple[Raised, Line]]:
    """List exceptions at the end of tracebacks that no rule matched and that are no wrappers."""
    known = {order for event in run.events for order in range(event.first_order, event.last_order + 1)}
    found = []
    for stream in log.streams:
        for raised in stream.raised:
            line = stream.lines[raised.last]
            if (
                raised.type
                and run.first <= line.order < run.last
                and line.order not in known
                and not _WRAPPING_TYPES.search(raised.type)
                and not line.in_prose
            ):
                found.append((raised, line))
    return sorted(found, key=lambda pair: pair[1].order)
