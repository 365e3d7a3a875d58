"""Which part of a run a failure happened in: from its text, its frames, or the last good line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import get_args

from oortriage.evidence.event import Event
from oortriage.intake.line import Kind
from oortriage.intake.log import Log
from oortriage.intake.traceback import Raised
from oortriage.triage.diagnosis import Phase

#: What settles the phase in a traceback: a pattern on ``file function``; the innermost frame wins.
_FRAMES: tuple[tuple[str, Phase], ...] = (
    (
        r" (?:_dummy_sampler_run|_dummy_pooler_run|kernel_warmup|compile_or_warm_up_model|warm_?up\w*)$",
        "warmup",
    ),
    (
        (
            r"cuda_graph_runner|cudagraph_utils| (?:capture_model|_capture_cudagraphs|capture_one_batch_size"
            r"|init_device_graphs)$"
        ),
        "graph_capture",
    ),
    (
        (
            r" (?:profile_run|determine_available_memory|determine_num_available_blocks|profile_cudagraph_memory"
            r"|profile_num_available_blocks|init_device)$"
        ),
        "profile",
    ),
    (
        (
            r" (?:initialize_kv_cache|initialize_from_config|_initialize_kv_caches|init_memory_pool|_allocate_kv_cache"
            r"|initialize_cache|_init_cache|get_kv_cache_configs?|_allocate_kv_cache_tensors)$"
        ),
        "kv_init",
    ),
    (
        (
            r" (?:_?load_(?:model|weights?|state_dict|checkpoint|pretrained)\w*|from_pretrained|create_weights"
            r"|_load_from_state_dict|restore_location)$|torch[/\\]serialization|module\.py (?:to|convert|cuda|_apply)$"
        ),
        "load",
    ),
    (r"autograd[/\\]| (?:\w*_)?backward(?:_\w*)?$|_engine_run_backward", "training_backward"),
    (r"optim[/\\]|adamw?\.py| (?:optimizer_step|_init_group)$", "optimizer"),
    (r" (?!decode_first_stage|decode_latents|\w*vae)(?:\w*decode\w*|sample_tokens)$", "decode"),
    (
        r"prefix_prefill| (?:forward_extend|run_batch|execute_model|\w*prefill\w*|\w*extend_attention\w*)$",
        "prefill",
    ),
    (r"_inductor| (?:benchmark_choice|precompile\w*|_?make_launchers|aot_autograd)$", "compile"),
    (r"trainer\.py| (?:training_step|compute_loss|train|train_one_epoch)$", "training_forward"),
    (r"generation[/\\]utils\.py| generate$", "prefill"),
    (r"(?:^|[/\\])train\w*\.py (?!<module>)| (?:train_and_evaluate|fit)$", "training_forward"),
)
#: What settles it in a frame's line of source.
_SOURCES: tuple[tuple[re.Pattern[str], Phase], ...] = (
    (re.compile(r"\.backward\("), "training_backward"),
    (re.compile(r"\boptim\w*\.step\("), "optimizer"),
    (re.compile(r"\.generate\("), "prefill"),
    (re.compile(r"\.to\((?:device|[\"']cuda|\w+\.device)|\.cuda\(|from_pretrained\("), "load"),
)
_INNERMOST = 4
_RERAISED_WITHIN = 60
_COMPILED = tuple((re.compile(pattern), phase) for pattern, phase in _FRAMES)
_TRAINS = re.compile(
    r"\b(?:epoch|step|iter(?:ation)?)s?\b[\s:=\[/]*\d.{0,80}\b(?:loss|lr|grad)|\bloss[ :=]+[\d.]|"
    r"^Epoch\b|\bepoch \d+\b.*it/s|\bthe training\b|\btrain(?:ing)? (?:started|begins?)",
    re.IGNORECASE,
)
#: One of these is in all that ``_TRAINS`` finds; to look for them takes a tenth of its time.
_TRAIN_WORDS = ("epoch", "step", "iter", "loss", "train")
_WORDS: tuple[tuple[re.Pattern[str], Phase], ...] = (
    (re.compile(r"\bdecode (?:stage|step|batch|out)|during decod", re.IGNORECASE), "decode"),
    (re.compile(r"\bprefill (?:task|step|batch|out)|during prefill", re.IGNORECASE), "prefill"),
)
_HINTS: tuple[tuple[re.Pattern[str], Phase], ...] = (
    (re.compile(r"\bprefill\b", re.IGNORECASE), "prefill"),
    (re.compile(r"\bwarm-?up\b(?!\s*[=(])", re.IGNORECASE), "warmup"),
    (
        re.compile(r"\bloading:? (?:the )?(?:model|weights|checkpoint)|failed to load '", re.IGNORECASE),
        "load",
    ),
)
_LOADING: tuple[tuple[re.Pattern[str], Phase], ...] = (
    (
        re.compile(
            r"\bloading:? (?:the )?(?:model|weights|checkpoint|shard)|failed to load '|Error loading \"|state_dicts\b|"
            r"checkpoint shards|\bloading \w+ from ",
            re.IGNORECASE,
        ),
        "load",
    ),
)
_LOSS = re.compile(r"\bloss\w*\b.{0,40}= ?\w|criterion\(")
_OUTRANKED: dict[str, frozenset[str]] = {
    # A profile run executes the model too, and a training step runs a backward pass.
    "prefill": frozenset({"profile", "warmup", "graph_capture"}),
    "load": frozenset({"profile", "warmup", "graph_capture", "kv_init"}),
    "compile": frozenset({"training_forward", "training_backward", "prefill", "profile", "decode"}),
    "training_forward": frozenset(
        {"training_backward", "optimizer", "prefill", "decode", "profile", "load", "graph_capture"}
    ),
    "decode": frozenset({"profile", "warmup", "graph_capture"}),
}


def phase_of(
    log: Log,
    root: Event,
    companions: Sequence[Event],
    raised: Raised | None,
    events: Sequence[Event],
    since: int = 0,
) -> Phase:
    """Tell the phase of the root event; ``unknown`` where nothing in the log says it.

    The message itself speaks first, then the frames, then the last line that began a phase.
    ``compile`` speaks last: kernels are compiled in the middle of every other phase. Lines before
    position ``since`` belong to an earlier run.
    """
    told = [_as_phase(event.phase or event.rule.phase) for event in (root, *companions)]
    framed = _from_frames(raised) if raised else "unknown"
    told.append(framed)
    told += _nearby(log, root, _WORDS, 0)
    if framed == "unknown":
        told += [_from_frames(one) for one in _just_before(log, root)]
    begun = [
        event
        for event in events
        if event.rule.role == "phase" and since <= event.order <= root.order and not event.line.in_prose
    ]
    told += [_as_phase(event.rule.phase) for event in reversed(begun)][:1]
    told += _nearby(log, root, _HINTS, 3) + _nearby(log, root, _LOADING, 12)
    if _trains(log, root):
        told.append("training_forward")
    plain = [phase for phase in told if phase not in ("unknown", "compile")]
    return plain[0] if plain else "compile" if "compile" in told else "unknown"


def _nearby(log: Log, root: Event, words: Sequence[tuple[re.Pattern[str], Phase]], before: int) -> list[Phase]:
    """Look for a phase's own word in the message's line, the one after it and some before."""
    lines = log.lines[max(0, root.order - before) : root.last_order + 2]
    spoken = (line.body for line in lines if not line.in_prose and line.kind in (Kind.MESSAGE, Kind.EXCEPTION))
    text = " ".join(spoken)
    return [phase for word, phase in words if word.search(text)]


def _just_before(log: Log, root: Event) -> list[Raised]:
    """List the tracebacks that end shortly before the root: the outer part of a re-raised one."""
    return [
        raised
        for stream in log.streams
        if stream.name == root.stream
        for raised in stream.raised
        if 0 < root.order - stream.lines[raised.last].order <= _RERAISED_WITHIN
    ]


def _trains(log: Log, root: Event) -> bool:
    before = (line.body for line in log.lines if line.order < root.order and line.kind is Kind.MESSAGE)
    return any(_TRAINS.search(body) for body in before if any(word in body.lower() for word in _TRAIN_WORDS))


def _from_frames(raised: Raised) -> Phase:
    seen: list[Phase] = []
    if any(_LOSS.search(frame.source) for frame in raised.frames):
        seen.append("training_forward")
    # A frame of the user's script may do everything in one line; then only inner frames tell.
    traced = any("_dynamo" in frame.file for frame in raised.frames)
    for depth, frame in enumerate(reversed(raised.frames)):
        seen += [
            phase
            for pattern, phase in _SOURCES
            if pattern.search(frame.source) and (depth < _INNERMOST or not (traced or phase == "load"))
        ]
        for pattern, phase in _COMPILED:
            if pattern.search(f"{frame.file} {frame.function}"):
                seen.append(phase)
                break
    for phase in dict.fromkeys(sorted(seen, key=lambda one: one == "training_forward")):
        if not _OUTRANKED.get(phase, frozenset()) & set(seen):
            return phase
    return seen[0] if seen else "unknown"


def _as_phase(text: str) -> Phase:
    return next((phase for phase in get_args(Phase) if phase == text), "unknown")
