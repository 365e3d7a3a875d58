"""LT4xx: settings that contradict each other, or of which one makes the other idle."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oortriage.lint.checks._interface import Case, Check, Hit
from oortriage.lint.unit import Setting

_ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_EXPANDABLE = re.compile(r"expandable_segments\s*:\s*true", re.IGNORECASE)
#: A share from which on less is left than graphs take: 3 % of 80 GiB are 2.4 GiB.
_ALMOST_ALL = 0.97
#: V0 reads up to this many tokens in one go without chunked prefill; above, it turns that on itself.
_V0_CHUNKS = 32_768


def _expandable(case: Case) -> Setting | None:
    for name in _ALLOCATOR:
        setting = case.settings.get(name)
        if setting is not None and _EXPANDABLE.search(setting.value):
            return setting
    return None


def _sleep(case: Case) -> Iterator[Hit]:
    setting, sleep = _expandable(case), case.on("--enable-sleep-mode")
    if setting and sleep:
        text = (
            "sleep mode's memory pool refuses expandable segments: AssertionError `Expandable segments are not "
            "compatible with memory pool.`; take one of the two out"
        )
        yield Hit(f"{setting.name}={setting.value} with --enable-sleep-mode", text, setting.line, "0.8.0", "0.20.0")


def _connector(case: Case) -> Iterator[Hit]:
    setting = _expandable(case)
    transfer = case.option("--kv-transfer-config")
    exempt = case.on("--enable-sleep-mode") or case.on("--enable-cumem-allocator")
    if setting and transfer and not exempt and not case.off("--kv-transfer-config"):
        text = (
            "a KV connector refuses expandable segments, which may move the cache it has registered: ValueError `KV "
            "connector ... is incompatible with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`"
        )
        if setting.name != "PYTORCH_CUDA_ALLOC_CONF":
            text += f"; vLLM looks for that variable alone, so that {setting.name} passes the test and not the danger"
        yield Hit(f"{setting.name}={setting.value} with --kv-transfer-config", text, setting.line, "0.21.0")


def _model(case: Case) -> Iterator[Hit]:
    made, option = case.invocation, case.option("--model")
    if made is None or made.program != "serve" or option is None:
        return
    if case.release.text == "0.5.4":
        yield Hit(
            "--model", "is overwritten by the model that stands after `vllm serve`", option.line, "0.5.4", "0.5.4"
        )
    elif case.at("0.5.5", "0.8.2"):
        text = "vllm serve ends with a ValueError: the model stands as a word of its own, `vllm serve MODEL`"
        yield Hit("--model", text, option.line, "0.5.5", "0.8.2", severity="error")
    elif case.at("0.8.3", "0.11.0"):
        which = "is ignored with a warning: the model after `vllm serve` counts" if made.positional else "is taken"
        text = f"{which}; vLLM asks to write `vllm serve MODEL`"
        yield Hit("--model", text, option.line, "0.8.3", "0.11.0")
    else:
        twice = ", where a model stands already: the two make one word too many" if made.positional else ""
        text = f"is put after `vllm serve` with a warning{twice}; write `vllm serve MODEL`"
        yield Hit("--model", text, option.line, "0.11.1", severity="error" if made.positional else None)


def _no_model(case: Case) -> Iterator[Hit]:
    made = case.invocation
    if made is None or made.program != "serve" or made.positional or case.option("--model") or case.option("--config"):
        return
    if case.option("--help") or any(word.open for word in case.unit.words[-1:]):
        return
    if case.at(until="0.8.2"):
        text = "vllm serve needs the model as its first word"
        yield Hit("vllm serve", text, case.line, until="0.8.2")


def _sequences(case: Case) -> Iterator[Hit]:
    tokens, sequences = case.number("--max-num-batched-tokens"), case.number("--max-num-seqs")
    option = case.option("--max-num-batched-tokens")
    if option and tokens is not None and sequences is not None and tokens < sequences:
        text = f"{tokens:,.0f} tokens a step cannot serve {sequences:,.0f} sequences; vLLM ends with a ValueError"
        yield Hit("--max-num-batched-tokens < --max-num-seqs", text, option.line)


def _chunks(case: Case) -> Iterator[Hit]:
    tokens, length = case.number("--max-num-batched-tokens"), case.number("--max-model-len")
    option = case.option("--max-num-batched-tokens")
    if option is None or tokens is None or length is None or tokens >= length:
        return
    off = case.off("--enable-chunked-prefill")
    chunked = case.option("--enable-chunked-prefill")
    opted = case.settings.get("VLLM_USE_V1")
    first = case.at(until="0.7.3") and (opted is None or opted.value == "0")
    silent = first and chunked is None and length <= _V0_CHUNKS
    if off or silent:
        why = "chunked prefill is switched off" if off else "this release does not chunk prefill by itself"
        text = f"{tokens:,.0f} tokens a step hold no prompt of {length:,.0f} and {why}; vLLM ends with a ValueError"
        yield Hit("--max-num-batched-tokens < --max-model-len", text, option.line)


def _kv_bytes(case: Case) -> Iterator[Hit]:
    share, size = case.option("--gpu-memory-utilization"), case.option("--kv-cache-memory-bytes")
    if share and size and (size.value or "").lower() != "none":
        text = "is ignored: --kv-cache-memory-bytes sets the KV cache's size, and nothing tests that it fits"
        yield Hit(f"--gpu-memory-utilization {share.value or ''}".strip(), text, share.line, "0.10.2")


def _swap(case: Case) -> Iterator[Hit]:
    option = case.option("--swap-space")
    if option and case.surface.flags.get("--swap-space"):
        text = "has no effect: only the V0 engine swapped to CPU memory, and this release has V1 alone"
        yield Hit("--swap-space", text, option.line, "0.11.0", "0.17.1")


def _block_manager(case: Case) -> Iterator[Hit]:
    option = case.option("--use-v2-block-manager")
    if option and case.surface.flags.get(option.name):
        text = "has no effect: the first block manager is gone, and the second one is always used"
        yield Hit(option.name, text, option.line, "0.6.3.post1", "0.9.2")


def _old_engine(case: Case) -> Iterator[Hit]:
    setting = case.settings.get("VLLM_USE_V1")
    if setting is not None and not setting.open and setting.value.strip() == "0":
        text = "asks for the V0 engine, which this release does not have any more"
        yield Hit("VLLM_USE_V1=0", text, setting.line, "0.11.0", "0.11.0")


def _eager(case: Case) -> Iterator[Hit]:
    eager = case.on("--enforce-eager")
    for name in ("--cudagraph-capture-sizes", "--max-cudagraph-capture-size", "--cuda-graph-sizes",
                 "--max-seq-len-to-capture"):  # fmt: skip
        option = case.option(name)
        if eager and option:
            yield Hit(name, "has no effect: --enforce-eager captures no CUDA graph", option.line)


def _devices(case: Case) -> Iterator[Hit]:
    setting = case.settings.get("CUDA_VISIBLE_DEVICES")
    tensor, pipeline = (case.number(f"--{one}-parallel-size") or 1 for one in ("tensor", "pipeline"))
    nodes = case.number("--nnodes") or 1
    ray = case.option("--distributed-executor-backend")
    if setting is None or setting.open or case.invocation is None or nodes > 1 or (ray and ray.value == "ray"):
        return
    visible = [one for one in setting.value.split(",") if one.strip()]
    if not setting.value.strip() or "-1" in visible or tensor * pipeline <= len(visible):
        return
    text = f"{tensor * pipeline:.0f} ranks (tensor x pipeline) need as many cards, and {len(visible)} are visible"
    yield Hit(f"CUDA_VISIBLE_DEVICES={setting.value}", text, setting.line)


def _tools(case: Case) -> Iterator[Hit]:
    choice = case.on("--enable-auto-tool-choice")
    if choice and not case.option("--tool-call-parser"):
        yield Hit(choice.name, "needs --tool-call-parser; vLLM ends with a TypeError", choice.line, "0.6.0")


def _level(case: Case) -> Iterator[Hit]:
    option = case.option("--optimization-level")
    if option and option.written == "-O":
        text = (
            "sets --optimization-level here; up to 0.11.2 it was another name of --compilation-config, and a number "
            "its level"
        )
        yield Hit(f"-O{option.value or ''}", text, option.line, "0.12.0")


def _estimate(case: Case) -> Iterator[Hit]:
    setting = case.settings.get("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS")
    if setting is None or setting.open:
        return
    if setting.value.strip() == "0":
        text = (
            "leaves CUDA graphs out of the budget, as was the default up to 0.19.1: they must fit beside the share of "
            "--gpu-memory-utilization"
        )
    else:
        text = "is the default since 0.20.0: the graphs' estimate is taken off the KV cache"
    yield Hit(f"{setting.name}={setting.value}", text, setting.line, "0.20.0")


def _full(case: Case) -> Iterator[Hit]:
    option, share = case.option("--gpu-memory-utilization"), case.number("--gpu-memory-utilization")
    if option and share is not None and _ALMOST_ALL <= share <= 1 and not case.on("--enforce-eager"):
        text = (
            "leaves CUDA graphs no room: this release captures them after the KV cache, outside the share; a start "
            "that ends with `out of memory` while capturing comes from here"
        )
        yield Hit(f"{option.name} {option.value}", text, option.line)


CHECKS = (
    Check(
        "LT401",
        "error",
        "Expandable segments with sleep mode",
        "PyTorch's allocator setting and vLLM's sleep mode exclude each other from 0.8.0 to 0.20.0.",
        "vLLM 0.8.0 to 0.20.0 device_allocator/cumem.py",
        _sleep,
        "0.8.0",
        "0.20.0",
    ),
    Check(
        "LT402",
        "error",
        "Expandable segments with a KV connector",
        "Refused from 0.21.0 on, unless sleep mode or --enable-cumem-allocator gives the cache a pool of its own.",
        "vLLM 0.22.1 config/vllm.py:790-823",
        _connector,
        "0.21.0",
    ),
    Check(
        "LT403",
        "warning",
        "`--model` with `vllm serve`",
        "0.5.5 to 0.8.2 end with a ValueError (an error here); later releases warn, and from 0.11.1 on move the model.",
        "vLLM 0.7.3 entrypoints/cli/serve.py:25-29; 0.17.1 utils/argparse_utils.py:187-218",
        _model,
    ),
    Check(
        "LT404",
        "error",
        "`vllm serve` without a model",
        "Up to 0.8.2 the model's place may not be empty.",
        "vLLM 0.7.3 entrypoints/cli/serve.py:46",
        _no_model,
        "",
        "0.8.2",
    ),
    Check(
        "LT405",
        "error",
        "Fewer tokens a step than sequences",
        "`--max-num-batched-tokens` below `--max-num-seqs`.",
        "vLLM config.py and config/scheduler.py of every release from 0.5.4 to 0.33.0",
        _sequences,
    ),
    Check(
        "LT406",
        "error",
        "Fewer tokens a step than the longest prompt, without chunked prefill",
        "The V1 engine chunks prefill unless told not to; V0 did so only when asked, or above 32,768 tokens. Between "
        "0.8.0 and 0.10.2 it is asked only where the command switches chunking off.",
        "vLLM 0.6.3.post1 config.py:988-1003; 0.17.1 config/scheduler.py:252-262",
        _chunks,
    ),
    Check(
        "LT407",
        "warning",
        "A memory share beside a fixed KV size",
        "`--kv-cache-memory-bytes` is taken as it is.",
        "vLLM 0.10.2 v1/worker/gpu_worker.py",
        _kv_bytes,
        "0.10.2",
    ),
    Check(
        "LT408",
        "warning",
        "`--swap-space` without the V0 engine",
        "The option stayed until 0.17.1 and did nothing.",
        "vLLM 0.11.0 has no V0 scheduler",
        _swap,
        "0.11.0",
        "0.17.1",
    ),
    Check(
        "LT409",
        "info",
        "`--use-v2-block-manager` after the first one went",
        "The option stayed until 0.9.2.",
        "vLLM 0.6.3.post1 engine/arg_utils.py",
        _block_manager,
        "0.6.3.post1",
        "0.9.2",
    ),
    Check(
        "LT410",
        "warning",
        "`VLLM_USE_V1=0` without a V0 engine",
        "0.11.0 still defines the variable; later releases do not (see LT202).",
        "vLLM 0.11.0 envs.py",
        _old_engine,
        "0.11.0",
        "0.11.0",
    ),
    Check(
        "LT411",
        "warning",
        "Sizes of CUDA graphs that are switched off",
        "`--enforce-eager` captures none.",
        "vLLM 0.17.1 config/vllm.py:1310-1410",
        _eager,
    ),
    Check(
        "LT412",
        "error",
        "More ranks than visible cards",
        "Asked for one node and without Ray.",
        "CUDA reads CUDA_VISIBLE_DEVICES once, when it starts",
        _devices,
    ),
    Check(
        "LT413",
        "error",
        "Automatic tool choice without a parser",
        "`--enable-auto-tool-choice` needs `--tool-call-parser`.",
        "vLLM 0.6.3 entrypoints/openai/cli_args.py:244",
        _tools,
        "0.6.3",
    ),
    Check(
        "LT414",
        "info",
        "`-O` that changed its meaning",
        "From 0.12.0 on a number after `-O` is the optimization level, no more the level of `--compilation-config`.",
        "vLLM 0.11.0 engine/arg_utils.py:934; 0.12.0 utils/argparse_utils.py:247-270",
        _level,
        "0.12.0",
    ),
    Check(
        "LT415",
        "info",
        "An estimate of CUDA graphs whose default changed",
        "`VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS` came with 0.18.0, off; from 0.20.0 on it is on.",
        "vLLM 0.19.1 envs.py:1655; 0.20.0 envs.py:1725",
        _estimate,
        "0.20.0",
    ),
    Check(
        "LT416",
        "info",
        "A memory share that leaves nothing for CUDA graphs",
        "Up to 0.19.1 their memory is no part of the budget; from 0.20.0 on an estimate is taken off the KV cache.",
        "vLLM 0.17.1 v1/worker/gpu_worker.py:384-409; 0.20.0 v1/worker/gpu_worker.py:395-425",
        _full,
        "",
        "0.19.1",
    ),
)
