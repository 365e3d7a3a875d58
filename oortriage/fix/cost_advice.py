"""What the figures of a cost measurement say: which rule, why, and what only a real sm_75 card can settle."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from oortriage.fix.cost_table import BASE, Code, CostRow, Mean, drift
from oortriage.fix.rules import find_rule
from oortriage.replay.job import Mode

#: The card that the rules are for.
_CAPABILITY = "7.5"


class Advice(msgspec.Struct, frozen=True):
    """A rule's name (empty: none can be recommended), the sentence, and what is open."""

    recommended: str
    recommendation: str
    open: list[str]


def settles(mode: Mode, environment: dict[str, str]) -> bool:
    """Tell whether it was a real sm_75 card, as it is."""
    return mode == "native" and environment.get("capability") == _CAPABILITY


def advise(
    rules: Sequence[str],
    rows: Sequence[CostRow],
    means: Sequence[Mean],
    code: Sequence[Code],
    device: str,
    *,
    mode: Mode,
    settled: bool,
) -> Advice:
    """Choose a rule by the figures.

    The fastest by the geometric mean of all batches wins, if it gains more than times wander between two turns.
    Off a real sm_75 card a rule whose code spills there more than the code that was timed is not chosen: its time
    shows no such spills.

    Args:
        rules: the candidates, TILE16 among them.
        rows: every batch under every rule, with ratios.
        means: their means.
        code: machine code of each launch.
        device: the card, for people.
        mode: how it was used.
        settled: whether it was a real sm_75 card.
    """
    unrun = {rule: [row for row in rows if row.rule == rule and row.status != "ran"] for rule in rules}
    whole = {one.rule: one for one in means if one.group == "all" and not unrun.get(one.rule)}
    if BASE not in whole:
        return Advice(
            "", f"no recommendation: {_title(BASE)} has not run every batch", _open(device, mode, settled, {})
        )
    hidden = {} if settled else {rule: worst for rule in rules if rule != BASE and (worst := _hidden(rule, code))}
    trusted = [rule for rule in whole if rule not in hidden]
    best = max(trusted, key=lambda rule: whole[rule].to_tile16)
    gained, wander = whole[best].to_tile16, drift(rows)
    if gained <= wander:
        best = BASE
    parts = [_first(best, whole[best], trusted, wander, device)]
    for rule in rules:
        if rule in (best, BASE):
            continue
        if rule not in whole:
            parts.append(
                f"{_title(rule)} is out: {unrun[rule][0].status.replace('_', ' ')} in {len(unrun[rule])} rows."
            )
        else:
            parts.append(_other(rule, whole[rule], means, hidden.get(rule)))
    seen = {rule: (whole[rule].to_tile16, worst) for rule, worst in hidden.items() if rule in whole}
    return Advice(best, " ".join(parts), _open(device, mode, settled, seen))


def _first(best: str, mean: Mean, trusted: Sequence[str], wander: float, device: str) -> str:
    if best != BASE:
        return (
            f"{_title(best)}: {mean.to_tile16:.2f} times as fast as {_title(BASE)}, the geometric mean of {mean.rows} "
            f"batches on {device}."
        )
    if len(trusted) == 1:
        return f"{_title(BASE)}: no other rule's time on {device} can be trusted for sm_75."
    return (
        f"{_title(BASE)}: no rule whose time can be trusted gains more than two turns of the same launch differ "
        f"({wander:.3f} times)."
    )


def _other(rule: str, mean: Mean, means: Sequence[Mean], hidden: Code | None) -> str:
    groups = {one.group: one for one in means if one.rule == rule}
    layers = ", ".join(f"{group} {groups[group].to_tile16:.2f}" for group in ("full", "sliding") if group in groups)
    said = f"{_title(rule)} is {mean.to_tile16:.2f} times as fast ({layers})"
    if hidden is None:
        return f"{said}."
    return (
        f"{said}, which is no proof: its code for sm_75 keeps up to {hidden.local_bytes:,} bytes a thread in local "
        f"memory ({hidden.layer} {hidden.phase}), the code that was timed {hidden.driver_local_bytes or 0:,}."
    )


def _hidden(rule: str, code: Sequence[Code]) -> Code | None:
    """Return the launch of a rule whose timed code lacks most of what sm_75's spills."""
    worst = max((one for one in code if rule in one.rules), key=lambda one: one.hidden_bytes, default=None)
    return worst if worst and worst.hidden_bytes else None


def _open(device: str, mode: Mode, settled: bool, hidden: dict[str, tuple[float, Code]]) -> list[str]:
    if settled:
        return []
    how = f"{device} played sm_75" if mode == "emulated" else f"{device} ran its own code, not sm_75's"
    found = [f"the times of every launch: {how}, so only ratios count, and they are that card's"]
    for rule, (mean, worst) in hidden.items():
        found.append(
            f"whether {_title(rule)} stays at {mean:.2f} times with its spills (ptxas for sm_75, {worst.launch}, "
            f"{worst.layer} {worst.phase}: {worst.registers} registers, {worst.spill_stores:,} / "
            f"{worst.spill_loads:,} bytes stored / loaded a thread)"
        )
    return [*found, "that a real sm_75 card computes the same outputs from ptxas's code as the card here did"]


def _title(rule: str) -> str:
    return find_rule(rule).title
