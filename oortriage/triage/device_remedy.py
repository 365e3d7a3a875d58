"""What to change about device memory: each remedy with its effect, from the log's own figures."""

from __future__ import annotations

from oortriage.evidence.values import format_bytes
from oortriage.triage.case import Case, Finding
from oortriage.triage.device_cause import IDLE_SHARE, Figures
from oortriage.triage.diagnosis import Prescription, WillNotHelp


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
        if case.text_has(r"enable_sleep_mode|sleep_mode=True|cumem|KV connector|kv_transfer_config"):
            finding.notes.append("expandable segments do not go together with sleep mode or a KV connector")
        else:
            add(
                Prescription(
                    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                    f"lets the idle {format_bytes(int(figures.idle or 0))} be used for requests of any size",
                    "",
                    "safe",
                    "`reserved by PyTorch but unallocated` shrinks",
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


def _prescribe_others(finding: Finding, figures: Figures, cause: str) -> None:
    held = figures.outside if figures.outside is not None else figures.not_ours
    if cause == "sibling_ranks":
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
    is_vllm = case.event.rule.software == "vllm" or bool(case.facts.text("vllm_version")) or case.text_has("vllm")
    if finding.cause in (
        "fragmentation",
        "startup_budget",
        "absurd_request",
        "exceeds_card",
        "other_process",
    ):
        return
    if finding.cause == "weights_do_not_fit" and is_vllm:
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
    elif case.phase in ("prefill", "decode", "graph_capture") and case.text_has("sglang"):
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
    idle, reserved = figures.idle, figures.reserved
    if finding.cause != "fragmentation" and idle is not None and reserved:
        add(
            WillNotHelp(
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True or max_split_size_mb (printed on every such error)",
                f"only {format_bytes(int(idle))} ({idle / reserved:.0%} of what is reserved) lies idle"
                if idle / reserved < IDLE_SHARE or figures.requested is None
                else "even all idle memory joined to the free memory would not hold the request",
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
