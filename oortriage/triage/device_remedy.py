"""What to change about device memory: each remedy with its effect, from the log's own figures."""

from __future__ import annotations

from oortriage.evidence.values import format_bytes
from oortriage.ledger.shortage import IDLE_SHARE
from oortriage.triage.case import Case, Finding
from oortriage.triage.device_figures import Figures
from oortriage.triage.diagnosis import Prescription, WillNotHelp

#: Flags of engines, which are prescribed here by program, phase and figures, and not by a rule alone.
ENGINE_FLAGS = frozenset(
    {
        "--gpu-memory-utilization",
        "--mem-fraction-static",
        "--tensor-parallel-size",
        "--enforce-eager",
        "--max-num-seqs",
        "--max-num-batched-tokens",
        "--max-model-len",
        "--kv-cache-dtype",
    }
)
#: The rule for the wording of PyTorch 2.1 and later, whose allocator has expandable segments.
_RECENT_WORDING = "DM101"


def _floor_utilization(free: float, total: float) -> float:
    return int(free / total * 100) / 100


def prescribe(case: Case, finding: Finding, figures: Figures) -> None:
    """Add the remedies for the finding's cause, the one that touches the real share first."""
    add = finding.prescriptions.append
    cause = finding.cause
    utilization = case.number("utilization") or case.facts.number("gpu_memory_utilization")
    if cause == "startup_budget":
        free, total = case.numbers.get("free_bytes"), case.numbers.get("capacity_bytes")
        if free and total and free < total:
            value = _floor_utilization(free, total)
            if value > 0:
                add(
                    Prescription(
                        f"--gpu-memory-utilization {value:.2f}",
                        f"the budget becomes {format_bytes(int(value * total))}; {format_bytes(int(free))} of "
                        f"{format_bytes(int(total))} are free",
                        "a smaller KV cache",
                        "safe",
                        "the start-up check passes; `Available KV cache memory` is positive",
                    )
                )
        add(
            Prescription(
                "stop what else holds the card (`nvidia-smi --query-compute-apps=pid,used_memory --format=csv`)",
                "frees what other processes hold, a leftover engine process included",
                "",
                "safe",
                "`nvidia-smi` shows the card empty before the start",
            )
        )
    elif cause == "fragmentation":
        _prescribe_fragmentation(case, finding, figures)
    elif cause == "private_pool":
        finding.forbidden.add("expandable_segments")
        idle = format_bytes(int(figures.pool or 0))
        add(
            Prescription(
                "release what owns the private pools (CUDA graphs, a MemPool, a sleeping engine) before it",
                f"frees up to {idle} that no other allocation may use",
                "graphs have to be captured again",
                "safe",
                "the `private pools` clause of the message shrinks",
            )
        )
        add(
            Prescription(
                "one pool for all graphs: torch.cuda.graph(g, pool=first.pool()), the largest captured first",
                f"the {idle} are then needed once, not once a graph; `oortriage snapshot` shows each pool",
                "graphs of one pool may not replay at the same time",
                "safe",
                "the `private pools` clause of the message shrinks",
            )
        )
    elif cause in ("other_process", "sibling_ranks"):
        _prescribe_others(finding, figures, cause)
    elif cause in ("absurd_request", "exceeds_card"):
        add(
            Prescription(
                "find the operation in the traceback's last frames and compute its output's shape",
                f"one tensor of {format_bytes(int(figures.requested or 0))}: split the operation into chunks or mend "
                "the shape",
                "",
                "safe",
                "the requested size falls below the card's",
            )
        )
    elif cause == "per_process_limit":
        add(
            Prescription(
                "raise or remove torch.cuda.set_per_process_memory_fraction (or the vGPU's quota)",
                f"the process is held to {format_bytes(int(figures.allowed or 0))}",
                "",
                "safe",
                "the `allowed` clause disappears from the message",
            )
        )
    _prescribe_engine(case, finding, utilization)


