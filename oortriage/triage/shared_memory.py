"""On-chip memory of one block: which tile it was, the bill that fits, and the lever that moves it."""

from __future__ import annotations

import re
from itertools import pairwise

from oortriage.evidence.fact import Fact
from oortriage.evidence.values import format_bytes
from oortriage.gpu import specs
from oortriage.ledger.inverse_bill import ELEMENT_SIZES, Bill, attention_bills, padded
from oortriage.triage.case import Case, Finding
from oortriage.triage.diagnosis import BillTerm, BillView, Prescription, RuledOut, WillNotHelp

#: Within this many bytes of the limit, the smallest step of any lever is enough.
NARROW = 1024
#: Compute capability from which global-to-shared copies are asynchronous (cp.async).
ASYNC_COPIES_SINCE = 8.0
#: ``kernel[grid](...)``: how Triton kernels are launched.
_LAUNCH = re.compile(r"(?:\w+ = )?([A-Za-z_]\w*)\[(?!\d|:|['\"])")
_TRITON_FRAME = re.compile(r"[/\\]triton[/\\](?:runtime|compiler|backends)[/\\]")
_ATTENTION = ("attention", "attn", "flash", "fmha", "mla", "flex")
_MATMUL = ("moe", "matmul", "gemm", "_mm", "triton_mm", "linear", "lora", "scaled_mm")


def examine(case: Case) -> Finding:
    """Refine a shared-memory failure: cause, bill, remedies in order of fit."""
    finding = Finding(cause=case.event.rule.cause)
    required, limit = case.number("required_bytes"), case.number("limit_bytes")
    kernel = kernel_of(case)
    if finding.cause in ("", "tile_too_large") and required and limit:
        finding.cause = _cause(case, int(required), int(limit))
    finding.summary = _summary(required, limit, kernel)
    if required and not limit:
        finding.missing.append("the hardware limit (the line with `Hardware limit`, or the card's name)")
    if not required:
        finding.missing.append("the line with `Required: N, Hardware limit: L`")
    _rule_out(case, finding, limit)
    if required and limit and required > limit and case.event.rule.software in ("triton", "torch", "inductor"):
        finding.bill = _bill(case, int(required), kernel)
    _prescribe(case, finding, required, limit, kernel)
    _warn_off(finding, case)
    _check_card(case, finding, limit)
    return finding


def kernel_of(case: Case) -> str:
    """Name the kernel: from the message, from the line that launches it, else by who called Triton."""
    if kernel := case.event.match.details.get("kernel"):
        return kernel
    if case.raised:
        for frame in reversed(case.raised.frames):
            if found := _LAUNCH.match(frame.source):
                return found.group(1)
        for caller, frame in pairwise(case.raised.frames):
            if _TRITON_FRAME.search(frame.file) and "<" not in caller.function:
                return caller.function
    return case.facts.text("kernel")


def kernel_facts(case: Case, kernel: str) -> list[Fact]:
    """State which kernel it was, and the source file that launched it: what is needed to compile it again."""
    facts = []
    line = case.event.line.number
    if kernel:
        facts.append(Fact("kernel", kernel, case.log.name, line, 0.9, "traceback"))
    if case.raised:
        callers = [frame for frame in case.raised.frames if not _TRITON_FRAME.search(frame.file)]
        if callers:
            facts.append(Fact("kernel_file", callers[-1].file, case.log.name, line, 0.9, "traceback"))
    return facts


def _cause(case: Case, required: int, limit: int) -> str:
    head = case.facts.number("head_size")
    dtype = case.facts.text("dtype").removeprefix("torch.")
    # The same kernel at the width the model came in would need about half.
    if dtype in ("float32", "float") and case.facts.value("dtype_from") and required / 2 <= limit:
        return "dtype_width"
    if head and head >= 256 and not case.facts.value("dtype_from"):
        return "head_dim"
    return "tile_too_large"


def _summary(required: float | None, limit: float | None, kernel: str) -> str:
    what = f"Kernel `{kernel}`" if kernel else "A kernel"
    if required and limit:
        over = required - limit
        if over > 0:
            times = f", {required / limit:.2f} times the limit" if required >= 1.5 * limit else ""
            return (
                f"{what} needs {int(required):,} bytes of shared memory for one block; the hardware gives "
                f"{int(limit):,}. It is {int(over):,} byte{'' if over == 1 else 's'} over{times}."
            )
        return (
            f"{what} asks for {int(required):,} bytes of shared memory of {int(limit):,}; with what the kernel "
            "already holds statically, the launch is refused."
        )
    if required:
        return f"{what} asks for {int(required):,} bytes of shared memory for one block, more than the card has."
    return f"{what} needs more on-chip shared memory for one block than the hardware has."


