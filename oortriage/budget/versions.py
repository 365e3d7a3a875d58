"""What differs between vLLM releases in the memory decision, as data; each fact names its source.

A fact holds from one release that was read to another. For a release between two that were read, the rules of the
older one are taken, and :func:`rules_from` says which that was.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from oortriage.errors import UsageError

Release = tuple[int, int, int, int]

#: The releases whose source was read, oldest first.
KNOWN = (
    "0.5.4", "0.6.3", "0.6.3.post1", "0.6.4.post1", "0.6.6.post1", "0.7.3", "0.8.0", "0.8.5", "0.9.0", "0.9.2",
    "0.10.0", "0.10.2", "0.11.0", "0.11.2", "0.12.0", "0.13.0", "0.14.1", "0.15.1", "0.16.0", "0.17.1", "0.18.0",
    "0.19.1", "0.20.0", "0.22.1", "0.23.0", "0.24.0", "0.25.1", "0.28.0", "0.30.0", "0.33.0",
)  # fmt: skip

_VERSION = re.compile(
    r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:\.?post(\d{1,4}))?(?:(?:\.?dev|rc|a|b)\d+)?(?:\+.*)?", re.ASCII
)


class Fact(msgspec.Struct, frozen=True):
    """A value that holds from ``since`` to ``until``, both read (empty: to the newest); ``source``: where it stands."""

    value: str
    since: str
    until: str
    source: str


#: The default of ``--gpu-memory-utilization``, a share of the device's memory.
UTILIZATION = (
    Fact("0.90", "0.5.4", "0.19.1", "vLLM 0.17.1 config/cache.py"),
    Fact("0.92", "0.20.0", "", "vLLM 0.20.0 config/cache.py"),
)

#: What ``--block-size`` takes, in tokens; empty: any positive number.
BLOCK_SIZES = (
    Fact("8 16 32", "0.5.4", "0.6.3.post1", "vLLM 0.6.3.post1 engine/arg_utils.py"),
    Fact("8 16 32 64 128", "0.6.4.post1", "0.8.0", "vLLM 0.7.3 engine/arg_utils.py"),
    Fact("1 8 16 32 64 128", "0.8.5", "0.11.0", "vLLM 0.11.0 config/cache.py"),
    Fact("1 8 16 32 64 128 256", "0.11.2", "0.17.1", "vLLM 0.17.1 config/cache.py"),
    Fact("", "0.18.0", "", "vLLM 0.18.0 config/cache.py"),
)

#: What ``--kv-cache-dtype`` takes: one fact a type.
KV_DTYPES = (
    *(Fact(name, "0.5.4", "", "vLLM 0.5.4 engine/arg_utils.py") for name in ("auto", "fp8", "fp8_e4m3", "fp8_e5m2")),
    Fact("fp8_inc", "0.10.0", "", "vLLM 0.10.0 config.py"),
    Fact("bfloat16", "0.11.0", "", "vLLM 0.11.0 config/cache.py"),
    Fact("fp8_ds_mla", "0.11.2", "", "vLLM 0.12.0 config/cache.py"),
    Fact("float16", "0.18.0", "", "vLLM 0.18.0 config/cache.py"),
    *(
        Fact(name, "0.20.0", "", "vLLM 0.20.0 config/cache.py")
        for name in (
            "int8_per_token_head", "fp8_per_token_head", "nvfp4",
            "turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc",
        )
    ),
    Fact("int4_per_token_head", "0.25.1", "", "vLLM 0.25.1 config/cache.py"),
    Fact("nvfp4_4over6", "0.28.0", "", "vLLM 0.28.0 config/cache.py"),
    Fact("nvfp4_ds_mla", "0.30.0", "", "vLLM 0.30.0 config/cache.py"),
    *(
        Fact(name, "0.33.0", "", "vLLM 0.33.0 config/cache.py")
        for name in ("octave_k3v4", "octave_k3v3", "octave_k3v3_compact", "ultraquant_4bit")
    ),
)  # fmt: skip

#: How the engine checks at start that one request of max_model_len fits (V1).
#: ``per_layer``: the sum over layers, before sliding layers are charged like full ones; ``first_group``: the blocks
#: of the first group stand for all; ``all_groups``: the sum over groups; ``usable``: that, against the pool less its
#: null block.
ADMISSION_USABLE = Fact("usable", "0.30.0", "", "vLLM 0.30.0 v1/core/kv_cache_utils.py get_kv_cache_configs")
ADMISSION = (
    Fact("per_layer", "0.6.4.post1", "0.13.0", "vLLM 0.11.0 v1/core/kv_cache_utils.py check_enough_kv_cache_memory"),
    Fact(
        "first_group", "0.14.1", "0.18.0",
        "vLLM 0.17.1 v1/core/kv_cache_utils.py _max_memory_usage_bytes_from_groups",
    ),
    Fact(
        "all_groups", "0.19.1", "0.28.0",
        "vLLM 0.19.1 v1/core/kv_cache_utils.py _max_memory_usage_bytes_from_groups",
    ),
    ADMISSION_USABLE,
)  # fmt: skip

#: What the line ``GPU KV cache size: N tokens`` counts (V1): ``blocks``: blocks x block size; ``share``: the blocks
#: divided by the groups, x block size, x context parallel; ``served``: concurrency x max_model_len.
TOKENS_SHARE = Fact("share", "0.9.2", "0.20.0", "vLLM 0.17.1 v1/core/kv_cache_utils.py _report_kv_cache_config")
TOKENS_SERVED = Fact("served", "0.22.1", "", "vLLM 0.22.1 v1/core/kv_cache_utils.py _report_kv_cache_config")
TOKEN_COUNT = (
    Fact("blocks", "0.6.4.post1", "0.9.0", "vLLM 0.8.5 v1/core/kv_cache_utils.py"),
    TOKENS_SHARE,
    TOKENS_SERVED,
)

#: Up to which ratio of the most to the fewest layers of a kind a group holds the most; 0: always the fewest.
GROUP_RATIO = (
    Fact("0", "0.9.2", "0.11.2", "vLLM 0.11.0 v1/core/kv_cache_utils.py"),
    Fact("1.25", "0.12.0", "0.17.1", "vLLM 0.17.1 v1/core/kv_cache_utils.py"),
    Fact("1.5", "0.18.0", "", "vLLM 0.18.0 v1/core/kv_cache_utils.py"),
)

#: Whether layers of different page sizes can share a pool: ``no``; ``grow``: the smaller page's block size grows
#: where it divides the larger one; ``pad``: and is padded where it does not.
MIXED_PAGES = (
    Fact("no", "0.6.4.post1", "0.11.2", "vLLM 0.11.0 v1/core/kv_cache_utils.py"),
    Fact("grow", "0.12.0", "0.25.1", "vLLM 0.17.1 v1/core/kv_cache_utils.py unify_kv_cache_spec_page_size"),
    Fact("pad", "0.28.0", "", "vLLM 0.28.0 v1/core/kv_cache_utils.py unify_kv_cache_spec_page_size"),
)

#: The check of free memory before anything is loaded (V1 only).
GATE_SINCE = Fact("start gate", "0.9.2", "", "vLLM 0.9.2 v1/worker/gpu_worker.py")
#: ``--kv-cache-memory-bytes``.
GIVEN_SINCE = Fact("kv_cache_memory_bytes", "0.10.2", "", "vLLM 0.10.2 config/cache.py")
#: CUDA graphs are taken from the budget unless VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS says otherwise.
GRAPHS_CHARGED_SINCE = Fact("charged", "0.20.0", "", "vLLM 0.20.0 envs.py:1724; v1/worker/gpu_worker.py:395-425")
#: ``--max-model-len auto``: the engine fits the length itself.
AUTO_LENGTH_SINCE = Fact("max_model_len auto", "0.14.1", "", "vLLM 0.14.1 v1/core/kv_cache_utils.py")
#: Releases from which something is there (V1 unless said).
HYBRID_SINCE = Fact("hybrid KV cache manager", "0.9.2", "", "vLLM 0.9.2 v1/core/kv_cache_utils.py")
SLIDING_SINCE = Fact("a spec of its own for sliding windows", "0.8.5", "", "vLLM 0.8.5 v1/kv_cache_interface.py")
CHUNKED_SINCE = Fact("a spec of its own for chunked attention", "0.10.0", "", "vLLM 0.10.0 v1/kv_cache_interface.py")
CHUNKED_OFF_SINCE = Fact(
    "chunked attention turns the hybrid manager off unless VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE=1",
    "0.10.2", "", "vLLM 0.17.1 config/vllm.py",
)  # fmt: skip
MIXED_WIDTHS_SINCE = Fact(
    "layers of one kind and several widths", "0.11.0", "", "vLLM 0.11.0 v1/core/kv_cache_utils.py"
)
IN_FLIGHT_SINCE = Fact("windows count every batch in flight", "0.28.0", "", "vLLM 0.28.0 v1/kv_cache_interface.py")
OVERRIDE_CHECKED_SINCE = Fact(
    "the start check sees num_gpu_blocks_override", "0.22.1", "", "vLLM 0.22.1 v1/core/kv_cache_utils.py"
)
MLA_SINCE = Fact("MLA keeps one compressed vector", "0.7.3", "", "vLLM 0.7.3 config.py, worker/cache_engine.py")
MLA_V1_SINCE = Fact("V1 runs MLA", "0.8.0", "", "vLLM 0.8.0 v1/kv_cache_interface.py")
STATE_V1_SINCE = Fact("V1 keeps states of layers without attention", "0.9.2", "", "vLLM 0.9.2 v1/kv_cache_interface.py")
#: Models that the release refuses to run in float16, and falls back from to float32 on a card without bfloat16.
NO_FLOAT16 = ("gemma2", "gemma3", "gemma3_text", "glm4", "plamo2")
NO_FLOAT16_SINCE = Fact(
    "some models refuse float16", "0.9.2", "", "vLLM 0.17.1 config/model.py _FLOAT16_NOT_SUPPORTED_MODELS"
)
STATE_ALIGN_SINCE = Fact(
    "prefix caching is on by default for models with states beside attention: a state takes two blocks a request",
    "0.28.0", "", "vLLM 0.28.0 config/model.py is_prefix_caching_supported, model_executor/models/config.py",
)  # fmt: skip
INDEXER_SINCE = Fact("the sparse indexer has a cache", "0.11.0", "", "vLLM 0.17.1 model_executor/models/deepseek_v2.py")
DEALT_SINCE = Fact(
    "layers are dealt out to groups in turn, and one report serves every layout", "0.11.0", "",
    "vLLM 0.11.0 v1/core/kv_cache_utils.py _get_kv_cache_groups_uniform_page_size",
)  # fmt: skip
WHOLE_CHECK = Fact(
    "the start check asks one stage's memory for the layers of all stages", "0.14.1", "0.16.0",
    "vLLM 0.16.0 v1/core/kv_cache_utils.py get_kv_cache_configs",
)  # fmt: skip
WHOLE_PAGES = Fact(
    "layers of several widths: a block on one stage is as large as on all stages together", "0.11.0", "0.16.0",
    "vLLM 0.12.0 v1/core/kv_cache_utils.py get_kv_cache_configs",
)  # fmt: skip
SPREAD_SINCE = Fact(
    "layers that pipeline stages do not divide go to the stages before the last", "0.8.0", "",
    "vLLM 0.8.0 distributed/utils.py get_pp_indices",
)  # fmt: skip
PIPELINE_CHECK_SINCE = Fact("V0 divides its blocks by the stages", "0.8.0", "", "vLLM 0.8.5 worker/worker.py")

#: Engines: V0 until, V1 from, and the default.
V1_SINCE, V1_DEFAULT_SINCE, V0_UNTIL = "0.6.4.post1", "0.8.0", "0.10.2"


def release(version: str) -> Release:
    """Turn ``0.6.3.post1`` into numbers that compare: major, minor, patch, post.

    Raises:
        UsageError: it is no version.
    """
    found = _VERSION.fullmatch(version.strip())
    if not found:
        raise UsageError(f"{version[:40]!r} is no vLLM release; write --vllm 0.17.1")
    return (int(found[1]), int(found[2]), int(found[3] or 0), int(found[4] or 0))


def rules_from(version: str) -> str:
    """Name the release whose rules hold for ``version``: itself where it was read, else the next older one read.

    Raises:
        UsageError: it is no version, or older than any that was read.
    """
    wanted = release(version)
    older = [one for one in KNOWN if release(one) <= wanted]
    if not older:
        raise UsageError(f"vLLM {version}: the rules are known from {KNOWN[0]} on")
    return older[-1]


def between(version: str) -> str:
    """Say in a sentence where the rules of a release were taken from; empty where it was read itself."""
    taken = rules_from(version)
    if release(taken) == release(version):
        return ""
    after = " and is newer than any that was read" if taken == KNOWN[-1] else ""
    return f"vLLM {version} was not read{after}: the rules of {taken} were taken"


def holds(version: str, fact: Fact) -> bool:
    """Tell whether a fact holds in a release."""
    taken = release(rules_from(version))
    return release(fact.since) <= taken and (not fact.until or taken <= release(fact.until))


def fact(version: str, facts: tuple[Fact, ...]) -> Fact:
    """Return the fact of a topic that holds in a release; the first one for a release older than the topic.

    Raises:
        UsageError: it is no version, or older than any that was read.
    """
    return next((one for one in reversed(facts) if holds(version, one)), facts[0])


def default_utilization(version: str) -> float:
    """Return the default of ``--gpu-memory-utilization``: a share of the device's memory."""
    return float(fact(version, UTILIZATION).value)


def block_size_choices(version: str) -> tuple[int, ...]:
    """Return what ``--block-size`` takes, in tokens; empty: any positive number."""
    return tuple(map(int, fact(version, BLOCK_SIZES).value.split()))


def kv_dtypes(version: str) -> tuple[str, ...]:
    """Return what ``--kv-cache-dtype`` takes."""
    return tuple(one.value for one in KV_DTYPES if holds(version, one))


def default_engine(version: str) -> Literal["V0", "V1"]:
    """Return the engine that runs unless a variable or an unsupported feature says otherwise."""
    return "V1" if release(rules_from(version)) >= release(V1_DEFAULT_SINCE) else "V0"


def has_engine(version: str, engine: str) -> bool:
    """Tell whether a release has an engine."""
    taken = release(rules_from(version))
    return taken >= release(V1_SINCE) if engine == "V1" else taken <= release(V0_UNTIL)
