"""Before a card is rented: which attention layers of a model fit on which card, in which type, since when."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

import msgspec

from oortriage.errors import UsageError
from oortriage.gpu.resolve import resolve
from oortriage.gpu.specs import Architecture
from oortriage.kernels._interface import Recipe, element_type
from oortriage.kernels.model_config import LayerKind, ModelConfig
from oortriage.kernels.registry import find_recipe
from oortriage.kernels.source import SourceError, find_source
from oortriage.kernels.source.wheel import released_versions
from oortriage.kernels.user_kernel import is_user_kernel
from oortriage.ledger.allocation import Ledger
from oortriage.replay.cells import Compilation, compile_cells
from oortriage.replay.child import CELL_SECONDS
from oortriage.replay.job import Cell, Failure, Outcome
from oortriage.replay.options import Options
from oortriage.replay.refusal import refuse_mistakes
from oortriage.replay.selection import Selection, select

SCHEMA_VERSION = 1
#: What computes attention where nobody names a kernel: of plain heads, and of a latent vector (MLA).
_PLAIN, _LATENT = "vllm.unified_attention", "vllm.decode_attention"
#: NVIDIA cards compute with bfloat16 from this capability on; serving engines refuse it below.
_BFLOAT16_SINCE = 8.0

Progress = Callable[[int, int], None]


class Row(msgspec.Struct, frozen=True):
    """One kind of layer on one card in one type. Bytes; ``phase`` is the one that needs most."""

    gpu: str
    target: str
    version: str
    layer_kind: str
    layers: int
    head_size: int
    window: int
    dtype: str
    phase: str
    required_bytes: int | None
    limit_bytes: int
    fits: bool | None
    ledger: Ledger | None = None
    note: str = ""


class Fit(msgspec.Struct, frozen=True):
    """Rows for every card, layer kind, type and release asked for."""

    schema_version: int
    model: str
    kernel: str
    triton: str
    rows: list[Row]
    since: list[str]
    assumptions: list[str] = []
    notes: list[str] = []

    @property
    def exit_code(self) -> int:
        """0 all fit, 1 something does not, 3 nothing could be compiled."""
        known = [row for row in self.rows if row.fits is not None]
        return 3 if not known else 0 if all(row.fits for row in known) else 1


def fit(
    options: Options,
    config: ModelConfig,
    gpus: list[str],
    dtypes: list[str],
    *,
    all_versions: bool = False,
    progress: Progress | None = None,
    cell_seconds: float = CELL_SECONDS,
    use_cache: bool = True,
) -> Fit:
    """Compile every attention layer of a model for every card.

    Args:
        options: kernel (vLLM's own for such a model when left out), library release, compiler; the GPU in it is
            not used.
        config: the model's layers.
        gpus: cards or architectures.
        dtypes: element types.
        all_versions: every minor release of the library from the recipe's first on.
        progress: called with (cards and releases done, all).
        cell_seconds: time limit for one cell.
        use_cache: whether results of earlier runs count.

    Raises:
        UsageError: an unknown card, type or kernel, or one that is no attention.
        OortriageError: no source, no compiler.
    """
    cards: list[tuple[str, Architecture]] = [(name, resolve(name)) for name in dict.fromkeys(gpus)]
    types = [_type(name) for name in dict.fromkeys(dtypes)]
    recipe = _recipe(options, config)
    options = msgspec.structs.replace(options, kernel=recipe.name)
    if all_versions:
        releases = _releases(options, recipe)
        options = msgspec.structs.replace(options, versions={**options.versions, recipe.library: releases[-1]})
    else:
        releases = [options.versions.get(recipe.library, "")]
    chosen = [select(msgspec.structs.replace(options, gpu=name)) for name, _ in cards]
    rows: list[Row] = []
    notes: list[str] = [*config.notes, *chosen[0].notes]
    seen: list[Outcome] = []
    steps, step = len(releases) * len(cards), 0
    for release in releases:
        source, problem = None, ""
        try:
            source = find_source(recipe.library, release, options.source) if recipe.library else None
        except SourceError as missing:
            problem = str(missing)
        for (name, architecture), selection in zip(cards, chosen, strict=True):
            what = Compilation(selection.kernel, selection.card, selection.env, source)
            cells, labels = _cells(selection, config, types)
            if problem:  # one release that cannot be had is no reason to keep silent on the others
                outcomes = [Outcome(index, failure=Failure("environment", problem)) for index in range(len(cells))]
            else:
                outcomes, more = compile_cells(what, cells, cell_seconds=cell_seconds, use_cache=use_cache)
                notes += [note for note in more if note not in notes]
            seen += outcomes
            version = release or (selection.source.version if selection.source else "")
            rows += _rows(name, architecture, version, selection, labels, outcomes)
            step += 1
            if progress:
                progress(step, steps)
    refuse_mistakes(seen)
    return Fit(
        schema_version=SCHEMA_VERSION,
        model=config.architecture or "model",
        kernel=recipe.name,
        triton=chosen[0].env.version,
        rows=rows,
        since=_since(rows) if all_versions else [],
        assumptions=_assumptions(chosen[0], config),
        notes=notes,
    )


def _type(name: str) -> str:
    known = element_type(name)
    if not known or known == "auto":
        raise UsageError(f"--dtype {name}: no element type; write float16, bfloat16 or float32")
    return known


def _recipe(options: Options, config: ModelConfig) -> Recipe:
    if is_user_kernel(options.kernel):
        raise UsageError(f"{options.kernel}: fit needs a kernel with a recipe; `oortriage reproduce` compiles your own")
    recipe = find_recipe(options.kernel or (_LATENT if config.latent else _PLAIN))
    if not any(parameter.name == "head_size" for parameter in recipe.parameters):
        raise UsageError(f"{recipe.name} is no attention: a model's layers do not tell its shape")
    return recipe


def _releases(options: Options, recipe: Recipe) -> list[str]:
    if not recipe.library:
        raise UsageError(f"--all-versions: {recipe.name} belongs to no library")
    if options.source:
        raise UsageError("--all-versions and --source do not go together: a folder is one release")
    found = released_versions(recipe.library, recipe.since)
    if not found:
        raise UsageError(f"--all-versions: the package index has no release of {recipe.library} from {recipe.since} on")
    return found


def _layer_shape(layer: LayerKind, config: ModelConfig) -> dict[str, Any]:
    return {
        "head_size": layer.head_size,
        "v_head_size": layer.v_head_size,
        "mla": config.latent,
        "window": layer.window,
        "q_per_kv": layer.q_per_kv,
        "kv_heads": layer.kv_heads,
        "softcap": config.softcap,
    }


def _assumptions(chosen: Selection, config: ModelConfig) -> list[str]:
    """Leave out what the model's config, the types and the phases settle."""
    settled = (*_layer_shape(config.layers[0], config), "dtype", "phase")
    return [one for one in chosen.assumptions if not any(one.startswith(f"assumed: {name} = ") for name in settled)]


_Label = tuple[LayerKind, str, str]


def _cells(chosen: Selection, config: ModelConfig, dtypes: list[str]) -> tuple[list[Cell], list[_Label]]:
    cells: list[Cell] = []
    labels: list[_Label] = []
    parameters = {one.name: one for one in chosen.recipe.parameters}
    phases = parameters["phase"].choices if "phase" in parameters else ("",)
    for layer in config.layers:
        for dtype in dtypes:
            for phase in phases:
                wanted = {**_layer_shape(layer, config), "dtype": dtype, "phase": phase}
                shape = {name: value for name, value in wanted.items() if name in parameters}
                cells.append(Cell({**chosen.shape, **shape}, chosen.overrides))
                labels.append((layer, dtype, phase))
    return cells, labels


def _rows(
    name: str,
    architecture: Architecture,
    version: str,
    chosen: Selection,
    labels: list[_Label],
    outcomes: list[Outcome],
) -> list[Row]:
    best: dict[tuple[LayerKind, str], Row] = {}
    limit = chosen.card.limit_bytes
    for (layer, dtype, phase), outcome in zip(labels, outcomes, strict=True):
        kernel = outcome.largest
        required = kernel.required_bytes if kernel else None
        fits = required <= limit if required is not None else None
        note = outcome.failure.message if outcome.failure else _refused(architecture, dtype)
        row = Row(
            gpu=name,
            target=chosen.card.target.name,
            version=version,
            layer_kind=layer.name,
            layers=layer.count,
            head_size=layer.head_size,
            window=layer.window,
            dtype=dtype,
            phase=phase,
            required_bytes=required,
            limit_bytes=limit,
            fits=fits,
            ledger=kernel.ledger if kernel and not fits else None,
            note=note,
        )
        held = best.get((layer, dtype))
        if held is None or (required or 0) > (held.required_bytes or 0):
            best[layer, dtype] = row
    return list(best.values())


def _refused(architecture: Architecture, dtype: str) -> str:
    if architecture.vendor == "nvidia" and dtype == "bfloat16" and float(architecture.name) < _BFLOAT16_SINCE:
        return "this card has no bfloat16; serving engines refuse it"
    return ""


def _since(rows: list[Row]) -> list[str]:
    """Say for each card and layer from which release on it does not fit, and where that ends."""
    series: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row.fits is None:
            continue  # a release that could not be looked at neither begins nor ends anything
        series.setdefault((row.gpu, row.layer_kind, row.dtype), []).append(row)
    said = []
    for (gpu, kind, dtype), line in series.items():
        spans = [[row.version for row in run] for fails, run in groupby(line, lambda row: row.fits is False) if fails]
        for span in spans:
            last = span[-1] == line[-1].version
            when = (
                f"from {span[0]} on" if last else f"in {span[0]}" if len(span) == 1 else f"from {span[0]} to {span[-1]}"
            )
            said.append(f"{gpu}, {kind}, {dtype}: does not fit {when}")
    return said
