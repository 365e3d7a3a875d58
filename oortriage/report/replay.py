"""Reports of compiled kernels: reproduce, experiment, fit, and the list of recipes; text says no more than JSON."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.cells import cell_len

from oortriage.kernels._interface import Recipe
from oortriage.ledger.allocation import Ledger
from oortriage.replay.experiment import Experiment, GridCell
from oortriage.replay.fit import Fit, Row
from oortriage.replay.reproduce import Match, Reproduction
from oortriage.report._interface import Style
from oortriage.report.draw.heat_map import Cell, heat_map_text
from oortriage.report.draw.memory_map import memory_map_text
from oortriage.report.escape import code_block, markdown, visible
from oortriage.report.live import live_lines

_VERDICTS = {
    "reproduced": "Reproduced to the byte",
    "reproduced_with_other_settings": "Reproduced with other settings",
    "not_reproduced": "Not reproduced",
    "computed": "Computed",
    "failed": "Not compiled",
}
_PLAIN = Style(width=100)
_LIMITS = {"table": "the table of architectures"}
_SHOWN = 6


def reproduction_report(result: Reproduction, name: str, style: Style) -> str:
    """Render a reproduction as ``text``, ``json`` or ``markdown``."""
    if name == "json":
        return _json(result)
    if name == "markdown":
        body = reproduction_lines(result)
        figure = memory_map_text(result.ledger, result.limit_bytes, _PLAIN) if result.buffers else ""
        return _markdown(body, figure)
    lines = _visible(reproduction_lines(result))
    figure = memory_map_text(result.ledger, result.limit_bytes, style) if result.buffers else ""
    return _page(lines[:3], figure, lines[3:], style.width)


def reproduction_lines(result: Reproduction) -> list[str]:
    """Tell a reproduction: the verdict, what was compiled, the settings, and then all that is left to say."""
    where = (
        f"{result.function or result.kernel} on {result.gpu} ({result.target}), Triton {result.triton}, {result.source}"
    )
    return [
        f"{_VERDICTS[result.verdict]}: {_figure_words(result)}",
        where,
        f"settings: {settings_words(result.settings) or 'none'}",
        *_extra_lines(result),
    ]


def _figure_words(result: Reproduction) -> str:
    if result.required_bytes is None:
        return result.failure.message if result.failure else "no kernel was launched"
    figure = f"{result.required_bytes:,} bytes of {result.limit_bytes:,}"
    figure += f", {result.over_bytes:,} over" if result.over_bytes else ", it fits"
    if result.verdict == "not_reproduced":
        asked = {"log": "the log prints", "capsule": "the capsule says"}.get(result.printed_from, "asked for are")
        near = result.nearest[0].required_bytes if result.nearest else result.required_bytes
        nearest = f"; nearest of what was tried: {near:,}" if near != result.required_bytes else ""
        return f"{asked} {result.printed_bytes:,} bytes, these settings need {figure}{nearest}"
    if result.verdict == "reproduced_with_other_settings":
        return f"{figure}, with {settings_words(result.changed)}"
    return figure


def _extra_lines(result: Reproduction) -> list[str]:
    lines = []
    if result.registers:
        one = result.registers
        spills = (
            f"spills {one.spill_stores:,} bytes stored, {one.spill_loads:,} loaded"
            if one.spill_stores + one.spill_loads
            else "no spills"
        )
        lines.append(f"registers: {one.registers} a thread, {spills}, stack {one.stack:,} bytes ({one.assembler})")
    if result.occupancy:
        blocks, limiters = result.occupancy.blocks, " and ".join(result.occupancy.limiters).replace("_", " ")
        lines.append(f"occupancy: {blocks} block{'' if blocks == 1 else 's'} a multiprocessor, limited by {limiters}")
    if result.tensor_memory_columns:
        lines.append(f"tensor memory: {result.tensor_memory_columns} columns of 512")
    lines += [f"also launched: {one.kernel}, {one.required_bytes:,} bytes" for one in result.others]
    if len(result.exact_settings) > 1:
        shown = [_differing(result.exact_settings, one) for one in result.exact_settings[:_SHOWN]]
        lines.append(f"{len(result.exact_settings)} settings tried give exactly this figure: {'; '.join(shown)}")
    lines += [f"nearest: {one.required_bytes:,} bytes with {settings_words(one.settings)}" for one in result.nearest]
    if result.printed_from == "log" and result.limit_from != "log":
        lines.append(f"limit: {result.limit_bytes:,} bytes, from {_LIMITS.get(result.limit_from, result.limit_from)}")
    lines += [f"{name}: from {where}" for name, where in result.origin.items() if not where.startswith("--")]
    lines += [one if one.startswith("assumed") else f"assumed: {one}" for one in result.assumptions]
    lines += [f"note: {note}" for note in result.notes]
    lines += live_lines(result.live) if result.live else []
    if result.failure and result.required_bytes is not None:
        lines.append(f"failed: {result.failure.message}")
    return lines


def _differing(all_of_them: Sequence[Match], one: Match) -> str:
    """Name the settings in which the matches differ."""
    differ = [name for name in one.settings if len({repr(other.settings.get(name)) for other in all_of_them}) > 1]
    return settings_words({name: one.settings[name] for name in differ}) or "the same settings"


def experiment_report(result: Experiment, name: str, style: Style) -> str:
    """Render an experiment as ``text``, ``json``, ``markdown`` or ``csv``."""
    if name == "json":
        return _json(result)
    if name == "csv":
        return _csv(result)
    body = experiment_lines(result)
    if name == "markdown":
        return _markdown(body, heat_map_text(grid_cells(result), result.limit_bytes, _PLAIN))
    lines = _visible(body)
    figure = heat_map_text(grid_cells(result), result.limit_bytes, style)
    return _page(lines[:2], figure, lines[2:], style.width)


def experiment_lines(result: Experiment) -> list[str]:
    """Tell an experiment: its sentence, what was compiled, the baseline, and then all that is left to say."""
    best = result.recommendation
    lines = [
        result.sentence,
        f"{result.kernel} on {result.gpu} ({result.target}), Triton {result.triton}, {result.source}",
        f"baseline: {settings_words(result.baseline)}"
        + (f", {result.baseline_bytes:,} bytes" if result.baseline_bytes is not None else ""),
        "effects, in bytes: "
        + ", ".join(f"{name} {'?' if size is None else f'{size:,}'}" for name, size in result.effects.items()),
    ]
    moving = {name: size for name, size in result.interactions.items() if size}
    if moving:
        lines.append("interactions, in bytes: " + ", ".join(f"{name} {size:,}" for name, size in moving.items()))
    if best:
        lines.append(f"recommended: {best.change}, {best.required_bytes:,} bytes, {best.margin_bytes:,} to spare")
        lines += [f"otherwise: {one}" for one in best.alternatives]
    lines += [one if one.startswith("assumed") else f"assumed: {one}" for one in result.assumptions]
    lines += [f"note: {note}" for note in result.notes]
    return lines + (live_lines(result.live) if result.live else [])


def grid_cells(result: Experiment) -> list[Cell]:
    """Give an experiment's cells to the drawings."""
    return [Cell(cell.settings, cell.required_bytes, cell.fits, _cell_note(cell)) for cell in result.cells]


