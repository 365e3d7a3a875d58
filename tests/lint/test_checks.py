"""Every check: a command that it hits, in a release where it holds, and one beside it that it leaves alone."""

from __future__ import annotations

import msgspec
import pytest

from oortriage.lint.checks import CHECKS, Card, Model
from oortriage.lint.tables import tables
from tests.lint.linting import T4, codes, findings

A10, H100 = Card("A10", (8, 6)), Card("H100", (9, 0))
EXPAND = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


class Example(msgspec.Struct, frozen=True):
    code: str
    hit: str
    miss: str
    vllm: str = "0.17.1"
    miss_vllm: str = ""
    card: Card | None = None
    miss_card: Card | None = None
    model: Model | None = None
    name: str = ""


S = "vllm serve m"
EXAMPLES = [
    Example("LT101", f"{S} --blok-size 16", f"{S} --block-size 16"),
    Example("LT101", f"{S} --no-frobnicate", f"{S} --no-enable-prefix-caching"),
    Example("LT102", f"{S} --max-seq-len-to-capture 8192", f"{S} --max-seq-len-to-capture 8192", miss_vllm="0.10.2"),
    Example("LT102", f"{S} --swap-space 4", f"{S} --swap-space 4", vllm="0.33.0"),
    Example("LT103", f"{S} --attention-backend FLASHINFER", f"{S} --attention-backend FLASHINFER", "0.10.2", "0.13.0"),
    Example("LT103", f"{S} --kv-cache-memory 5G", f"{S} --kv-cache-memory 5G", "0.6.3", "0.10.2"),
    Example("LT103", f"{S} --no-async-scheduling", f"{S} --no-async-scheduling", "0.9.2", "0.10.2"),
    Example("LT104", f"{S} --kv-cache-memory 5G", f"{S} --kv-cache-memory-bytes 5G"),
    Example("LT104", f"{S} --gpu-mem 0.8", f"{S} --gpu_memory_utilization 0.8"),
    Example("LT105", f"{S} --max-num 5", f"{S} --max-num-seqs 5"),
    Example("LT107", f"{S} --no-block-size", f"{S} --no-enable-prefix-caching"),
    Example("LT107", f"{S} --no-enforce-eager", f"{S} --no-enforce-eager", "0.6.3", "0.17.1"),
    Example("LT108", f"{S} --enforce-eager true", f"{S} --enforce-eager"),
    Example("LT108", f"{S} --enforce-eager=true", f"{S} --no-enforce-eager"),
    Example("LT108", f"{S} --block-size --enforce-eager", f"{S} --block-size 16 --enforce-eager"),
    Example("LT109", f"{S} --block-size 16 --block-size 32", f"{S} --block-size 16 --block-size 16"),
    Example("LT109", f"{S} --enforce-eager --no-enforce-eager", f"{S} --lora-modules a=b --lora-modules c=d"),
    Example("LT110", f"{S} --disable-log-requests", f"{S} --disable-log-requests", "0.10.2", "0.9.2"),
    Example("LT111", "LLM('m', attention_backend='x')", "LLM('m', block_size=16)", "0.6.3", name="a.py"),
    Example("LT111", "LLM('m', attention_backend='x')", "LLM('m', attention_backend='x')", "0.6.3", "0.13.0", name="a.py"),
    Example("LT111", "EngineArgs(modle='m')", "EngineArgs(model='m')", name="a.py"),
    Example("LT112", "python -m vllm.entrypoints.api_server", "python -m vllm.entrypoints.openai.api_server", "0.25.1"),
    Example("LT113", "python3 -m vllm.entrypoints.api_server", "vllm serve m", "0.6.3"),
    Example("LT114", f"{S} --kv-transfer-config.a 1", f"{S} --kv-transfer-config.a 1", "0.8.5", "0.9.0"),
    Example("LT201", f"VLLM_NONSENSE=1 {S}", f"VLLM_LOGGING_LEVEL=DEBUG {S}"),
    Example("LT201", f"VLLM_LOGING_LEVEL=DEBUG {S}", f"VLLM_SERVICE_HOST=10.0.0.1 VLLM_EXTRA_ARGS=x {S}"),
    Example("LT202", f"VLLM_ATTENTION_BACKEND=FLASHINFER {S}", f"VLLM_ATTENTION_BACKEND=FLASHINFER {S}", "0.15.1", "0.14.1"),
    Example("LT202", f"VLLM_USE_V1=0 {S}", f"VLLM_USE_V1=1 {S}", "0.17.1", "0.8.5"),
    Example("LT203", f"VLLM_USE_V2_MODEL_RUNNER=1 {S}", f"VLLM_USE_V2_MODEL_RUNNER=1 {S}", "0.11.2", "0.12.0"),
    Example(
        "LT205", "import vllm, os\nos.environ['VLLM_LOGGING_LEVEL']='DEBUG'\nvllm.LLM('m')",
        "import os\nos.environ['VLLM_LOGGING_LEVEL']='DEBUG'\nimport vllm\nvllm.LLM('m')", name="a.py",
    ),
    Example("LT301", f"{S} --block-size 64", f"{S} --block-size 64", "0.6.3", "0.6.4"),
    Example("LT301", f"{S} --kv-cache-dtype bfloat16", f"{S} --kv-cache-dtype bfloat16", "0.10.2", "0.11.0"),
    Example("LT301", f"{S} --kv-cache-dtype fp9", f"{S} --kv-cache-dtype fp8", "0.33.0"),
    Example("LT301", f"{S} --block-size 512", f"{S} --block-size $BS"),
    Example("LT302", f"{S} --max-num-seqs many", f"{S} --max-num-seqs 64"),
    Example("LT302", f"{S} --max-model-len 8k", f"{S} --max-model-len 8k", "0.8.3", "0.17.1"),
    Example("LT302", f"{S} --gpu-memory-utilization 90%", f"{S} --gpu-memory-utilization .9"),
    Example("LT302", f"{S} --kv-transfer-config {{a:1", f"{S} --kv-transfer-config '{{\"a\": 1}}'"),
    Example("LT303", f"{S} --gpu-memory-utilization 90", f"{S} --gpu-memory-utilization 1.0"),
    Example("LT303", f"{S} --gpu-memory-utilization 0", f"{S} --gpu-memory-utilization $U", "0.6.3"),
    Example("LT304", f"{S} --max-num-batched-tokens 0", f"{S} --max-num-batched-tokens 1"),
    Example("LT305", f"{S} --tensor-parallel-size 0", f"{S} --tensor-parallel-size 1", "0.6.3"),
    Example("LT306", f"{S} --max-model-len auto", f"{S} --max-model-len auto", "0.13.0", "0.14.0"),
    Example("LT306", f"{S} --max-model-len -1", f"{S} --max-model-len -1", "0.10.2", "0.14.1"),
    Example("LT306", f"{S} --max-model-len 0", f"{S} --max-model-len 1"),
    Example("LT307", f"{S} --max-model-len 9000", f"{S} --max-model-len 8192", model=Model(length=8192)),
    Example(
        "LT307", f"{S} --max-model-len 9000", f"VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 {S} --max-model-len 9000",
        model=Model(length=8192),
    ),
    Example("LT308", f"{S} -tp 3", f"{S} -tp 4", model=Model(heads=32)),
    Example("LT309", f"{S} --dtype bfloat16", f"{S} --dtype bfloat16", card=T4, miss_card=A10),
    Example("LT310", f"{S} --kv-cache-dtype fp8", f"{S} --kv-cache-dtype fp8", card=A10, miss_card=H100),
    Example("LT310", f"{S} --kv-cache-dtype fp8 --attention-backend FLASH_ATTN", S, card=Card("L4", (8, 9))),
    Example("LT311", f"{S} --block-size 24", f"{S} --block-size 48", "0.18.0"),
    Example("LT311", f"{S} --block-size 8", f"{S} --block-size 8", "0.33.0", "0.17.1"),
    Example("LT416", f"{S} --gpu-memory-utilization 0.99", f"{S} --gpu-memory-utilization 0.9"),
    Example("LT416", f"{S} --gpu-memory-utilization 0.99", f"{S} --gpu-memory-utilization 0.99", "0.19.1", "0.20.0"),
    Example("LT416", f"{S} --gpu-memory-utilization 1", f"{S} --gpu-memory-utilization 1 --enforce-eager"),
    Example("LT401", f"{EXPAND} {S} --enable-sleep-mode", f"{EXPAND} {S} --enable-sleep-mode", "0.20.0", "0.20.1"),
    Example("LT401", f"{EXPAND} {S} --enable-sleep-mode", f"{EXPAND} {S}", "0.8.0"),
    Example("LT402", f"{EXPAND} {S} --kv-transfer-config {{}}", f"{EXPAND} {S} --kv-transfer-config {{}}", "0.21.0", "0.20.2"),
    Example(
        "LT402", f"{EXPAND} {S} --kv-transfer-config {{}}", f"{EXPAND} {S} --kv-transfer-config {{}} --enable-sleep-mode",
        "0.22.1",
    ),
    Example("LT403", "vllm serve --model m", "vllm serve m"),
    Example("LT403", "vllm serve --model m", "python -m vllm.entrypoints.openai.api_server --model m", "0.7.3"),
    Example("LT404", "vllm serve --block-size 16", "vllm serve m", "0.6.3"),
    Example(
        "LT405", f"{S} --max-num-batched-tokens 100 --max-num-seqs 128",
        f"{S} --max-num-batched-tokens 128 --max-num-seqs 128",
    ),
    Example(
        "LT406", f"{S} --max-num-batched-tokens 2048 --max-model-len 8192 --no-enable-chunked-prefill",
        f"{S} --max-num-batched-tokens 2048 --max-model-len 8192",
    ),
    Example(
        "LT406", f"{S} --max-num-batched-tokens 2048 --max-model-len 8192",
        f"{S} --max-num-batched-tokens 2048 --max-model-len 8192 --enable-chunked-prefill", "0.6.3",
    ),
    Example(
        "LT406", f"{S} --max-num-batched-tokens 2048 --max-model-len 8192 --enable-chunked-prefill=False",
        f"{S} --max-num-batched-tokens 2048 --max-model-len 65536", "0.6.3",
    ),
    Example(
        "LT407", f"{S} --kv-cache-memory-bytes 5G --gpu-memory-utilization 0.9", f"{S} --kv-cache-memory-bytes 5G"
    ),
    Example("LT408", f"{S} --swap-space 4", f"{S} --swap-space 4", "0.17.1", "0.9.2"),
    Example("LT409", f"{S} --use-v2-block-manager", f"{S} --use-v2-block-manager", "0.6.4", "0.6.3"),
    Example("LT410", f"VLLM_USE_V1=0 {S}", f"VLLM_USE_V1=1 {S}", "0.11.0"),
    Example("LT411", f"{S} --enforce-eager --cudagraph-capture-sizes 1 2", f"{S} --cudagraph-capture-sizes 1 2"),
    Example("LT412", f"CUDA_VISIBLE_DEVICES=0 {S} -tp 2", f"CUDA_VISIBLE_DEVICES=0,1 {S} -tp 2"),
    Example("LT412", f"CUDA_VISIBLE_DEVICES=0,1 {S} -tp 2 -pp 2", f"CUDA_VISIBLE_DEVICES=$X {S} -tp 2"),
    Example("LT413", f"{S} --enable-auto-tool-choice", f"{S} --enable-auto-tool-choice --tool-call-parser hermes"),
    Example("LT414", f"{S} -O3", f"{S} -O3", "0.12.0", "0.11.2"),
    Example("LT414", f"{S} -O 2", f"{S} --optimization-level 2"),
    Example("LT415", f"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0 {S}", S, "0.20.0"),
    Example("LT415", f"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1 {S}", S, "0.33.0"),
    Example("LT103", f"{S} -O3", f"{S} -O3", "0.6.3", "0.6.5"),
    Example("LT501", f"CUDA_DISABLE_DEPRECATED_PTX=1 {S}", f"CUDA_DISABLE_PTX_JIT=1 {S}"),
    Example("LT502", "export VLLM_PROFILE_MEMORY=1", "export VLLM_LOGGING_LEVEL=DEBUG"),
    Example("LT503", "docker run -e NV_GPU_NVLINK_ENABLE=1 vllm/vllm-openai --model m", f"NCCL_P2P_DISABLE=1 {S}"),
    Example("LT504", f"VLLM_DEBUG_MEMORY=1 {S}", S),
    Example("LT505", f"VLLM_STANDBY_MEM=1 {S}", S),
    Example("LT506", f"VLLM_METRICS_LEVEL=1 {S}", S),
    Example("LT507", f"VLLM_LOG_LEVEL=debug {S}", f"VLLM_LOGGING_LEVEL=DEBUG {S}"),
    Example(
        "LT508", f"CUDA_MPS_PIPE_DIRECTORY=/tmp/mps {S}",
        f"CUDA_MPS_PIPE_DIRECTORY=/tmp/mps CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=10G {S}",
    ),
    Example("LT509", f"PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync {S}", f"{EXPAND} {S}"),
    Example("LT601", "dcgmi dmon -e 2004,2005", "dcgmi dmon -e 252,204"),
    Example("LT602", "dcgmi dmon -e 252 -d 1", "dcgmi dmon -e 252 -d 1000"),
    Example("LT603", "dcgmi dmon -e 252 --no-header", "dcgmi dmon -e 252"),
    Example(
        "LT604", "nvidia-smi --query-compute-appspid,used_memory --formatcsv",
        "nvidia-smi --query-compute-apps=pid,used_memory --format=csv",
    ),
    Example("LT605", "nvprof ./app", "nsys profile ./app", card=A10),
    Example("LT605", "nvprof ./app", "nvprof ./app", card=A10, miss_card=T4),
    Example("LT606", "dcgmi dmon -e 252 | awk '{print \"nvidia_dcgm_fb_used_bytes \" $3}'", "dcgmi dmon -e 252 | awk x"),
]  # fmt: skip


