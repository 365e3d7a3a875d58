"""The card's memory: which of the ways to run out it was, by arithmetic on the message's figures.

The order of the tests reproduces hand labels of 42 in 49 public reports that print their figures;
the thresholds were chosen on the same reports.
"""

from __future__ import annotations

import itertools
import re

import msgspec

from oortriage.evidence.values import GIB, MIB, SENTINEL_BYTES, format_bytes, parse_size
from oortriage.triage.case import Case, Finding
from oortriage.triage.diagnosis import Prescription, RuledOut, WillNotHelp

#: A request this many times the card is a wrong shape or an overflow, not a shortage.
ABSURD = 50
#: Share of the reserved memory that must lie idle before fragmentation is believed.
IDLE_SHARE = 0.20
#: Segments are cut in steps of 2 and 20 MiB; a surplus below this may be rounding.
ROUNDING = 50 * MIB
#: Unexplained memory from which another process is believed when no clause names one.
UNEXPLAINED = 2.5 * GIB

_PROCESS = re.compile(r"Process (\d+) has ([\d.]+ ?[KMGT]?i?B(?:ytes)?) memory in use")
#: ``nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv``
_SMI_ROW = re.compile(r"(?m)^(\d+), ([^,\n]{1,200}), (\d+) MiB$")
_UNIFIED = re.compile(r"GB10|DGX Spark|Jetson|Orin|Thor|Strix Halo|Ryzen AI Max|GH200", re.IGNORECASE)


class Figures(msgspec.Struct):
    """The figures of one message in bytes; None where the message does not print them."""

    requested: float | None
    capacity: float | None
    free: float | None
    allocated: float | None
    reserved: float | None
    idle: float | None
    allowed: float | None
    own: float | None
    pool: float | None
    others: list[tuple[int, int]]

    @property
    def outside(self) -> float | None:
        """Memory held by neither this process nor nobody, when a clause says what is its own."""
        if self.capacity is None or self.free is None or self.own is None:
            return None
        return self.capacity - self.free - self.own

    @property
    def not_ours(self) -> float | None:
        """Memory that the framework of this process did not reserve (its context included)."""
        if self.capacity is None or self.free is None or self.reserved is None:
            return None
        return self.capacity - self.free - self.reserved


def figures_of(case: Case) -> Figures:
    """Bring the fields of every generation of the message to the same few figures."""
    number = case.numbers.get
    allocated, reserved, idle = (
        number("allocated_bytes"),
        number("reserved_bytes"),
        number("unallocated_bytes"),
    )
    cached = number("cached_bytes")
    if idle is None and cached is not None:
        idle = cached  # PyTorch 1.0 to 1.3: "cached" leaves out what is allocated
    if idle is None and reserved is not None and allocated is not None:
        idle = reserved - allocated
    if reserved is None and allocated is not None and idle is not None:
        reserved = allocated + idle
    others = [
        (int(pid), size)
        for pid, text in _PROCESS.findall(case.event.match.text)
        if (size := parse_size(text.replace("bytes", "B"))) < SENTINEL_BYTES
    ]
    figures = Figures(
        number("requested_bytes"),
        number("capacity_bytes"),
        number("free_bytes"),
        allocated,
        reserved,
        idle,
        number("allowed_bytes"),
        number("process_bytes"),
        number("private_pool_bytes"),
        others,
    )
    for name in (
        "requested",
        "capacity",
        "free",
        "allocated",
        "reserved",
        "idle",
        "allowed",
        "own",
    ):
        value = getattr(figures, name)
        if value is not None and abs(value) >= SENTINEL_BYTES and name != "requested":
            setattr(figures, name, None)
    if figures.own is None:
        figures.own = _own_from_clauses(figures)
    return figures


def _own_from_clauses(figures: Figures) -> float | None:
    """Find the own process among clauses that all say "Process": a container sees host PIDs."""
    if not figures.others or figures.capacity is None or figures.free is None:
        return None
    used = figures.capacity - figures.free
    if len(figures.others) == 1 and used - figures.others[0][1] < 0.1 * GIB:
        own = figures.others.pop(0)
        return own[1]
    if figures.reserved:
        nearest = min(figures.others, key=lambda pair: abs(pair[1] - (figures.reserved or 0)))
        if 0 <= nearest[1] - figures.reserved < 2 * GIB:
            figures.others.remove(nearest)
            return nearest[1]
    return None


def examine(case: Case) -> Finding:
    """Refine a device-memory failure: cause by arithmetic, remedies that touch the real share."""
    figures = figures_of(case)
    finding = Finding(cause=case.event.rule.cause)
    reason = ""
    companion = next((one.rule.cause for one in case.root.companions if one.rule.cause), "")
    if finding.cause in ("", "capacity"):
        finding.cause, reason = decide(case, figures)
        if companion and finding.cause in ("capacity", ""):
            finding.cause = companion
        elif finding.cause == "capacity" and figures.allocated != 0:
            finding.cause = _by_phase(case)
    finding.summary = _summary(case, figures, reason)
    if figures.requested is None and finding.cause not in (
        "startup_budget",
        "other_process_released",
    ):
        finding.missing.append("the full message with its figures (`Tried to allocate ...`)")
    _rule_out(case, finding, figures)
    _prescribe(case, finding, figures)
    _warn_off(case, finding, figures)
    return finding