def _prescribe_fragmentation(case: Case, finding: Finding, figures: Figures) -> None:
    """Expandable segments, where the release has them and nothing in the log forbids them."""
    idle = format_bytes(int(figures.idle or 0))
    if case.text_has(r"enable_sleep_mode|sleep_mode=True|cumem|KV connector|kv_transfer_config"):
        finding.forbidden.add("expandable_segments")
        finding.notes.append(
            "expandable segments do not go together with vLLM's sleep mode (refused before 0.21.0, switched off for "
            "its own pool from then on) or with a KV connector (refused from 0.21.0)"
        )
    elif case.event.code == _RECENT_WORDING:
        finding.prescriptions.append(
            Prescription(
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                f"lets the idle {idle} be used for requests of any size",
                "not together with vLLM's sleep mode (before 0.21) or a KV connector (from 0.21), nor with "
                "torch.cuda.MemPool (PyTorch 2.7 to 2.9)",
                "safe",
                "`reserved by PyTorch but unallocated` shrinks",
            )
        )
    elif "max_split_size_mb" in case.event.match.text:
        finding.prescriptions.append(
            Prescription(
                "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128",
                f"large idle blocks are no longer split, so that the idle {idle} serves large requests again; this "
                "release knows no expandable segments",
                "some speed",
                "costs_speed",
                "reserved memory comes closer to what is allocated",
            )
        )


def _prescribe_others(finding: Finding, figures: Figures, cause: str) -> None:
    held = figures.outside if figures.outside is not None else figures.not_ours
    if cause == "sibling_ranks":
        finding.forbidden |= {"set_device", "map_location"}
        finding.prescriptions.append(
            Prescription(
                "torch.cuda.set_device(local_rank) before any CUDA call, and map_location='cpu' when loading",
                f"gives {format_bytes(int(held or 0))} back to this card; each rank then uses its own",
                "",
                "safe",
                "`nvidia-smi` shows one process a card",
            )
        )
        return
    pids = ", ".join(str(pid) for pid, _ in sorted(figures.others, key=lambda pair: -pair[1])[:4])
    finding.prescriptions.append(
        Prescription(
            f"stop or move the other process{'es' if ',' in pids else ''}" + (f" (pid {pids})" if pids else ""),
            f"frees up to {format_bytes(int(held or 0))}",
            "",
            "safe",
            "`nvidia-smi --query-compute-apps=pid,used_memory --format=csv`",
        )
    )