@pytest.mark.parametrize("one", EXAMPLES, ids=lambda one: f"{one.code}-{one.hit[:40]}")
def test_a_check_hits_and_misses(one: Example) -> None:
    assert one.code in codes(one.hit, one.vllm, one.name, one.card, one.model)
    assert one.code not in codes(
        one.miss, one.miss_vllm or one.vllm, one.name, one.miss_card or one.card, one.model
    ) or (one.miss == one.hit and not one.miss_vllm and not one.miss_card)


def test_every_check_has_an_example() -> None:
    # The two that need a release between two read are in the tests below.
    assert {one.code for one in EXAMPLES} | {"LT106", "LT204"} == {one.code for one in CHECKS}


def test_codes_are_unique_and_every_check_says_what_proves_it() -> None:
    assert len({one.code for one in CHECKS}) == len(CHECKS)
    assert all(one.title and one.doc and one.source for one in CHECKS)


def test_a_release_between_two_read_is_not_judged_by_one_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from oortriage.lint import run
    from oortriage.lint.surface import Flag, Surface
    from oortriage.lint.tables import build

    old = Surface("1.0.0", {"--model": Flag("text"), "--old": Flag("int")}, frozenset({"VLLM_OLD"}), frozenset())
    new = Surface("2.0.0", {"--model": Flag("text"), "--new": Flag("int")}, frozenset({"VLLM_NEW"}), frozenset())
    made = build([old, new], "")
    monkeypatch.setattr(run, "tables", lambda: made)
    monkeypatch.setattr(run, "shipped_surface", made.surface)
    found = findings(f"VLLM_OLD=1 VLLM_NEW=1 {S} --old 1 --new 2", "1.5.0")
    assert [(one.code, one.subject, one.severity) for one in found] == [
        ("LT106", "--old", "info"), ("LT106", "--new", "info"), ("LT204", "VLLM_OLD", "info"),
        ("LT204", "VLLM_NEW", "info"),
    ]  # fmt: skip
    assert [one.code for one in findings(f"VLLM_OLD=1 {S} --new 2", "1.0.0")] == ["LT103"]


