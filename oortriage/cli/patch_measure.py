"""``oortriage patch measure``: what each rule costs on the card that is here, in one command."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from oortriage.cli import selectors
from oortriage.cli.output import Sink, say
from oortriage.cli.patch_options import Folder, Format, Output, PatchFormat, Python
from oortriage.cli.progress import progress
from oortriage.errors import UsageError
from oortriage.kernels.source import SourceSpec


def measure(
    vllm: Annotated[str, typer.Option("--vllm", help="The release, read from the package index.")] = "",
    vllm_source: Folder = None,
    python: Python = None,
    card: Annotated[str, typer.Option("--card", help="How the card is used: auto, native, emulated.")] = "auto",
    device: Annotated[int, typer.Option("--device", min=0, help="Which device.")] = 0,
    format: Format = PatchFormat.text,
    output: Output = None,
    no_cache: selectors.NoCache = False,
) -> None:
    """Time TILE16, TILE16-FULL and WARPS2 on this card, hold their outputs against float64, and say which to take.

    Prefill, decode and mixed batches, full and sliding layers, three head counts; some minutes. A newer card
    plays a T4, and then only ratios count; a T4 settles it. A patched file is measured as it was before.
    Ends with 0 when all was measured, 1 when a candidate failed or was wrong, 2 when there is no card.

    Example: `oortriage patch measure --vllm 0.17.1 --output t4.json --format json`.
    """
    import msgspec

    from oortriage import __version__
    from oortriage.fix.cost import measure as ask
    from oortriage.replay.compiler_env import compiler_env
    from oortriage.report.cost import closing_text, cost_text
    from oortriage.report.patch import as_json

    with progress("cells") as report:
        found = ask(
            _source(vllm, vllm_source, python),
            compiler_env(""),
            card,
            device=device,
            progress=report,
            use_cache=not no_cache,
        )
    found = msgspec.structs.replace(found, oortriage=__version__)
    with contextlib.closing(Sink(output)) as sink:
        sink.put(as_json(found) if format is PatchFormat.json else cost_text(found))
    if output and format is PatchFormat.json:
        say(closing_text(found, output.name), end="")
    raise typer.Exit(found.exit_code)


def _source(vllm: str, folder: Path | None, python: Path | None) -> SourceSpec:
    """Find the vLLM to measure, as it was released."""
    from oortriage.fix.overlay import overlay
    from oortriage.fix.source_patch import original_bytes
    from oortriage.fix.tree import find_tree
    from oortriage.kernels.source import find_source

    if vllm and (folder or python):
        raise UsageError("--vllm names a release of the package index; leave out --vllm-source and --python")
    if vllm:
        return find_source("vllm", vllm)
    tree = find_tree(folder, python)
    return overlay(tree, original_bytes(tree))