def _prescribe_engine(case: Case, finding: Finding, utilization: float | None) -> None:
    """Add what an engine's own knobs do in the phase the failure happened in."""
    add = finding.prescriptions.append
    finding.forbidden |= ENGINE_FLAGS
    is_vllm = case.program == "vllm"
    if finding.cause in (
        "fragmentation",
        "startup_budget",
        "absurd_request",
        "exceeds_card",
        "other_process",
    ):
        return
    if finding.cause == "weights_do_not_fit" and is_vllm:
        finding.forbidden.add("quantised checkpoint")
        parallel = case.facts.number("tensor_parallel_size")
        more = int(parallel * 2) if parallel else 2
        add(
            Prescription(
                f"--tensor-parallel-size {more}",
                f"each card holds 1/{more} of the weights",
                f"{more} cards",
                "safe",
                "`Model loading took` is printed for every rank",
            )
        )
        add(
            Prescription(
                "a quantised checkpoint of the model",
                "4-bit weights take about a quarter of 16-bit ones",
                "some quality",
                "changes_output",
                "`Model loading took` fits in the card",
            )
        )
    elif finding.cause == "sampler_warmup":
        seqs = case.facts.number("max_num_seqs")
        add(
            Prescription(
                f"--max-num-seqs {max(1, int(seqs // 4))}" if seqs and seqs >= 8 else "--max-num-seqs 256",
                "the warm-up's logits buffer grows with max_num_seqs x vocabulary",
                "fewer requests at once",
                "costs_speed",
                "start-up gets past the sampler warm-up",
            )
        )
    elif finding.cause == "graph_capture" and is_vllm:
        _lower_utilization(
            finding,
            utilization,
            "leaves room for the CUDA graphs, which are captured outside of the budget",
        )
        add(
            Prescription(
                "--enforce-eager",
                "captures no CUDA graphs at all",
                "speed, most of all in decode",
                "costs_speed",
                "no `Capturing CUDA graphs` in the log",
            )
        )
    elif case.phase in ("prefill", "decode") and is_vllm:
        _lower_utilization(
            finding,
            utilization,
            "leaves more of the card to activations and buffers outside of the KV pool",
        )
    elif case.phase in ("prefill", "decode", "graph_capture") and case.program == "sglang":
        fraction = case.facts.number("mem_fraction_static")
        value = f" {fraction - 0.05:.2f}" if fraction else ""
        add(
            Prescription(
                f"--mem-fraction-static{value} (lower)",
                "leaves more of the card to activations; in these phases the static pool is too large, not too small",
                "fewer KV tokens",
                "safe",
                "`avail mem` after the memory pool grows",
            )
        )
    elif case.phase == "profile" and is_vllm:
        add(
            Prescription(
                "a smaller --max-num-batched-tokens and --max-num-seqs",
                "the profile run executes one batch of that size; its activations are what failed",
                "throughput of long prompts",
                "costs_speed",
                "`Available KV cache memory` is printed",
            )
        )


def _lower_utilization(finding: Finding, utilization: float | None, effect: str) -> None:
    value = f" {utilization - 0.05:.2f}" if utilization and utilization > 0.1 else ""
    finding.prescriptions.append(
        Prescription(
            f"--gpu-memory-utilization{value} (lower)",
            effect,
            "fewer KV tokens",
            "safe",
            "the same load passes",
        )
    )


def warn_off(case: Case, finding: Finding, figures: Figures) -> None:
    """Add the advice that people give for this message and that these figures rule out."""
    add = finding.will_not_help.append
    if reason := _why_not_fragmentation(figures, finding.cause):
        add(
            WillNotHelp(
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True or max_split_size_mb (printed on every such error)",
                reason,
            )
        )
    if finding.cause in ("other_process", "sibling_ranks"):
        add(WillNotHelp("a smaller batch or a smaller model", "most of the card is held by someone else"))
    if finding.cause in ("absurd_request", "exceeds_card"):
        add(
            WillNotHelp(
                "any memory setting, a bigger fraction, closing other programs",
                "no setting makes room for a request larger than the card",
            )
        )
    if case.phase == "load" and finding.cause == "weights_do_not_fit":
        add(
            WillNotHelp(
                "a lower --gpu-memory-utilization",
                "it sizes the KV pool after loading; the weights take what they take",
            )
        )


def _why_not_fragmentation(figures: Figures, cause: str) -> str:
    """Say by the figures why the hint that PyTorch prints does not help; empty where it might."""
    idle, reserved, free, wanted = figures.idle, figures.reserved, figures.free, figures.requested
    if cause == "fragmentation" or idle is None or not reserved:
        return ""
    if cause == "private_pool":
        return "what lies idle belongs to a private pool, which keeps it in segments of any kind"
    if wanted is not None and figures.capacity and wanted > figures.capacity:
        return "the request is larger than the card, whatever is free"
    if free is not None and wanted is not None and free >= wanted:
        return "enough was free in one request's size: what refused it is a limit, not scattered memory"
    if idle / reserved < IDLE_SHARE:
        return f"only {format_bytes(int(idle))} ({idle / reserved:.0%} of what is reserved) lies idle"
    if free is not None and wanted is not None and free + idle < wanted:
        short = format_bytes(int(wanted - free - idle))
        return f"even all idle memory joined to the free memory would not hold the request: {short} short"
    return ""