def _cell_note(cell: GridCell) -> str:
    if cell.note:
        return cell.note
    if cell.registers and cell.registers.spill_stores + cell.registers.spill_loads:
        return f"spills {cell.registers.spill_stores + cell.registers.spill_loads:,} B a thread"
    return ""


def _csv(result: Experiment) -> str:
    sink = io.StringIO()
    names = list(result.factors)
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow([*names, "required_bytes", "fits", "registers", "spill_bytes", "note"])
    for cell in result.cells:
        one = cell.registers
        writer.writerow(
            [
                *(cell.settings[name] for name in names),
                cell.required_bytes,
                cell.fits,
                one.registers if one else "",
                one.spill_stores + one.spill_loads if one else "",
                cell.note,
            ]
        )
    return sink.getvalue()


def fit_report(result: Fit, name: str, style: Style) -> str:
    """Render what fits as ``text``, ``json`` or ``markdown``."""
    if name == "json":
        return _json(result)
    head = [f"{result.model}: {result.kernel}, Triton {result.triton}"]
    table = [_HEADS, *(_row(row) for row in result.rows)]
    ledgers = {_titles(rows): drawn for drawn, rows in _alike(result.rows).items()}
    tail = [*result.since, *result.assumptions, *(f"note: {note}" for note in result.notes)]
    notes = {f"{row.gpu}, {row.dtype}: {row.note}" for row in result.rows if row.note}
    tail += sorted(notes)
    if name == "markdown":
        lines = ["| " + " | ".join(markdown(one) for one in line) + " |" for line in table]
        lines.insert(1, "|" + " --- |" * len(_HEADS))
        body = [*(markdown(line) for line in head), "", *lines, "", *(f"- {markdown(line)}" for line in tail)]
        for title, (ledger, limit) in ledgers.items():
            body += ["", f"{markdown(title)}:", "", code_block(memory_map_text(ledger, limit, _PLAIN).rstrip())]
        return "\n".join(body) + "\n"
    parts = [_page(_visible(head), _table(table, style.width), _visible(tail), style.width)]
    for title, (ledger, limit) in ledgers.items():
        words = "\n".join(_wrapped([visible(f"{title}:")], style.width))
        parts.append(f"{words}\n{memory_map_text(ledger, limit, style).strip(chr(10))}\n")
    return "\n".join(parts)


_HEADS = ("GPU", "release", "layers", "type", "phase", "bytes", "limit", "fits")
#: Columns that are told once where they are the same in every row.
_COMMON = ("release", "type", "phase")


