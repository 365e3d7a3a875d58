"""The engine's memory decision behind a verdict: rebuilt from the log, and the prescriptions solved from it."""

from __future__ import annotations

import re

from oortriage.budget.from_log import LogFigures, read_figures
from oortriage.budget.log_budget import LogBudget
from oortriage.budget.rebuild import rebuild
from oortriage.budget.relieve import relieve
from oortriage.budget.solution import Solution
from oortriage.budget.solve import Want, solve
from oortriage.triage.case import Case, Finding
from oortriage.triage.diagnosis import BudgetView, Prescription, WillNotHelp

_RESOURCES = frozenset({"kv_cache", "device_memory"})
#: Moments at which the KV pool is there already and a smaller share makes room beside it.
_BESIDE_THE_POOL = frozenset({"graph_capture", "warmup", "prefill", "decode"})
#: Words of a prescription that names no number.
_VAGUE = (" higher", "(lower)", "a smaller ")
_SHARE = "--gpu-memory-utilization"
#: A budget of fewer figures than this tells nothing that the verdict does not.
_LEAST_FIGURES = 3


def budget_of(case: Case) -> BudgetView | None:
    """Rebuild the budget of the run that failed; None for other programs and where the log prints none of it."""
    if case.program != "vllm" or case.event.rule.resource not in _RESOURCES:
        return None
    read = _figures(case)
    budget = rebuild(read)
    if len(budget.figures) < _LEAST_FIGURES or not (budget.parts or budget.checks or _says_pool(budget)):
        return None
    return view_of(budget, _solutions(case, budget))


def view_of(budget: LogBudget, solutions: tuple[Solution, ...]) -> BudgetView:
    """Put a budget in the words of the public contract."""
    return BudgetView(
        version=budget.version,
        engine=budget.engine,
        figures=budget.figures,
        parts=list(budget.parts),
        checks=list(budget.checks),
        use=budget.use,
        solutions=list(solutions),
        notes=list(budget.notes),
    )


def prescribe(finding: Finding, view: BudgetView) -> None:
    """Put solved flags in the place of those without a number, and say where no value of a flag works."""
    for solution in view.solutions:
        if solution.kind == "no_window":
            finding.prescriptions[:] = [one for one in finding.prescriptions if not _vague(one, _SHARE)]
            if not any(one.change.startswith(_SHARE) for one in finding.prescriptions):
                finding.will_not_help.append(WillNotHelp(f"another {_SHARE}", solution.effect))
            continue
        if not solution.change or (solution.kind == "length" and not _shortens(view, solution)):
            continue
        key = solution.change.split()[0]
        same = [at for at, one in enumerate(finding.prescriptions) if one.change.split()[0] == key]
        made = _prescription(solution)
        if not same:
            finding.prescriptions.append(made)
        elif _vague(finding.prescriptions[same[0]], key) or _falls_short(finding.prescriptions[same[0]], solution):
            finding.prescriptions[same[0]] = made


def _figures(case: Case) -> LogFigures:
    events = case.events
    if case.event.rule.cause == "startup_budget":
        # Another engine on the same card may have printed its own figures in this log.
        events = [one for one in events if one.stream == case.event.stream or one.order < case.root.first_order]
        events = [one for one in events if one.order <= case.event.order]
    return read_figures(events, at_order=case.event.order)


def _shortens(view: BudgetView, solution: Solution) -> bool:
    now = view.figures.get("max_model_len")
    return now is None or solution.value is None or solution.value < now.value


def _says_pool(budget: LogBudget) -> bool:
    return any(name in budget.figures for name in ("kv_available_bytes", "kv_needed_bytes", "kv_tokens"))


def _solutions(case: Case, budget: LogBudget) -> tuple[Solution, ...]:
    if case.event.rule.resource == "kv_cache":
        return solve(budget, Want(capability=case.facts.number("compute_capability") or 0.0))
    if case.phase not in _BESIDE_THE_POOL:
        return ()
    requested, free, total = (case.numbers.get(name) for name in ("requested_bytes", "free_bytes", "capacity_bytes"))
    if not requested or free is None or not total:
        return ()
    found = relieve(budget, requested, free, total)
    return (found,) if found else ()


def _vague(one: Prescription, key: str) -> bool:
    return one.change.startswith(key) and any(word in one.change for word in _VAGUE)


def _falls_short(one: Prescription, solution: Solution) -> bool:
    """Tell whether a prescribed share gives the pool something, but less than one full request needs."""
    said = one.change.removeprefix(f"{_SHARE} ")
    if solution.kind != "utilization" or solution.value is None or not re.fullmatch(r"\d(?:\.\d+)?", said):
        return False
    return float(said) < solution.value


def _prescription(solution: Solution) -> Prescription:
    said = solution.effect + (" (estimated)" if solution.provenance == "estimated" else "")
    return Prescription(solution.change, said, solution.cost, solution.safety, solution.verify)
