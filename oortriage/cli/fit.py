"""``oortriage fit``: does this model's attention fit on that card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oortriage.cli import selectors
from oortriage.cli.output import Color, ReplayFormat, Sink, style_for
from oortriage.cli.progress import progress


def fit(
    model: Annotated[Path, typer.Option("--model", help="The model's config.json, or its folder.")],
    gpu: Annotated[str, typer.Option("--gpu", help="Cards, separated by commas: T4,A10,RTX-4090.")],
    dtype: Annotated[str, typer.Option("--dtype", help="Element types, separated by commas.")] = "",
    kernel: selectors.Kernel = "",
    vllm: selectors.Vllm = "",
    sglang: selectors.Sglang = "",
    release: selectors.Release = None,
    source: selectors.Source = None,
    triton: selectors.Triton = "",
    all_versions: Annotated[
        bool, typer.Option("--all-versions", help="Every minor release of the library, and since when it does not fit.")
    ] = False,
    format: Annotated[ReplayFormat, typer.Option("--format", "-f", help="Output format.")] = ReplayFormat.text,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    color: Annotated[Color, typer.Option("--color", help="Colours in text output.")] = Color.auto,
    timeout: selectors.Seconds = 120.0,
    no_cache: selectors.NoCache = False,
) -> None:
    """Say which attention layers of a model fit on which card, in which type; with the ledger of those that do not.

    Ends with 0 when all fit, 1 when some do not, 3 when nothing could be compiled, 2 on a usage error.

    Example: `oortriage fit --model config.json --gpu T4,A10,RTX-4090,H100 --dtype float32,bfloat16 --vllm 0.17.1`.
    """
    from oortriage.errors import UsageError
    from oortriage.kernels.model_config import read_model_config
    from oortriage.replay import fit as replay
    from oortriage.replay.options import Options
    from oortriage.report.replay import fit_report

    config = read_model_config(model)
    gpus = _list(gpu)
    dtypes = _list(dtype) or ([config.dtype] if config.dtype else [])
    if not gpus:
        raise UsageError("which card? --gpu T4,A10")
    if not dtypes:
        raise UsageError(f"{model} names no type: say --dtype float16,float32")
    options = Options(
        kernel=kernel,
        versions=selectors.releases(vllm, sglang, release),
        source=source,
        triton=triton,
    )
    with progress("cards") as report:
        result = replay.fit(
            options,
            config,
            gpus,
            dtypes,
            all_versions=all_versions,
            progress=report,
            cell_seconds=timeout,
            use_cache=not no_cache,
        )
    Sink(output).put(fit_report(result, format.value, style_for(color, output)))
    raise typer.Exit(result.exit_code)


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