def _rule_out(case: Case, finding: Finding, limit: float | None) -> None:
    line = case.event.line.number
    if limit:
        finding.ruled_out.append(
            RuledOut(
                "device_memory",
                f"the limit printed is {format_bytes(int(limit))} for one block; no card has so little memory",
                line,
            )
        )
    else:
        finding.ruled_out.append(
            RuledOut(
                "device_memory",
                "the message names the on-chip memory of a block, not the card's",
                line,
            )
        )
    finding.ruled_out.append(
        RuledOut("host_shm", "raised by the GPU compiler or launcher; /dev/shm is host memory", line)
    )
    available = case.facts.fact("kv_available_bytes")
    if available and isinstance(available.value, int | float) and available.value > 0:
        finding.ruled_out.append(
            RuledOut(
                "kv_cache",
                f"the KV cache was allocated ({format_bytes(int(available.value))} available)",
                available.line,
            )
        )


def _bill(case: Case, required: int, kernel: str) -> BillView | None:
    """Find the bills of an attention kernel that give the printed figure exactly."""
    name = kernel.lower()
    files = " ".join(frame.file.lower() for frame in case.raised.frames) if case.raised else ""
    is_attention = any(word in name or word in files for word in _ATTENTION)
    if any(word in name for word in _MATMUL) or (not is_attention and (name or files)):
        return None
    dtype = case.facts.text("dtype").removeprefix("torch.")
    element = ELEMENT_SIZES.get(dtype)
    head = case.facts.number("head_size")
    if element is None and head is None:
        return None
    architecture = _architecture(case)
    bills = attention_bills(
        required,
        element_sizes=(element,) if element else (4, 2, 1),
        head_sizes=(int(head),) if head else (64, 128, 256, 512),
        turing=bool(architecture and architecture.vendor == "nvidia" and architecture.name.startswith("7.")),
    )
    if not bills:
        return None
    given = []
    if element:
        given.append(f"{dtype} ({element} bytes an element)")
    if head:
        given.append(
            f"head size {int(head)}" + (f", padded to {padded(int(head))}" if padded(int(head)) != head else "")
        )
    return _view(bills[0], f"given {' and '.join(given)} from the log", len(bills) - 1)


def _view(bill: Bill, given: str, alternatives: int) -> BillView:
    other = (
        f"; {alternatives} other choice(s) of tiles give the same sum"
        if alternatives
        else "; the only choice of tiles that does"
    )
    return BillView(
        basis="arithmetic",
        total_bytes=bill.total,
        terms=[BillTerm(term.name, str(term), term.size) for term in bill.terms],
        settings=bill.settings,
        note=f"arithmetic on an attention tile, {given}{other}; not the compiler's own allocation",
        alternatives=alternatives,
    )


def _prescribe(case: Case, finding: Finding, required: float | None, limit: float | None, kernel: str) -> None:
    if _is_vllm_attention(case, kernel):
        _prescribe_vllm(case, finding)
    if case.event.rule.software in ("triton", "torch", "inductor"):
        over = (required - limit) if required and limit else None
        stageless = _has_no_stages(case)
        if finding.bill:
            _prescribe_smaller_tile(finding, limit)
        elif over is not None and 0 < over <= NARROW:
            lever = (
                "the next smaller tile"
                if stageless
                else "one pipeline stage less (num_stages - 1), or the next smaller tile,"
            )
            finding.prescriptions.append(
                Prescription(
                    f"{lever} for this kernel",
                    f"only {_counted(over)} missing: the smallest step of the lever is enough",
                    "a little speed in this kernel",
                    "costs_speed",
                    "run the same shape again; `Required` must fall to the limit or below",
                )
            )
        elif required and limit and required > 2 * limit:
            finding.prescriptions.append(
                Prescription(
                    "halve the kernel's tile (BLOCK_M / BLOCK_N / TILE_SIZE), more than once if needed",
                    f"required is {required / limit:.1f} times the limit: one pipeline stage less will not do",
                    "speed in this kernel",
                    "costs_speed",
                    "`Required` must fall by about half for each halving",
                )
            )
        elif over is not None and over > 0:
            finding.prescriptions.append(
                Prescription(
                    "halve the kernel's K/V or N tile (BLOCK_N / TILE_SIZE)"
                    + ("" if stageless else ", or take one pipeline stage off"),
                    f"at least {int(over):,} of {int(required or 0):,} bytes must go"
                    + ("" if stageless else "; which lever moves them depends on the kernel and the card"),
                    "speed in this kernel",
                    "costs_speed",
                    "change one lever at a time: `Required` in the next error shows which one moves the bytes",
                )
            )


def _is_vllm_attention(case: Case, kernel: str) -> bool:
    files = " ".join(frame.file for frame in case.raised.frames) if case.raised else ""
    return "triton_unified_attention" in files or "unified_attention" in kernel


