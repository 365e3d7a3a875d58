"""The shipped table: its ranges against those found by hand, and versions between and beyond those read."""

from __future__ import annotations

import functools

import msgspec
import pytest

from oortriage.errors import UsageError
from oortriage.lint.surface import Flag, Surface
from oortriage.lint.tables import build, tables
from oortriage.lint.versions import Release

#: The releases whose trees were searched by hand; the table has read 38 more.
HAND = [
    "0.5.4",
    "0.6.3",
    "0.6.3.post1",
    "0.6.4.post1",
    "0.6.6.post1",
    "0.7.3",
    "0.8.0",
    "0.8.5",
    "0.9.0",
    "0.9.2",
    "0.10.0",
    "0.10.2",
    "0.11.0",
    "0.11.2",
    "0.12.0",
    "0.13.0",
    "0.14.1",
    "0.15.1",
    "0.16.0",
    "0.17.1",
    "0.18.0",
    "0.19.1",
    "0.20.0",
    "0.22.1",
    "0.23.0",
    "0.24.0",
    "0.25.1",
    "0.28.0",
    "0.30.0",
    "0.33.0",
]
#: The first and the last of those that have a name.
BY_HAND = [
    ("--gpu-memory-utilization", "0.5.4", ""),
    ("--kv-cache-memory-bytes", "0.10.2", ""),
    ("--kv-cache-dtype", "0.5.4", ""),
    ("--kv-cache-dtype-skip-layers", "0.19.1", ""),
    ("--block-size", "0.5.4", ""),
    ("--num-gpu-blocks-override", "0.5.4", ""),
    ("--max-seq-len-to-capture", "0.5.4", "0.10.2"),
    ("--cuda-graph-sizes", "0.9.0", "0.12.0"),
    ("--cudagraph-capture-sizes", "0.11.2", ""),
    ("--max-cudagraph-capture-size", "0.11.2", ""),
    ("--compilation-config", "0.6.6.post1", ""),
    ("--optimization-level", "0.12.0", ""),
    ("--disable-hybrid-kv-cache-manager", "0.9.2", ""),
    ("--attention-backend", "0.13.0", ""),
    ("--attention-config", "0.13.0", ""),
    ("--cpu-offload-gb", "0.5.4", ""),
    ("--offload-backend", "0.17.1", ""),
    ("--swap-space", "0.5.4", "0.17.1"),
    ("--preemption-mode", "0.5.4", "0.10.2"),
    ("--kv-offloading-size", "0.11.2", ""),
    ("--quantization-param-path", "0.5.4", "0.6.6.post1"),
    ("--calculate-kv-scales", "0.7.3", "0.25.1"),
    ("--use-v2-block-manager", "0.5.4", "0.9.2"),
    ("--num-scheduler-steps", "0.6.3", "0.10.0"),
    ("--enable-sleep-mode", "0.7.3", ""),
    ("--enable-chunked-prefill", "0.5.4", ""),
    ("--enable-prefix-caching", "0.5.4", ""),
    ("--async-scheduling", "0.10.0", ""),
    ("--limit-mm-per-prompt", "0.6.3", ""),
    ("--language-model-only", "0.17.1", ""),
    ("--decode-context-parallel-size", "0.10.2", ""),
    ("--mm-ipc-gpu-memory-gb", "0.25.1", ""),
    ("--scheduler-reserve-full-isl", "0.19.1", ""),
    ("--watermark", "0.24.0", ""),
    ("--mamba-block-size", "0.11.2", ""),
    ("--mamba-cache-mode", "0.15.1", ""),
    ("--performance-mode", "0.17.1", ""),
    ("--fail-on-environ-validation", "0.17.1", ""),
    ("VLLM_ATTENTION_BACKEND", "0.5.4", "0.14.1"),
    ("VLLM_USE_V1", "0.6.4.post1", "0.11.0"),
    ("VLLM_USE_TRITON_FLASH_ATTN", "0.5.4", "0.11.0"),
    ("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", "0.18.0", ""),
    ("VLLM_LOGGING_LEVEL", "0.5.4", ""),
    ("VLLM_PLUGINS", "0.6.3", ""),
    ("VLLM_SKIP_P2P_CHECK", "0.6.3", ""),
    ("VLLM_TORCH_PROFILER_DIR", "0.6.3", "0.15.1"),
    ("VLLM_TORCH_PROFILER_WITH_PROFILE_MEMORY", "0.10.2", "0.15.1"),
    ("VLLM_KV_CACHE_LAYOUT", "0.9.2", ""),
    ("VLLM_CUDA_MEM_ALIGN_KV_CACHE", "0.7.3", "0.7.3"),
    ("VLLM_USE_V2_MODEL_RUNNER", "0.12.0", ""),
    ("VLLM_TRITON_USE_TD", "0.28.0", ""),
    ("vllm.entrypoints.api_server", "0.5.4", "0.24.0"),
    ("attention_backend", "0.13.0", ""),
]
BLOCKS = {
    "0.5.4": "8 16 32", "0.6.3.post1": "8 16 32", "0.6.4.post1": "8 16 32 64 128", "0.8.0": "8 16 32 64 128",
    "0.8.5": "1 8 16 32 64 128", "0.11.0": "1 8 16 32 64 128", "0.11.2": "1 8 16 32 64 128 256",
    "0.17.1": "1 8 16 32 64 128 256", "0.18.0": "", "0.33.0": "",
}  # fmt: skip
KV_DTYPES = [
    ("fp8", "0.5.4"), ("fp8_e4m3", "0.5.4"), ("fp8_inc", "0.10.0"), ("bfloat16", "0.11.0"), ("float16", "0.18.0"),
    ("nvfp4", "0.20.0"), ("turboquant_k8v4", "0.20.0"), ("nvfp4_4over6", "0.28.0"), ("nvfp4_ds_mla", "0.30.0"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "first", "last"), BY_HAND)