@pytest.mark.parametrize(
    ("command", "version", "since", "until"),
    [
        (f"VLLM_ATTENTION_BACKEND=X {S}", "0.17.1", "0.5.4", "0.14.1"),
        (f"{S} --swap-space 4", "0.33.0", "0.5.4", "0.17.1"),
        (f"{S} --attention-backend X", "0.6.3", "0.13.0", ""),
        (f"{S} --block-size 64", "0.6.3", "0.6.4", ""),
        (f"{EXPAND} {S} --enable-sleep-mode", "0.17.1", "0.8.0", "0.20.0"),
        (f"{S} --blok-size 16", "0.17.1", "", ""),
    ],
)
def test_a_finding_says_which_releases_have_its_subject(command: str, version: str, since: str, until: str) -> None:
    (one,) = findings(command, version)
    assert (one.since, one.until) == (since, until)


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        (f"{S} --blok-size 16", "--block-size"),
        (f"{S} --gpu-memory-utilisation 0.9", "--gpu-memory-utilization"),
        (f"VLLM_LOGING_LEVEL=DEBUG {S}", "VLLM_LOGGING_LEVEL"),
        (f"{S} --kv-cache-type fp8", "--kv-cache-dtype"),
    ],
)
def test_a_name_close_to_a_real_one_is_asked_about(command: str, meant: str) -> None:
    assert f"did you mean {meant}?" in findings(command, "0.17.1")[0].message