def _table(table: Sequence[tuple[str, ...]], width: int) -> str:
    """Set a table for a terminal: what all rows share is told once, and the layers go below where it is too wide."""
    shared = {
        head: table[1][column]
        for column, head in enumerate(_HEADS)
        if head in _COMMON and len({line[column] for line in table[1:]}) == 1
    }
    lines = [[visible(text) for head, text in zip(_HEADS, line, strict=True) if head not in shared] for line in table]
    below = [head for head in _HEADS if head not in shared].index("layers")
    drawn = _columns(lines)
    if max(map(cell_len, drawn)) > width:
        layers = [line.pop(below) for line in lines]
        drawn = [text for pair in zip(_columns(lines), layers, strict=True) for text in (pair[0], f"  {pair[1]}")]
    told = [f"{head} {text}" for head, text in shared.items() if text != "-"]
    return "\n".join([*_wrapped([visible(", ".join(told))] if told else [], width), *drawn])


def _columns(lines: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return [
        "  ".join(text + " " * (width - cell_len(text)) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def _titles(rows: Sequence[Row]) -> str:
    return "; ".join(
        dict.fromkeys(
            ", ".join(one for one in (row.gpu, row.version, row.layer_kind, row.dtype, row.phase) if one)
            for row in rows
        )
    )


def _visible(lines: Sequence[str]) -> list[str]:
    return [visible(line) for line in lines]


def _alike(rows: Sequence[Row]) -> dict[tuple[Ledger, int], list[Row]]:
    """Put rows of the same ledger and limit together: many cards share an architecture."""
    groups: dict[tuple[Ledger, int], list[Row]] = {}
    for row in rows:
        if row.ledger is not None:
            groups.setdefault((row.ledger, row.limit_bytes), []).append(row)
    return groups


def _row(row: Row) -> tuple[str, ...]:
    figure = f"{row.required_bytes:,}" if row.required_bytes is not None else "-"
    fits = "?" if row.fits is None else "yes" if row.fits else "no"
    layers = f"{row.layers} x {row.layer_kind}, head {row.head_size}"
    return (row.gpu, row.version or "-", layers, row.dtype, row.phase or "-", figure, f"{row.limit_bytes:,}", fits)


def recipe_list(recipes: Sequence[Recipe], *, as_json: bool) -> str:
    """List recipes: name, title, library and releases."""
    if as_json:
        return json.dumps([_recipe(recipe) for recipe in recipes], indent=2)
    width = max((len(recipe.name) for recipe in recipes), default=0)
    return "\n".join(f"{recipe.name.ljust(width)}  {recipe.title}" for recipe in recipes)


def recipe_page(recipe: Recipe, *, as_json: bool) -> str:
    """Describe one recipe: its parameters with their defaults, and the grid of its experiment."""
    if as_json:
        return json.dumps(_recipe(recipe), indent=2)
    lines = [f"{recipe.name}: {recipe.title}"]
    if recipe.library:
        until = f" to {recipe.until}" if recipe.until else " on"
        lines.append(f"source: {recipe.library}" + (f", from {recipe.since}{until}" if recipe.since else ""))
    lines += [f"  --set {one.name}={one.default}  {one.help}" for one in recipe.parameters]
    lines += [f"  --vary {name}={','.join(map(str, levels))}" for name, levels in recipe.vary.items()]
    return "\n".join(lines)


def _recipe(recipe: Recipe) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "title": recipe.title,
        "library": recipe.library,
        "since": recipe.since,
        "until": recipe.until,
        "kernels": list(recipe.kernels),
        "parameters": [msgspec.to_builtins(one) for one in recipe.parameters],
        "vary": {name: list(levels) for name, levels in recipe.vary.items()},
    }


def replay_schema(verb: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of what ``reproduce``, ``experiment`` or ``fit`` writes."""
    kinds: dict[str, type[Any]] = {"reproduce": Reproduction, "experiment": Experiment, "fit": Fit}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"oortriage {verb}, version 1",
        **msgspec.json.schema(kinds[verb]),
    }


def _json(result: Any) -> str:
    return json.dumps(msgspec.to_builtins(result), indent=2) + "\n"


def _page(head: list[str], figure: str, tail: list[str], width: int) -> str:
    """Put a report together: wrapped text, and the figure between as it is."""
    parts = ["\n".join(_wrapped(head, width)), figure.strip("\n"), "\n".join(_wrapped(tail, width))]
    return "\n\n".join(part for part in parts if part) + "\n"


def settings_words(settings: dict[str, Any]) -> str:
    """Write settings as ``name=value``."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _markdown(lines: list[str], figure: str) -> str:
    first, *rest = [markdown(line) for line in lines]
    picture = [code_block(figure.rstrip()), ""] if figure else []
    return "\n".join([f"**{first}**", "", *picture, *(f"- {line}" for line in rest)]) + "\n"


def _wrapped(lines: Sequence[str], width: int) -> list[str]:
    wrapped: list[str] = []
    for line in lines:
        wrapped += textwrap.wrap(
            line, max(40, width), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        ) or [""]
    return wrapped
