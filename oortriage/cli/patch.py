"""``oortriage patch``: the tile policy of a vLLM planned, patched, verified, taken back, exported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oortriage.cli import patch_measure, selectors
from oortriage.cli.output import Sink
from oortriage.cli.patch_options import Folder, Format, Output, PatchFormat, Python
from oortriage.cli.progress import progress
from oortriage.errors import UsageError
from oortriage.replay.options import Options
from oortriage.triage.diagnosis import Diagnosis

if TYPE_CHECKING:
    from oortriage.fix.rules import Rule
    from oortriage.fix.tree import Tree
    from oortriage.fix.verify import Verification

app = typer.Typer(
    help="Give vLLM's Triton attention a tile that fits the card, verify it in layers, and take it back exactly.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


_Rule = Annotated[str, typer.Option("--rule", help="tile16, tile16-full, warps2; fittile by plugin only.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Write nothing; show what would be done.")]


@app.command("status")
def status(
    vllm_source: Folder = None,
    python: Python = None,
    format: Format = PatchFormat.text,
    output: Output = None,
) -> None:
    """Say how a vLLM stands: patched or not, with what, or why it cannot be.

    Ends with 0, or with 1 when the file changed since it was patched or cannot be patched.
    """
    from oortriage.fix.source_patch import status as ask
    from oortriage.fix.tree import find_tree
    from oortriage.report.patch import as_json, status_text

    found = ask(find_tree(vllm_source, python))
    Sink(output).put(as_json(found) if format is PatchFormat.json else status_text(found))
    raise typer.Exit(1 if found.state in ("changed_since", "refused") else 0)


@app.command("plan")
@selectors.selecting
def plan(
    log: Diagnosis | None,
    options: Options,
    rule: _Rule = "tile16",
    format: Format = PatchFormat.text,
    output: Output = None,
    no_table: Annotated[bool, typer.Option("--no-table", help="Leave the impact table out.")] = False,
    no_cache: selectors.NoCache = False,
) -> None:
    """Say whether the rule is the cure for a crash, which condition fails if not, and what it changes.

    Ends with 0 when the rule matches, 1 when it does not.

    Examples: `oortriage patch plan crash.log`, `oortriage patch plan --gpu T4 --config config.json
    --dtype float32 --vllm 0.17.1`.
    """
    from oortriage.fix.plan import plan as make
    from oortriage.fix.rules import find_rule
    from oortriage.report.patch import as_json, plan_text

    chosen = find_rule(rule)
    with progress("cards") as report:
        made = make(options, log, chosen, table=not no_table, progress=report, use_cache=not no_cache)
    Sink(output).put(as_json(made) if format is PatchFormat.json else plan_text(made))
    raise typer.Exit(made.exit_code)


@app.command("apply")
def apply(
    vllm_source: Folder = None,
    python: Python = None,
    rule: _Rule = "tile16",
    dry_run: _DryRun = False,
    format: Format = PatchFormat.text,
    output: Output = None,
) -> None:
    """Patch the policy's file: atomically, with the original kept beside it. A second time changes nothing.

    Ends with 0, or with 2 when the file is refused; then it is as it was, and the message says why. Nothing on
    disk need change: OORTRIAGE_TILE_POLICY=tile16 turns the same policy on as a plugin, unless VLLM_PLUGINS
    leaves it out.
    """
    from oortriage.fix.rules import find_rule
    from oortriage.fix.source_patch import apply as put
    from oortriage.fix.tree import find_tree
    from oortriage.report.patch import as_json, change_text

    done = put(find_tree(vllm_source, python), find_rule(rule), dry_run=dry_run)
    Sink(output).put(as_json(done) if format is PatchFormat.json else change_text(done))


@app.command("verify")
def verify(
    vllm_source: Folder = None,
    python: Python = None,
    rule: _Rule = "tile16",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Verify what apply would write.")] = False,
    plugin: Annotated[
        bool, typer.Option("--plugin", help="Verify the plugin's hooks on the original file; implied by fittile.")
    ] = False,
    gpu: Annotated[str, typer.Option("--gpu", help="Cards of the impact table, separated by commas.")] = "",
    live: Annotated[
        str, typer.Option("--card", help="How a local card is used: auto, native, emulated, off.")
    ] = "auto",
    engine: Annotated[
        bool,
        typer.Option("--engine", help="Start a real vLLM engine on a tiny model: first the failure, then the fix."),
    ] = False,
    engine_gpu: Annotated[str, typer.Option("--engine-gpu", help="The failing card of the engine's runs.")] = "T4",
    engine_logs: Annotated[Path | None, typer.Option("--engine-logs", help="Keep the engine's logs here.")] = None,
    format: Format = PatchFormat.text,
    output: Output = None,
    no_cache: selectors.NoCache = False,
) -> None:
    """Hold the patched file against the original: policy, bytes, kernel, engine, cost.

    With --plugin the original is held against itself with the rule's hooks, which write nothing: policy and bytes.
    Each layer is passed, failed, or not run with what it needs. Ends with 0 when policy and bytes passed and
    nothing failed, else with 1. --engine downloads nothing: the model is written here, with random weights.
    """
    from oortriage.fix.impact import CARDS
    from oortriage.fix.rules import find_rule
    from oortriage.fix.tree import find_tree
    from oortriage.fix.verify import verify as prove
    from oortriage.fix.verify_plugin import verify_plugin
    from oortriage.report.patch import as_json, verification_text

    chosen = find_rule(rule)
    plugin = plugin or chosen.change is None
    if plugin and dry_run:
        raise UsageError("the plugin writes nothing: --dry-run is for the patch of the file; leave it out")
    tree = find_tree(vllm_source, python)
    cards = [one.strip() for one in gpu.split(",") if one.strip()] or CARDS
    with progress("cards") as report:
        if plugin:
            found = verify_plugin(tree, chosen, cards=cards, progress=report, use_cache=not no_cache)
        else:
            found = prove(
                tree, chosen, dry_run=dry_run, cards=cards, live=live, progress=report, use_cache=not no_cache
            )
    if engine:
        found = _with_engine(found, tree, chosen, engine_gpu, live, engine_logs)
    Sink(output).put(as_json(found) if format is PatchFormat.json else verification_text(found))
    raise typer.Exit(found.exit_code)


def _with_engine(found: Verification, tree: Tree, rule: Rule, gpu: str, live: str, logs: Path | None) -> Verification:
    from oortriage.api import default_analyzer
    from oortriage.fix.engine.check import EngineSpec
    from oortriage.fix.engine.layer import with_engine
    from oortriage.fix.impact import card_of

    spec = EngineSpec(card_of(gpu), "auto" if live == "off" else live, logs=logs)
    with progress("engines") as report:
        return with_engine(found, tree, rule, spec, default_analyzer().file, progress=report)


app.command("measure")(patch_measure.measure)


@app.command("revert")
def revert(
    vllm_source: Folder = None,
    python: Python = None,
    format: Format = PatchFormat.text,
    output: Output = None,
) -> None:
    """Put the original back, byte for byte; refused when the file changed since.

    Ends with 0, or with 2 when it is refused.
    """
    from oortriage.fix.source_patch import revert as undo
    from oortriage.fix.tree import find_tree
    from oortriage.report.patch import as_json, change_text

    done = undo(find_tree(vllm_source, python))
    Sink(output).put(as_json(done) if format is PatchFormat.json else change_text(done))


@app.command("export")
def export(
    vllm_source: Folder = None,
    python: Python = None,
    rule: _Rule = "tile16",
    folder: Annotated[Path | None, typer.Option("--to", help="Write diff, test and text into this folder.")] = None,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Do not verify; the text says so.")] = False,
    format: Format = PatchFormat.text,
    output: Output = None,
) -> None:
    """Write the change for upstream: a diff against that release, a test, and a pull request's text."""
    from oortriage.fix.export import export as write
    from oortriage.fix.rules import find_rule
    from oortriage.fix.tree import find_tree
    from oortriage.fix.verify import verify as prove
    from oortriage.report.patch import as_json, export_text

    tree, chosen = find_tree(vllm_source, python), find_rule(rule)
    verification = None if no_verify else prove(tree, chosen, dry_run=True)
    made = write(tree, chosen, verification)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (
            ("tile-policy.diff", made.diff), (Path(made.test_name).name, made.test), ("pull-request.md", made.text)
        ):  # fmt: skip
            Sink(folder / name).put(text)
        return
    Sink(output).put(as_json(made) if format is PatchFormat.json else export_text(made))
