"""Which part of a run a failure happened in: from its text, its frames, or the last good line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oortriage.evidence.event import Event
from oortriage.intake.traceback import Raised
from oortriage.triage.diagnosis import Phase

#: Functions (and files) of a traceback that settle the phase; the innermost frame that fits wins.
_FRAMES: tuple[tuple[str, Phase], ...] = (
    (r"_dummy_sampler_run|_dummy_pooler_run|kernel_warmup|compile_or_warm_up_model|warmup_kernels", "warmup"),
    (r"capture_model|_capture_cudagraphs|capture_one_batch_size|cuda_graph_runner|init_device_graphs", "graph_capture"),
    (r"^profile_run|determine_available_memory|determine_num_available_blocks|profile_cudagraph_memory", "profile"),
    (r"initialize_kv_cache|initialize_from_config|_initialize_kv_caches|init_memory_pool|_allocate_kv_cache|initialize_cache|get_kv_cache_config", "kv_init"),
    (r"^load_model$|load_weights|from_pretrained|load_state_dict|create_weights|init_torch_distributed|_load_model_and_tokenizer|load_checkpoint", "load"),
    (r"^init_device$", "profile"),
    (r"_engine_run_backward|^backward$|autograd[/\\]", "training_backward"),
    (r"^optimizer_step$|optim[/\\]|adamw?\.py|_init_group|exp_avg", "optimizer"),
    (r"decode", "decode"),
    (r"forward_extend|run_batch|execute_model|prefill|extend_attention|async_generate", "prefill"),
    (r"_inductor|benchmark_choice|precompile|make_launchers|aot_autograd", "compile"),
    (r"training_step|compute_loss|trainer\.py|^train$|train_one_epoch", "training_forward"),
)
_COMPILED = tuple((re.compile(pattern), phase) for pattern, phase in _FRAMES)
_LOSS = re.compile(r"\bloss\w*\b.{0,40}= ?\w|criterion\(")
_OUTRANKED: dict[str, frozenset[str]] = {
    # A profile run executes the model too, and a training step runs a backward pass.
    "prefill": frozenset({"profile", "warmup", "graph_capture"}),
    "load": frozenset({"profile", "warmup", "graph_capture", "kv_init"}),
    "compile": frozenset({"training_forward", "training_backward", "prefill", "profile", "decode"}),
    "training_forward": frozenset({"training_backward", "optimizer"}),
    "decode": frozenset({"profile", "warmup", "graph_capture"}),
}


def phase_of(
    root: Event, companions: Sequence[Event], raised: Raised | None, events: Sequence[Event]
) -> Phase:
    """Tell the phase of the root event; ``unknown`` where nothing in the log says it."""
    for event in (root, *companions):
        if event.phase or event.rule.phase:
            return _as_phase(event.phase or event.rule.phase)
    if raised and (phase := _from_frames(raised)):
        return phase
    before = [
        event
        for event in events
        if event.rule.role == "phase" and event.order <= root.order and not event.line.in_prose
    ]
    own = [event for event in before if event.stream == root.stream]
    last = (own or before)[-1:]
    return _as_phase(last[0].rule.phase) if last else "unknown"


def _from_frames(raised: Raised) -> Phase | None:
    seen: list[Phase] = []
    if any(_LOSS.search(frame.source) for frame in raised.frames):
        seen.append("training_forward")
    for frame in reversed(raised.frames):
        for pattern, phase in _COMPILED:
            if pattern.search(frame.function) or (
                phase in ("training_backward", "optimizer", "compile", "training_forward")
                and pattern.search(frame.file)
            ):
                seen.append(phase)
                break
    for phase in dict.fromkeys(sorted(seen, key=lambda one: one in ("training_forward",))):
        if not _OUTRANKED.get(phase, frozenset()) & set(seen):
            return phase
    return seen[0] if seen else None


def _as_phase(text: str) -> Phase:
    known: tuple[Phase, ...] = (
        "load", "profile", "kv_init", "graph_capture", "warmup", "prefill", "decode",
        "training_forward", "training_backward", "optimizer", "compile",
    )
    return next((phase for phase in known if phase == text), "unknown")