def test_model_with_serve_is_judged_by_release() -> None:
    told = {
        version: [(one.severity, one.since) for one in findings("vllm serve --model m", version) if one.code == "LT403"]
        for version in ("0.5.4", "0.6.3", "0.8.2", "0.8.3", "0.33.0")
    }
    assert told == {
        "0.5.4": [("warning", "0.5.4")], "0.6.3": [("error", "0.5.5")], "0.8.2": [("error", "0.5.5")],
        "0.8.3": [("warning", "0.8.3")], "0.33.0": [("warning", "0.11.1")],
    }  # fmt: skip


def test_a_plug_in_s_variable_is_a_remark_unless_the_command_is_strict() -> None:
    command = "VLLM_ASCEND_ENABLE_X=1 vllm serve m"
    assert [(one.code, one.severity) for one in findings(command, "0.17.1")] == [("LT201", "info")]
    strict = findings(f"{command} --fail-on-environ-validation", "0.17.1")
    assert [(one.code, one.severity) for one in strict] == [("LT201", "error")]


def test_a_model_before_and_after_serve_is_one_too_many() -> None:
    told = {
        version: [
            (one.code, one.severity) for one in findings("vllm serve a --model b", version) if one.code == "LT403"
        ]
        for version in ("0.8.5", "0.11.1")
    }
    assert told == {"0.8.5": [("LT403", "warning")], "0.11.1": [("LT403", "error")]}


