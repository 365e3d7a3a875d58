"""What the installed vLLM does on these cards: types and attention backends of cards before Ampere."""

from __future__ import annotations

from typing import Any

from oortriage.doctor.finding import Checked, Code, Finding
from oortriage.doctor.machine import Machine
from oortriage.doctor.outside import Unread
from oortriage.doctor.versions import release

NAME = "engine"
TITLE = "what the installed vLLM does on these cards"

_TREES = "the published wheels of vLLM 0.5.4 to 0.33.0 (attention selector and backends, platforms/cuda.py)"

NO_BF16 = Code(
    "DR221",
    "note",
    "no bfloat16 on this card",
    "vLLM refuses bfloat16 on cards below capability 8.0 (`Bfloat16 is only supported on GPUs with compute capability "
    "of at least 8.0`). With --dtype auto it takes float16; models that refuse that (Gemma 2, Gemma 3, GLM-4) run in "
    "float32, at twice the bytes.",
    "--dtype float16 for models that may; a card of capability 8.0 or more for the others",
    "vLLM 0.6.3.post1 worker/worker.py, 0.17.1 platforms/cuda.py and config/model.py",
)
BACKEND = Code(
    "DR222",
    "note",
    "which attention backend this card gets",
    "FlashAttention needs capability 8.0. What takes its place changed from release to release.",
    "nothing to do; --attention-backend (from 0.13.0) or VLLM_ATTENTION_BACKEND (up to 0.14.1) chooses another",
    _TREES,
)
TILE = Code(
    "DR223",
    "note",
    "float32 with a head size of 256 does not fit this card's blocks",
    "vLLM's Triton attention asks for 81,920 bytes of shared memory a block in float32 with a head size of 256, in the "
    "full-attention layers, in every release that was read from 0.11.2 to 0.33.0; a block of capability 7.5 may have "
    "65,536: `out of resource: shared memory`.",
    "`oortriage fit --model config.json --gpu T4` says whether the model is one of these; `oortriage patch plan` shows "
    "a tile that fits",
    "https://github.com/vllm-project/vllm/issues/36802; compiled with Triton 3.6.0",
)
CODES = (NO_BF16, BACKEND, TILE)

#: On capability 7.5 in float16: from a release on, up to a release, and what runs. Gaps were not read.
_ON_7_5 = (
    ((0, 5, 4), (0, 7, 3), "XFORMERS (engine V0)"),
    ((0, 8, 0), (0, 10, 0), "XFORMERS: engine V1 refuses the card and V0 takes over"),
    ((0, 10, 2), (0, 11, 0), "FLEX_ATTENTION"),
    ((0, 11, 2), (0, 23, 0), "FLASHINFER for head sizes 64, 128 and 256, else TRITON_ATTN"),
    ((0, 24, 0), (0, 33, 0), "TRITON_ATTN"),
)
_TILE_RELEASES = ((0, 11, 2), (0, 33, 0))


def check(machine: Machine) -> Checked:
    """Look at cards below capability 8.0."""
    reading, installed = machine.nvml, machine.installed
    if reading.unavailable is not None:
        return Checked(not_checked=((TITLE, reading.unavailable.reason),))
    if isinstance(installed, Unread) or not installed.version("vllm"):
        why = installed.reason if isinstance(installed, Unread) else "no vLLM is installed in this environment"
        return Checked(not_checked=((TITLE, why),))
    text = installed.version("vllm")
    version = release(text)[:3]
    facts: dict[str, Any] = {"vllm": text}
    findings: list[Finding] = []
    missed: list[tuple[str, str]] = []
    for one in reading.devices:
        if one.capability is None or one.capability >= (8, 0):
            continue
        subject = f"GPU {one.index}"
        named = f"{one.name}, capability {one.capability[0]}.{one.capability[1]}"
        findings.append(NO_BF16.found(subject, named))
        if one.capability != (7, 5):
            missed.append((f"{subject}: attention backend", "only capability 7.5 was read up in vLLM's sources"))
            continue
        backend = next((what for first, last, what in _ON_7_5 if first <= version <= last), "")
        if backend:
            findings.append(BACKEND.found(subject, f"vLLM {text} on {named} in float16: {backend}"))
        else:
            missed.append((f"{subject}: attention backend", f"vLLM {text} is not among the releases that were read"))
        if _TILE_RELEASES[0] <= version <= _TILE_RELEASES[1]:
            findings.append(TILE.found(subject, f"vLLM {text} on {named}: 81,920 bytes asked, 65,536 there"))
    return Checked(facts, tuple(findings), tuple(missed))
