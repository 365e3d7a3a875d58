"""The demo's steps as text: a heading with the command to type, and what it gives, in few lines."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import PurePath

from oortriage.fix.rules import Decision, Facts, Rule, broken, decide
from oortriage.ledger.allocation import Buffer
from oortriage.replay.experiment import Experiment
from oortriage.replay.reproduce import Reproduction
from oortriage.report._interface import Style
from oortriage.report.draw.heat_map import heat_map_text
from oortriage.report.escape import visible
from oortriage.report.replay import grid_cells

_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def step(number: int, title: str, commands: Sequence[str], body: str, style: Style) -> str:
    """Write a step: its heading, the commands that a user would type, and what came of it."""
    head = f"{number}. {title}"
    head = f"{_BOLD}{head}{_PLAIN}" if style.color else head
    return "\n".join([head, *(f"   $ {command}" for command in commands), "", body.rstrip(), ""])


def said(texts: Sequence[str], width: int) -> str:
    """Wrap sentences, one below the other."""
    lines = (textwrap.fill(visible(one), width, break_long_words=False, break_on_hyphens=False) for one in texts)
    return "\n".join(lines)


def ledger_text(result: Reproduction, printed: int, width: int) -> str:
    """List the buffers that add up to the figure, and say whether it is the one that the log prints (bytes)."""
    if result.required_bytes is None:
        return said([result.failure.message if result.failure else "no kernel was launched"], width)
    counted = [one for one in result.buffers if one.role == "operand" and not _stands_in(one, result.buffers)]
    lines = [_row(one) for one in counted]
    rest = result.required_bytes - sum(one.bytes for one in counted)
    lines += [f"{rest:>9,} B  all else"] if rest else []
    lines += [f"{result.required_bytes:>9,} B  needed, of {result.limit_bytes:,}"]
    others = len(result.buffers) - len(counted)
    tail = f"{others} smaller buffers stand in the same bytes at other times. " if others else ""
    same = "the figure that the log prints" if result.required_bytes == printed else f"not the log's {printed:,}"
    where = f"Triton {result.triton} for {result.target}, no GPU"
    return "\n".join([*lines, said([f"{tail}That is {same} ({where})."], width)])


def _stands_in(one: Buffer, others: Sequence[Buffer]) -> bool:
    """Tell whether a buffer reuses the bytes of a larger one."""
    return any(other.offset <= one.offset and one.end <= other.end and other.bytes > one.bytes for other in others)


def _row(one: Buffer) -> str:
    shape = "x".join(map(str, (*one.shape, one.dtype)))
    place = f"{PurePath(one.file).name}:{one.line}" if one.file else ""
    return f"{one.bytes:>9,} B  {visible(one.name):<3} {shape:<12} at {one.offset:>6,}  {visible(place)}"


def grid_text(result: Experiment, style: Style) -> str:
    """Draw the grid, and say what moves the bytes."""
    figure = heat_map_text(grid_cells(result), result.limit_bytes, style).strip("\n")
    return f"{figure}\n\n{said([result.sentence], style.width)}"


def rule_text(rule: Rule, facts: Facts, before: int | None, after: int | None, width: int) -> str:
    """Say which conditions of a rule hold for a launch and what it changes; figures in bytes, where known."""
    missing = broken(rule, facts)
    lines = [f"{rule.title}: {rule.summary}"]
    lines += [f"  {'does not hold' if one in missing else 'holds'}: {one.words}" for one in rule.conditions]
    change = decide(rule, facts)
    if change is None:
        return "\n".join([*lines, "nothing is changed"])
    what = _change(change, facts)
    if before is not None and after is not None:
        over = after - facts.limit_bytes
        what += f": {before:,} -> {after:,} bytes of {facts.limit_bytes:,}, "
        what += f"{over:,} over" if over > 0 else f"{-over:,} to spare"
    return "\n".join([*lines, what, said(["Every other card, type and head size keeps its tile."], width)])


def _change(change: Decision, facts: Facts) -> str:
    return f"K/V tile {facts.tile} -> {change.tile}" if change.tile is not None else f"num_warps {change.num_warps}"