def test_a_field_of_dcgm_that_nobody_knows_is_no_error() -> None:
    assert [one.severity for one in findings("dcgmi dmon -e 2004,9999,252")] == ["error", "warning"]


def test_block_sizes_follow_the_releases_even_where_they_went_back() -> None:
    refused = [version for version in tables().read[:14] if "LT301" in codes(f"{S} --block-size 64", version)]
    assert refused[:3] == ["0.5.4", "0.5.5", "0.6.0"]
    assert refused[-2:] == ["0.6.3.post1", "0.6.5"]


def test_the_seed_s_own_command_is_taken_apart() -> None:
    """The start command of the second seed, with its variable: what is wrong with it in the release it is about."""
    command = (
        "CUDA_DISABLE_DEPRECATED_PTX=1 python -m vllm.entrypoints.api_server --model meta-llama/Meta-Llama-3-8B-Instruct "
        "--tensor-parallel-size 1 --kv-cache-dtype fp8 --max-model-len 4096 --gpu-memory-utilization 0.85 --dtype bfloat16"
    )
    assert codes(command, "0.6.3") == ["LT113", "LT501"]
    assert codes(command, "0.33.0") == ["LT112", "LT501"]


@pytest.mark.parametrize(
    ("version", "command"),
    [
        ("0.6.3.post1", f"{S} --tensor-parallel-size 2 --max-model-len 8192 --enable-chunked-prefill --block-size 32"),
        ("0.8.5", f"VLLM_USE_V1=0 {S} -tp 4 --enable-prefix-caching --gpu-memory-utilization 0.95 --trust-remote-code"),
        (
            "0.11.0",
            f"VLLM_ATTENTION_BACKEND=FLASHINFER {S} --quantization awq --served-model-name a b --port 8000 -O3 --api-key=x",
        ),
        (
            "0.17.1",
            f"{S} --attention-backend FLASHINFER --async-scheduling --max-model-len auto --kv-cache-memory-bytes 25G",
        ),
        (
            "0.17.1",
            f"{S} --speculative-config.method x --limit-mm-per-prompt '{{\"image\": 0}}' --no-enable-prefix-caching -dp 2",
        ),
        ("0.17.1", f"{S} -cc.mode=0 -O.level=1 --max_num_seqs=8 -dcp 2 -q awq -ep"),
        ("0.33.0", f"{S} --kv-cache-dtype nvfp4 --max-num-seqs 64 --reasoning-parser qwen3 --tool-call-parser hermes"),
    ],
)
def test_good_commands_have_no_findings(version: str, command: str) -> None:
    assert findings(command, version) == ()