def _prescribe_vllm(case: Case, finding: Finding) -> None:
    """Remedies for vLLM's unified attention, in order, each within the releases it exists in."""
    version = case.facts.text("vllm_version")
    head = case.facts.number("head_size")
    if case.facts.allows("vllm", "0.13.0", ""):
        warning = " (FLEX_ATTENTION is reported to overflow as well at head size 512)" if head and head >= 512 else ""
        finding.prescriptions.append(
            Prescription(
                "--attention-backend FLEX_ATTENTION",
                f"takes the failing Triton kernel out of the path; supports FP32{warning}",
                "another attention kernel: measure the speed",
                "costs_speed",
                "send one request; the failure comes with the first prompt, not at start-up",
            )
        )
    if version and case.facts.allows("vllm", "0.11.2", "0.14.1"):
        finding.prescriptions.append(
            Prescription(
                "VLLM_ATTENTION_BACKEND=FLEX_ATTENTION",
                "the same by environment variable; it is ignored from vLLM 0.15 on",
                "another attention kernel: measure the speed",
                "costs_speed",
                "the start-up log names the backend in use",
            )
        )
    if version and case.facts.allows("vllm", "", "0.10.2"):
        finding.prescriptions.append(
            Prescription(
                "--block-size 16",
                "up to vLLM 0.10.2 the K/V tile is the KV block size, so this halves it from 32",
                "",
                "safe",
                "`Required` falls by half of K and V",
            )
        )


def _prescribe_smaller_tile(finding: Finding, limit: float | None) -> None:
    bill = finding.bill
    if bill is None:
        return
    keys = [term for term in bill.terms if not term.name.startswith("Q")]
    tile = bill.settings["TILE"]
    while keys and tile > 16:
        tile //= 2
        total = (
            bill.total_bytes
            - sum(term.bytes for term in keys) * (bill.settings["TILE"] - tile) // bill.settings["TILE"]
        )
        if limit is None or total <= limit:
            finding.prescriptions.append(
                Prescription(
                    f"K/V tile {bill.settings['TILE']} -> {tile} in the kernel's tile policy",
                    f"the bill falls from {bill.total_bytes:,} to {total:,} bytes"
                    + (f", {int(limit) - total:,} under the limit" if limit else ""),
                    "more steps a sequence: some speed in this kernel",
                    "costs_speed",
                    "`Required` must be that figure or the run must pass",
                )
            )
            return


def _warn_off(finding: Finding, case: Case) -> None:
    finding.will_not_help.append(
        WillNotHelp(
            "VRAM settings (--gpu-memory-utilization, --mem-fraction-static, --cpu-offload-gb), a smaller or "
            "quantised model, more GPUs",
            "they change how the card's memory is used; a block's shared memory is fixed by the architecture "
            "and by the kernel's tile",
        )
    )
    if finding.cause == "context_buffer":
        return  # there the buffer does grow with the length
    finding.will_not_help.append(
        WillNotHelp(
            "--max-model-len, a smaller batch, --enforce-eager",
            "the tile does not depend on them: the figure stays the same to the byte",
        )
    )
    if _has_no_stages(case):
        capability = case.facts.text("compute_capability")
        finding.will_not_help.append(
            WillNotHelp(
                "num_stages (the message's own hint)",
                f"compute capability {capability} has no asynchronous copies, so pipeline stages hold no "
                "extra buffers there; measured: 1, 2 and 3 stages need the same bytes",
            )
        )


def _architecture(case: Case) -> specs.Architecture | None:
    capability = case.facts.text("compute_capability")
    return specs.by_capability(capability) if capability else None


def _has_no_stages(case: Case) -> bool:
    """Tell a card whose pipeline stages hold no copies: NVIDIA before sm_80, for lack of async copies."""
    architecture = _architecture(case)
    return bool(architecture and architecture.vendor == "nvidia" and float(architecture.name) < ASYNC_COPIES_SINCE)


def _counted(count: float) -> str:
    return "1 byte is" if count == 1 else f"{int(count):,} bytes are"


def _check_card(case: Case, finding: Finding, limit: float | None) -> None:
    """Hold the printed limit against the card the log names; a contradiction is said, not settled."""
    if not limit:
        return
    architecture = _architecture(case)
    if architecture and limit not in (architecture.shared_per_block, architecture.shared_static):
        finding.notes.append(
            f"the log prints a limit of {int(limit):,} bytes, the table has "
            f"{architecture.shared_per_block:,} for {architecture.name}; the log's figure is used"
        )
    elif not architecture:
        names = [one.name for one in specs.by_limit(int(limit))]
        if names:
            finding.missing.append(f"the card's name: a limit of {int(limit):,} bytes is shared by {', '.join(names)}")