def decide(case: Case, figures: Figures) -> tuple[str, str]:
    """Name the cause of an allocation failure, and the arithmetic that says so.

    Returns:
        The cause (``capacity`` when nothing more special fits) and one sentence.
    """
    wanted, total, free = figures.requested, figures.capacity, figures.free
    if wanted is None or free is None:
        held = held_by_others(case)
        if held and held > 5 * (wanted or 0):
            return (
                "other_process",
                f"nvidia-smi in the log lists {format_bytes(held)} held by other processes",
            )
    if wanted is None:
        return "capacity", ""
    if wanted >= SENTINEL_BYTES or (total and wanted > ABSURD * total):
        times = f", {wanted / total:,.0f} times the card" if total else ""
        return (
            "absurd_request",
            f"one request of {format_bytes(int(wanted))}{times}: a wrong shape or an overflow",
        )
    if total and wanted > total:
        return (
            "exceeds_card",
            f"one request of {format_bytes(int(wanted))} is more than the whole card ({format_bytes(int(total))})",
        )
    if total and figures.reserved and figures.reserved > total:
        return (
            "system_memory_spill",
            (
                f"PyTorch has reserved {format_bytes(int(figures.reserved))} on a card of {format_bytes(int(total))}: "
                "the driver has spilled into system memory"
            ),
        )
    if free is None or total is None:
        return "capacity", ""
    if free >= wanted:
        return _free_enough(figures, wanted, free)
    idle, reserved = figures.idle, figures.reserved
    if idle is not None and reserved and free + idle >= wanted and idle / reserved >= IDLE_SHARE:
        return (
            "fragmentation",
            (
                f"{format_bytes(int(idle))} ({idle / reserved:.0%}) of what PyTorch reserved lies idle; with the free "
                f"{format_bytes(int(free))} it would hold the {format_bytes(int(wanted))}, but in no single piece"
            ),
        )
    if not _is_unified(case):
        verdict = _someone_else(figures, wanted, total)
        if verdict:
            return verdict
    short = wanted - free
    return (
        "capacity",
        f"{format_bytes(int(short))} short: {format_bytes(int(wanted))} wanted, {format_bytes(int(free))} free",
    )


def held_by_others(case: Case) -> int:
    """Add up what an ``nvidia-smi`` listing in the log gives to processes other than the failed one.

    The failed process is the one whose command names the script of the traceback; without it nothing
    can be said, and 0 comes back.
    """
    frames = next((one.frames for stream in case.log.streams for one in stream.raised if one.frames), ())
    script = frames[0].file.replace("\\", "/").rpartition("/")[2] if frames else ""
    rows = [(name, int(size) * MIB) for stream in case.log.streams for _, name, size in _SMI_ROW.findall(stream.text)]
    if not script or not any(script in name for name, _ in rows):
        return 0
    return sum(size for name, size in rows if script not in name)


def _free_enough(figures: Figures, wanted: float, free: float) -> tuple[str, str]:
    """Explain a refusal although enough is free."""
    said = f"{format_bytes(int(free))} were free for a request of {format_bytes(int(wanted))}"
    if figures.allowed is not None:
        return (
            "per_process_limit",
            f"{said}, but this process is allowed {format_bytes(int(figures.allowed))}",
        )
    if figures.pool and figures.allocated and figures.pool / figures.allocated > 0.3:
        return (
            "private_pool",
            f"{said}; {format_bytes(int(figures.pool))} of the allocated memory is stranded in private pools",
        )
    if free - wanted < ROUNDING:
        return "capacity", f"{said}: the difference is lost to rounding to whole segments"
    return (
        "single_allocation_limit",
        f"{said}: not a shortage, but a limit on one block, a mapping or the host",
    )


def _someone_else(figures: Figures, wanted: float, total: float) -> tuple[str, str] | None:
    if figures.outside is not None:
        if figures.outside >= max(0.1 * total, wanted):
            pids = sorted(pid for pid, _ in figures.others)
            if len(pids) >= 2 and all(b - a <= 2 for a, b in itertools.pairwise(pids)):
                return (
                    "sibling_ranks",
                    (
                        f"{len(pids)} processes with consecutive ids ({pids[0]} to {pids[-1]}) hold "
                        f"{format_bytes(int(figures.outside))} on this card: ranks of one job bound to one device"
                    ),
                )
            return (
                "other_process",
                f"{format_bytes(int(figures.outside))} is held outside this process",
            )
        return None
    unexplained = figures.not_ours
    if unexplained is not None and unexplained >= max(0.25 * total, UNEXPLAINED):
        return (
            "other_process",
            f"{format_bytes(int(unexplained))} of the used memory was not reserved by PyTorch in this process",
        )
    return None


def _is_unified(case: Case) -> bool:
    return bool(_UNIFIED.search(case.facts.text("gpu"))) or case.text_has(r"(?i)unified memory")


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
    return f"{case.event.rule.title}."


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


def _floor_utilization(free: float, total: float) -> float:
    return int(free / total * 100) / 100


def _prescribe(case: Case, finding: Finding, figures: Figures) -> None:
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


def _warn_off(case: Case, finding: Finding, figures: Figures) -> None:
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
