"""Words that the readable formats share: what a resource is called, how facts are told in a line."""

from __future__ import annotations

from collections.abc import Sequence

from oortriage.evidence.values import format_bytes
from oortriage.ledger.decision import Step
from oortriage.report.escape import shorten, visible
from oortriage.triage.diagnosis import BillView, Diagnosis, Evidence, OtherFailure

RESOURCE_WORDS = {
    "shared_memory": "shared memory of one block (on the chip)",
    "tensor_memory": "tensor memory of one block (on the chip)",
    "registers": "registers",
    "threads": "threads of one block (launch configuration)",
    "device_memory": "device memory (the card's VRAM)",
    "kv_cache": "the engine's KV cache",
    "host_memory": "host memory (RAM)",
    "host_shm": "host shared memory (/dev/shm)",
    "device_context": "no usable device",
    "none": "no resource ran out",
    "undetermined": "undetermined",
}

#: Facts worth a line in a one-screen verdict, in this order.
_FACTS = (
    ("gpu", ""),
    ("compute_capability", "capability "),
    ("vllm_version", "vLLM "),
    ("sglang_version", "SGLang "),
    ("torch_version", "torch "),
    ("triton_version", "Triton "),
    ("model", "model "),
    ("attention_backend", "backend "),
    ("head_size", "head size "),
    ("tensor_parallel_size", "TP "),
)


#: Names that happen to be numbers: they are looked up or typed again, and count nothing.
_NOT_COUNTED = frozenset({"pid", "device_index", "exit_code", "signal", "cuda_error", "xid", "source_line"})


def fact_line(diagnosis: Diagnosis) -> str:
    """Tell the environment in one line: card, versions, model, type and where the type came from."""
    facts = diagnosis.facts
    parts = [f"{label}{facts[name].value}" for name, label in _FACTS if name in facts]
    if "dtype" in facts:
        dtype = str(facts["dtype"].value).removeprefix("torch.")
        if "dtype_from" in facts:
            dtype += (
                f" (cast from {str(facts['dtype_from'].value).removeprefix('torch.')}, line {facts['dtype_from'].line})"
            )
        parts.insert(min(len(parts), 2), dtype)
    return ", ".join(parts)


def number_line(diagnosis: Diagnosis) -> str:
    """Tell the failure's figures in one line, with their names; sizes of a MiB and more are rounded."""
    return ", ".join(f"{label} {rounded or exact}" for label, exact, rounded in number_rows(diagnosis))


def number_rows(diagnosis: Diagnosis) -> list[tuple[str, str, str]]:
    """Tell the failure's figures: name, exact figure, and the rounded one of sizes of a MiB and more, else nothing."""
    rows = []
    for name, value in diagnosis.numbers.items():
        label = name.removesuffix("_bytes").replace("_", " ")
        if name.endswith("_bytes"):
            rows.append((label, f"{int(value):,} B", format_bytes(int(value)) if abs(value) >= 2**20 else ""))
        else:
            style = "g" if isinstance(value, float) else "d" if name in _NOT_COUNTED else ",d"
            rows.append((label, f"{value:{style}}", ""))
    return rows


def verdict(diagnosis: Diagnosis) -> str:
    """Say the resource in words, with the cause."""
    words = RESOURCE_WORDS[diagnosis.resource]
    cause = diagnosis.cause.replace("_", " ")
    return f"{words}: {cause}" if cause and diagnosis.resource != "undetermined" else words


def proof(root: Evidence, limit: int) -> str:
    """Quote the line that proves it, harmless, and cut round its message where it is long."""
    text, lead = root.text.strip(), root.text[: root.offset].lstrip()
    return shorten(visible(text), limit, len(visible(lead)))


def when_line(diagnosis: Diagnosis) -> str:
    """Tell the phase, and how often and by how many processes the failure was printed."""
    parts = [] if diagnosis.phase == "unknown" else [diagnosis.phase.replace("_", " ")]
    if diagnosis.occurrences > 1:
        parts.append(f"printed {diagnosis.occurrences} times")
    if len(diagnosis.streams) > 1:
        parts.append(f"by {len(diagnosis.streams)} processes")
    return ", ".join(parts)


def decision_lines(steps: Sequence[Step]) -> list[str]:
    """Tell a decision test by test, each with its arithmetic and its answer."""
    return [f"{one.test}? {one.figures}: {one.answer}" for one in steps]


def bill_line(bill: BillView | None) -> str:
    """Write a bill as a sum, and whose word it is."""
    if bill is None:
        return ""
    terms = " + ".join(term.expression for term in bill.terms)
    return f"{bill.total_bytes:,} = {terms} ({bill.note})"


def other_line(other: OtherFailure) -> str:
    """Name another failure of the same file."""
    relation = other.relation.replace("_", " ")
    return f"line {other.line}: {other.code} ({other.resource}), {relation}"
