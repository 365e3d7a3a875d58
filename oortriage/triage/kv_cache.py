"""The serving engine's KV pool: the sum that gave too little, redone from the log's own figures."""

from __future__ import annotations

from oortriage.evidence.values import GIB, format_bytes
from oortriage.triage.case import Case, Finding
from oortriage.triage.device_remedy import ENGINE_FLAGS
from oortriage.triage.diagnosis import Prescription, RuledOut, WillNotHelp

#: Above this fraction raising it further gives little and takes the room CUDA graphs need.
NEARLY_ALL = 0.94
#: From this fraction on there is next to nothing left to raise.
FULL = 0.9
#: From this release on the CUDA-graph estimate is part of the budget by default.
GRAPH_ESTIMATE_SINCE = "0.20.0"
#: From this release on the engine fits the length to the pool itself when asked to.
AUTO_LENGTH_SINCE = "0.14.1"


def examine(case: Case) -> Finding:
    """Refine a KV-cache failure: how many bytes or tokens are missing, and what opens the window."""
    finding = Finding(cause=case.event.rule.cause or "no_blocks")
    available = case.number("kv_available_bytes")
    if available is not None:
        finding.numbers["kv_available_bytes"] = int(available)
    utilization = case.facts.number("gpu_memory_utilization")
    if utilization is not None and utilization < FULL:
        finding.inapplicable.add("raising gpu_memory_utilization")
    finding.summary = _summary(case, available)
    _rule_out(case, finding)
    if case.event.rule.software == "vllm":
        finding.forbidden |= ENGINE_FLAGS
        if finding.cause == "no_blocks":
            _prescribe_no_blocks(case, finding, available, utilization)
        elif finding.cause == "max_len_too_long":
            _prescribe_length(case, finding, available, utilization)
    if finding.cause in ("no_blocks", "max_len_too_long") and available is None and not case.number("kv_tokens"):
        finding.missing.append("the line `Available KV cache memory: ... GiB` (or the memory profiling lines of V0)")
    return finding


def _summary(case: Case, available: float | None) -> str:
    number = case.number
    needed, length = case.numbers.get("kv_needed_bytes"), number("max_model_len")
    tokens = case.numbers.get("kv_tokens")
    if needed is not None and available is not None:
        short = needed - available
        return (
            f"One request of {int(length or 0):,} tokens needs {format_bytes(int(needed))} of KV cache; "
            f"{format_bytes(int(available))} are available: {format_bytes(int(short))} short."
        )
    if tokens is not None and length is not None:
        return (
            f"The model's length is {int(length):,} tokens and the KV cache holds {int(tokens):,}: "
            f"{int(length - tokens):,} short."
        )
    wanted, left = case.numbers.get("requested_tokens"), case.numbers.get("available_tokens")
    if wanted is not None and left is not None:
        return f"The KV pool was asked for {int(wanted):,} tokens and had {int(left):,} left."
    if available is not None and case.event.rule.cause in ("no_blocks", ""):
        bill = _budget_bill(case)
        return (
            "After weights and peak activations, "
            f"{format_bytes(int(available))} remain for the KV cache: not one block." + (f" {bill}" if bill else "")
        )
    return f"{case.event.rule.title}."


def _budget_bill(case: Case) -> str:
    """Redo the engine's own sum where the log prints all of its terms."""
    facts = case.facts
    total, utilization = facts.number("capacity_bytes"), facts.number("gpu_memory_utilization")
    terms = [facts.number(name) for name in ("weights_bytes", "non_torch_bytes", "activation_peak_bytes")]
    if total is None or utilization is None or any(term is None for term in terms):
        return ""
    weights, other, peak = (term or 0.0 for term in terms)
    left = total * utilization - weights - other - peak
    return (
        f"{total / GIB:.2f} x {utilization:.2f} - {weights / GIB:.2f} (weights) - {other / GIB:.2f} (non-torch) - "
        f"{peak / GIB:.2f} (activations) = {left / GIB:.2f} GiB."
    )


def _rule_out(case: Case, finding: Finding) -> None:
    line = case.event.line.number
    finding.ruled_out.append(
        RuledOut(
            "shared_memory",
            "the engine's own accounting refused before any kernel was launched",
            line,
        )
    )
    finding.ruled_out.append(RuledOut("device_memory", "no allocation failed: the pool was computed too small", line))


