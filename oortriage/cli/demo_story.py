"""The demo's story: verdict, ledger, experiment, patch and report of one crash, without a GPU or a network."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from oortriage.cli.output import Sink, say
from oortriage.errors import OortriageError, UsageError
from oortriage.report._interface import Style, open_report, render_all
from oortriage.triage.diagnosis import Diagnosis

if TYPE_CHECKING:
    from oortriage.replay.experiment import Experiment
    from oortriage.replay.reproduce import Reproduction

T = TypeVar("T")
LOG = "vllm-t4.log"
_KERNEL = "reference.attention"
_SHAPE = {"dtype": "float32", "head_size": 256}
_TILE = 32
_GRID = {"num_stages": [1, 2, 3], "tile": [16, 32]}
_FLAGS = f"--kernel {_KERNEL} --gpu T4 --dtype float32 --head-size 256"
READ = [f"oortriage demo --log > {LOG}", f"oortriage analyze {LOG}"]
REPRODUCE = f"oortriage reproduce {_FLAGS} --tile {_TILE}"
EXPERIMENT = f"oortriage experiment {_FLAGS} --vary num_stages=1,2,3 --vary tile=16,32"
_RULE = "tile16"


def tell(diagnosis: Diagnosis, log: Path, style: Style, output: Path | None) -> None:
    """Print the steps one after the other; the report is written where a folder is given.

    Raises:
        UsageError: the folder cannot be written.
    """
    from oortriage.report.story import step

    if output is not None:
        _make(output)
    with ThreadPoolExecutor(2) as pool:  # both start at once: a child each, on a core each
        compiled, grid = pool.submit(_reproduce), pool.submit(_experiment)
        title = "The verdict: which memory ran out, and the line that proves it"
        say(step(1, title, READ, render_all(open_report("text", style), [diagnosis]), style))
        title, body = _ledger(compiled, diagnosis, style)
        own = f"oortriage reproduce {LOG}   # vLLM's own kernel; fetches its file"
        say(step(2, title, [REPRODUCE, own], body, style))
        title, body = _moves(grid, style)
        say(step(3, title, [EXPERIMENT], body, style))
    say(step(4, "What the patch would do", _patch_commands(), _patch(diagnosis, grid, style), style))
    commands, body = _report(diagnosis, compiled, grid, log, output)
    say(step(5, "The report, redacted, for an issue", commands, body, style), end="")


def _reproduce() -> Reproduction:
    from oortriage.replay import selection
    from oortriage.replay.options import Options
    from oortriage.replay.reproduce import reproduce

    options = Options(kernel=_KERNEL, gpu="T4", settings=dict(_SHAPE), overrides={"tile": _TILE})
    return reproduce(selection.select(options))


def _experiment() -> Experiment:
    from oortriage.replay import selection
    from oortriage.replay.experiment import experiment
    from oortriage.replay.options import Options

    # Whether registers spill takes an assembler and seconds; the command shown looks at that as well.
    chosen = selection.select(Options(kernel=_KERNEL, gpu="T4", settings=dict(_SHAPE)))
    return experiment(chosen, dict(_GRID), spills=False)


def _result(work: Future[T]) -> T | OortriageError:
    try:
        return work.result()
    except OortriageError as problem:
        return problem


def _ledger(work: Future[Reproduction], diagnosis: Diagnosis, style: Style) -> tuple[str, str]:
    from oortriage.report.story import ledger_text, said

    title = "The proof: a kernel of the same shape, compiled for a T4 on this machine"
    result = _result(work)
    if isinstance(result, OortriageError):
        return title, said([f"Not run here. {result}"], style.width)
    return title, ledger_text(result, int(diagnosis.numbers["required_bytes"]), style.width)


def _moves(work: Future[Experiment], style: Style) -> tuple[str, str]:
    from oortriage.report.story import grid_text, said

    title = "The experiment: what moves the bytes, and what does not"
    result = _result(work)
    if isinstance(result, OortriageError):
        return title, said([f"Not run here. {result}"], style.width)
    return title, grid_text(result, style)


def _patch_commands() -> list[str]:
    return [
        f"oortriage patch plan {LOG}   # in vLLM's own kernel; fetches its file",
        f"OORTRIAGE_TILE_POLICY={_RULE} vllm serve ...   # as a plugin: nothing on disk changes",
    ]


def _patch(diagnosis: Diagnosis, work: Future[Experiment], style: Style) -> str:
    """Hold the rule against what the log says of the launch; the figures are the experiment's, where it ran."""
    from oortriage.fix.rules import Facts, find_rule
    from oortriage.report.story import rule_text

    facts = diagnosis.facts
    major, _, minor = str(facts["compute_capability"].value).partition(".")
    launch = Facts(
        capability=(int(major), int(minor)),
        head_size=int(facts["head_size"].value),
        q_bytes=4 if str(facts["dtype"].value).removeprefix("torch.") == "float32" else 2,
        kv_bytes=None,
        window=0,
        is_prefill=True,
        tile=_TILE,
        limit_bytes=int(diagnosis.numbers["limit_bytes"]),
    )
    result = _result(work)
    sizes: dict[int, int | None] = {}
    if not isinstance(result, OortriageError):
        sizes = {int(cell.settings["TILE_SIZE"]): cell.required_bytes for cell in result.cells}
    return rule_text(find_rule(_RULE), launch, sizes.get(_TILE), sizes.get(16), style.width)


def _report(
    diagnosis: Diagnosis, compiled: Future[Reproduction], grid: Future[Experiment], log: Path, output: Path | None
) -> tuple[list[str], str]:
    """Write the report with what was run, and the log beside it; say how, where no folder is given."""
    if output is None:
        commands = [
            f"oortriage report {LOG} -o report.md",
            "oortriage demo --output FOLDER   # with steps 2 and 3 in it",
        ]
        return commands, "Nothing is written unless it is asked for."
    from oortriage.report.compose import compose
    from oortriage.report.issue import issue_markdown
    from oortriage.report.material import Material
    from oortriage.report.redaction import Redactor

    proof, experiment = _result(compiled), _result(grid)
    commands = [*READ]
    commands += [] if isinstance(proof, OortriageError) else [REPRODUCE]
    commands += [] if isinstance(experiment, OortriageError) else [EXPERIMENT]
    redactor = Redactor()
    material = redactor.struct(
        Material(
            diagnosis=diagnosis,
            reproduction=None if isinstance(proof, OortriageError) else proof,
            experiment=None if isinstance(experiment, OortriageError) else experiment,
            commands=commands,
        )
    )
    document = compose(material, redactor.replaced)
    written = {"report.md": issue_markdown(document).text, LOG: log.read_bytes().decode()}
    for name, text in written.items():
        sink = Sink(output / name)
        sink.put(text)
        sink.close()
    return ["oortriage demo --output FOLDER"], "\n".join(f"written: {output / name}" for name in written)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(f"{folder}: cannot be made: {problem.strerror or problem}") from problem