def test_ranges_agree_with_those_found_by_hand(name: str, first: str, last: str) -> None:
    has = [one for one in HAND if name in everything(one)]
    wanted = HAND[HAND.index(first) : HAND.index(last or HAND[-1]) + 1]
    assert has == wanted


@functools.cache
def everything(version: str) -> frozenset[str]:
    made = tables().surface(version)
    return frozenset({*made.flags, *made.variables, *made.keywords, *made.modules})


@pytest.mark.parametrize("version", BLOCKS)
def test_block_sizes_are_those_of_the_release(version: str) -> None:
    flag = tables().surface(version).flags["--block-size"]
    assert (" ".join(flag.choices), flag.kind) == (BLOCKS[version], "choice" if BLOCKS[version] else "int")


@pytest.mark.parametrize(("value", "since"), KV_DTYPES)
def test_types_of_the_cache_came_when_they_came(value: str, since: str) -> None:
    assert tables().value_span("--kv-cache-dtype", value) == (since, "")


def test_the_default_share_changed_in_0_20() -> None:
    spans = tables().flags["--gpu-memory-utilization"]
    assert {one.flag.default for one in spans if Release(one.since) >= Release("0.20.0")} == {"0.92"}
    assert "0.92" not in {one.flag.default for one in spans if Release(one.since) < Release("0.20.0")}


def test_the_number_of_variables_is_that_of_envs_py() -> None:
    assert [len(tables().surface(one).variables) for one in ("0.6.3", "0.17.1", "0.33.0")] == [65, 232, 318]


def test_every_release_was_read_and_stands_in_order() -> None:
    read = tables().read
    assert len(read) >= 60
    assert list(read) == sorted(read, key=Release)
    assert {"0.5.4", "0.6.3.post1", "0.17.1", "0.33.0"} <= set(read)


def test_the_texts_name_the_releases_that_were_read() -> None:
    """Who reads more releases must change what the checks and the page say of them."""
    from oortriage.lint.checks import CHECKS
    from oortriage.lint.reference import reference

    first, last = tables().read[0], tables().read[-1]
    texts = [reference(), *(one.source for one in CHECKS if "every" in one.source)]
    assert len(texts) > 5
    assert all(f"{first} to {last}" in " ".join(one.split()) for one in texts)


def small(version: str, *names: str) -> Surface:
    return Surface(version, {name: Flag("int") for name in names}, frozenset(), frozenset())


def test_a_release_between_two_has_what_both_have() -> None:
    made = build([small("1.0.0", "--a", "--b"), small("2.0.0", "--b", "--c")], "")
    between = made.surface("1.5.0")
    assert (set(between.flags), between.unsure) == ({"--b"}, {"--a", "--c"})
    assert "1.0.0 and 2.0.0" in between.origin


def test_a_release_beyond_the_newest_is_judged_by_it() -> None:
    made = build([small("1.0.0", "--a"), small("2.0.0", "--b")], "")
    assert set(made.surface("9.0").flags) == {"--b"}
    assert "nearest" in made.surface("9.0").origin
    assert set(made.surface("0.1").flags) == {"--a"}


def test_a_name_that_goes_and_comes_back_has_two_spans() -> None:
    made = build([small("1.0.0", "--a"), small("2.0.0"), small("3.0.0", "--a")], "")
    assert [(one.since, one.until) for one in made.flags["--a"]] == [("1.0.0", "1.0.0"), ("3.0.0", "3.0.0")]
    assert "--a" not in made.surface("2.0.0").flags


def test_versions_order_post_releases_and_drop_local_parts() -> None:
    assert Release("0.6.3") < Release("0.6.3.post1") < Release("0.6.4")
    assert Release("v0.17.1+cu128") == Release("0.17.1")
    with pytest.raises(UsageError):
        Release("newest")


def test_the_table_is_plain_json_that_a_reader_can_check() -> None:
    again = msgspec.json.decode(msgspec.json.encode(tables()), type=type(tables()))
    assert again == tables()


@pytest.mark.index
@pytest.mark.parametrize("version", ["0.6.3", "0.17.1", "0.33.0"])
def test_the_table_is_what_the_published_wheel_holds(version: str) -> None:
    from oortriage.kernels.source import SourceError
    from oortriage.kernels.source.wheel import WheelSource, wheel_spec
    from oortriage.lint.extract.release import surface_of

    pytest.importorskip("remotezip")
    try:
        read = surface_of(WheelSource(wheel_spec("vllm", version)), version, "")
    except SourceError as problem:
        pytest.skip(f"no way to the package index: {problem}")
    shipped = tables().surface(version)
    assert (read.flags, read.variables) == (shipped.flags, shipped.variables)
    assert (read.keywords, read.modules) == (shipped.keywords, shipped.modules)