def _prescribe_no_blocks(case: Case, finding: Finding, available: float | None, utilization: float | None) -> None:
    add = finding.prescriptions.append
    total = case.facts.number("capacity_bytes")
    room = (utilization or 0) < NEARLY_ALL
    if room and available is not None and utilization and total:
        # The first block needs more than zero; half a GiB is the least that serves anything.
        wanted = utilization + (0.5 * GIB - available) / total
        if wanted <= 0.97:
            value = min(0.97, max(utilization + 0.01, int(wanted * 100 + 0.999) / 100))
            gain = (value - utilization) * total
            add(
                Prescription(
                    f"--gpu-memory-utilization {value:.2f}",
                    f"the budget grows by {format_bytes(int(gain))}: about {format_bytes(int(available + gain))} "
                    "for KV",
                    "less room for anything beside the engine",
                    "safe",
                    "`Available KV cache memory` is positive",
                )
            )
    elif room:
        now = f" (now {utilization:g})" if utilization else ""
        add(
            Prescription(
                f"--gpu-memory-utilization higher{now}",
                "the KV pool is what remains of that fraction after weights and activations",
                "less room for anything beside the engine",
                "safe",
                "`Available KV cache memory` is positive",
            )
        )
    add(
        Prescription(
            "a smaller --max-num-batched-tokens and --max-num-seqs",
            "the profile run executes one batch of that size; a smaller peak leaves more to the pool",
            "throughput of long prompts",
            "costs_speed",
            "`Available KV cache memory` grows",
        )
    )
    if case.facts.allows("vllm", GRAPH_ESTIMATE_SINCE, "") and case.facts.number("cudagraph_bytes"):
        estimate = case.facts.number("cudagraph_bytes") or 0
        add(
            Prescription(
                "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0",
                f"gives the estimated {format_bytes(int(estimate))} of CUDA graphs back to the pool; leave that much "
                "outside of the fraction",
                "graphs must then fit beside the budget",
                "risky",
                "graph capture still succeeds",
            )
        )
    parallel = case.facts.number("tensor_parallel_size") or 1
    add(
        Prescription(
            f"--tensor-parallel-size {int(parallel * 2)}, or a quantised checkpoint",
            f"the weights ({format_bytes(int(case.facts.number('weights_bytes') or 0))}) are shared by more cards"
            if case.facts.number("weights_bytes")
            else "fewer bytes of weights on each card",
            "more cards, or some quality",
            "changes_output",
            "`Model loading took` falls",
        )
    )
    if utilization and utilization >= FULL:
        finding.will_not_help.append(
            WillNotHelp(
                "raising --gpu-memory-utilization alone",
                f"it is {utilization:g} already; weights and activations take the budget",
            )
        )
    finding.will_not_help.append(
        WillNotHelp(
            "lowering --gpu-memory-utilization",
            "it makes the pool smaller still; lowering is for failed allocations, not for zero blocks",
        )
    )


def _more_of_the_card(utilization: float | None, missing: str) -> Prescription:
    now = f" (now {utilization:g})" if utilization else ""
    return Prescription(
        f"--gpu-memory-utilization higher{now}",
        f"one full request needs {missing}",
        "less room for anything beside the engine",
        "safe",
        "the engine starts",
    )


def _prescribe_length(case: Case, finding: Finding, available: float | None, utilization: float | None) -> None:
    add = finding.prescriptions.append
    needed = case.numbers.get("kv_needed_bytes")
    length = case.number("max_model_len")
    estimate = case.numbers.get("estimated_max_model_len")
    tokens = case.numbers.get("kv_tokens")
    fits = tokens or estimate
    if not fits and needed and available and length:
        fits = int(length * available / needed) // 16 * 16
    if fits and fits > 0:
        add(
            Prescription(
                f"--max-model-len {int(fits)}",
                f"one request of that length fits in the pool; now {int(length):,}"
                if length
                else "one request of that length fits in the pool",
                "longer requests are refused",
                "safe",
                "the engine starts; `Maximum concurrency` is 1 or more",
            )
        )
    if case.facts.text("vllm_version") and case.facts.allows("vllm", AUTO_LENGTH_SINCE, ""):
        add(
            Prescription(
                "--max-model-len auto",
                "the engine takes the longest length that fits in the pool it finds",
                "longer requests are refused",
                "safe",
                "the log names the length that was chosen",
            )
        )
    total = case.facts.number("capacity_bytes")
    if needed and available is not None:
        short = needed - available
        if total and utilization and utilization + short / total <= 0.97:
            value = int((utilization + short / total) * 100 + 0.999) / 100
            add(
                Prescription(
                    f"--gpu-memory-utilization {value:.2f}",
                    f"adds the missing {format_bytes(int(short))} to the pool",
                    "less room for anything beside the engine",
                    "safe",
                    "the engine starts",
                )
            )
        elif not utilization or utilization < NEARLY_ALL:
            add(_more_of_the_card(utilization, format_bytes(int(short))))
    elif tokens is not None and length and length > tokens and (not utilization or utilization < NEARLY_ALL):
        add(_more_of_the_card(utilization, f"room for {int(length - tokens):,} more tokens"))
    dtype = case.facts.text("kv_cache_dtype")
    capability = case.facts.number("compute_capability")
    if (
        "fp8" not in dtype
        and needed
        and available
        and needed / 2 <= available
        and (capability is None or capability >= 8.9)
    ):
        add(
            Prescription(
                "--kv-cache-dtype fp8",
                f"one full request then needs {format_bytes(int(needed / 2))}",
                "some accuracy; the attention backend must support it",
                "changes_output",
                "the start-up log names the KV cache type",
            )
        )
    if estimate:
        finding.notes.append(
            "the printed estimated length was measured at the failing length: it is a lower bound, longer ones may fit"
        )
    finding.will_not_help.append(
        WillNotHelp(
            "CPU offload of the KV cache, LMCache, swap space",
            "the check counts the GPU's pool alone",
        )
    )
