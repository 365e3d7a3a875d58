"""The card's memory: the cause by arithmetic, what it rules out, and the remedies that fit it."""

from __future__ import annotations

from oortriage.evidence.values import GIB, format_bytes
from oortriage.ledger.decision import Step
from oortriage.triage.case import Case, Finding
from oortriage.triage.device_cause import decide
from oortriage.triage.device_figures import Figures, figures_of
from oortriage.triage.device_remedy import prescribe, warn_off
from oortriage.triage.diagnosis import RuledOut

#: Memory of the process outside of PyTorch's pool that is worth a word; a context alone takes 0.3 to 1.9 GiB.
MUCH_BESIDE_TORCH = 5 * GIB


def examine(case: Case) -> Finding:
    """Refine a device-memory failure: cause by arithmetic, remedies that touch the real share."""
    figures = figures_of(case)
    finding = Finding(cause=case.event.rule.cause)
    reason = ""
    kin = [one.rule for one in case.root.companions if one.rule.resource == "device_memory"]
    companion = next((rule.cause for rule in kin if rule.cause), "")
    decision = decide(case, figures)
    decided, why = decision.cause, decision.reason
    if finding.cause not in ("", "capacity"):
        # The rule names the cause; the arithmetic may still say how much is missing.
        reason = why if decided == "capacity" else ""
    else:
        finding.cause, reason = decided, why
        if companion and finding.cause in ("capacity", ""):
            finding.cause = companion
        elif finding.cause == "capacity" and figures.allocated != 0:
            finding.cause = _by_phase(case)
        finding.decision = _steps(decision.steps, decided, finding.cause, case.phase)
    finding.summary = _summary(case, figures, reason)
    if figures.requested is None and finding.cause not in (
        "startup_budget",
        "other_process_released",
    ):
        finding.missing.append("the full message with its figures (`Tried to allocate ...`)")
    _note_outside(finding, figures)
    _rule_out(case, finding, figures)
    prescribe(case, finding, figures)
    warn_off(case, finding, figures)
    return finding


def _steps(steps: list[Step], decided: str, cause: str, phase: str) -> list[Step]:
    """Add what turned a plain shortage into a more special one; figures that were not tried prove nothing."""
    if cause == decided or not steps:
        return steps
    words = f"a plain shortage, in the phase {phase.replace('_', ' ')}"
    return [*steps, Step("when did it happen", words, True, cause.replace("_", " "))]


def _note_outside(finding: Finding, figures: Figures) -> None:
    """Say when a large share of the process's own memory is not PyTorch's: no batch size touches it."""
    if figures.allocated == 0 and not figures.reserved and figures.own:
        finding.notes.append(
            f"PyTorch itself holds nothing: all {format_bytes(int(figures.own))} of this process are an engine's, or "
            "another library's; PyTorch's own settings do not touch them"
        )
        return
    if figures.own is None or figures.reserved is None:
        return
    beside = figures.own - figures.reserved
    if beside > MUCH_BESIDE_TORCH:
        finding.notes.append(
            f"{format_bytes(int(beside))} of this process's memory lies outside of PyTorch (context, NCCL, graphs, "
            "an engine of its own): a smaller batch does not touch it"
        )


def _by_phase(case: Case) -> str:
    """Give a plain shortage the name of the moment it happened in, where that changes the remedy."""
    return {
        "warmup": "sampler_warmup" if case.raised and _in_frames(case, "sampler") else "capacity",
        "graph_capture": "graph_capture",
        "load": "weights_do_not_fit" if case.event.rule.software != "llama.cpp" else "capacity",
    }.get(case.phase, "capacity")


def _in_frames(case: Case, word: str) -> bool:
    return bool(case.raised) and any(word in frame.function for frame in (case.raised.frames if case.raised else ()))


def _summary(case: Case, figures: Figures, reason: str) -> str:
    numbers = case.numbers
    if case.event.rule.cause == "startup_budget" and "wanted_bytes" in numbers:
        free, wanted = numbers.get("free_bytes"), numbers["wanted_bytes"]
        if free is not None:
            return (
                f"At start-up {format_bytes(int(free))} of the card's memory were free, and the engine's budget "
                f"asks for {format_bytes(int(wanted))}: {format_bytes(int(wanted - free))} short."
            )
    if figures.requested is not None:
        text = f"An allocation of {format_bytes(int(figures.requested))} of device memory failed"
        return f"{text}: {reason}." if reason else f"{text}."
    return f"{case.event.rule.title}: {reason}." if reason else f"{case.event.rule.title}."


def _rule_out(case: Case, finding: Finding, figures: Figures) -> None:
    line = case.event.line.number
    if figures.requested is not None:
        finding.ruled_out.append(
            RuledOut(
                "shared_memory",
                f"{format_bytes(int(figures.requested))} was asked of the card's memory; a block's shared memory is "
                "at most some hundred KiB",
                line,
            )
        )
    kv = case.facts.fact("kv_tokens")
    if kv and kv.line < line:
        finding.ruled_out.append(RuledOut("kv_cache", f"the KV cache had been allocated ({kv.value} tokens)", kv.line))
