"""The phase of a failure: the message itself, then the frames, then the last good line."""

from __future__ import annotations

import pytest

from oortriage.api import Analyzer
from tests.triage.messages import NO_BLOCKS, PLAIN, SHARED, traceback

SITE = "/usr/lib/python3.12/site-packages/"
VLLM = f"{SITE}vllm/v1/worker/"
SGLANG = f"{SITE}sglang/srt/"
LLAMA = (f"{SITE}vllm/model_executor/models/llama.py", "forward")


@pytest.mark.parametrize(
    ("frames", "phase"),
    [
        ([(f"{VLLM}gpu_worker.py", "load_model"), (f"{SITE}torch/nn/modules/module.py", "to")], "load"),
        ([(f"{VLLM}gpu_model_runner.py", "load_model"), (f"{VLLM}default_loader.py", "load_weights")], "load"),
        # A profile run executes the model: the frames further in look like a prefill.
        (
            [
                (f"{VLLM}gpu_worker.py", "determine_available_memory"),
                (f"{VLLM}gpu_model_runner.py", "profile_run"),
                (f"{VLLM}gpu_model_runner.py", "_dummy_run"),
                LLAMA,
            ],
            "profile",
        ),
        (
            [
                (f"{SITE}vllm/worker/worker.py", "determine_num_available_blocks"),
                (f"{SITE}vllm/worker/model_runner.py", "profile_run"),
                (f"{SITE}vllm/worker/model_runner.py", "execute_model"),
                LLAMA,
            ],
            "profile",
        ),
        (
            [(f"{VLLM}gpu_worker.py", "initialize_from_config"), (f"{VLLM}gpu_model_runner.py", "initialize_kv_cache")],
            "kv_init",
        ),
        (
            [
                (f"{VLLM}gpu_worker.py", "compile_or_warm_up_model"),
                (f"{VLLM}gpu_model_runner.py", "capture_model"),
                (f"{VLLM}gpu_model_runner.py", "_capture_cudagraphs"),
            ],
            "graph_capture",
        ),
        (
            [
                (f"{VLLM}gpu_worker.py", "compile_or_warm_up_model"),
                (f"{VLLM}gpu_model_runner.py", "_dummy_sampler_run"),
            ],
            "warmup",
        ),
        ([(f"{VLLM}gpu_worker.py", "execute_model"), LLAMA], "prefill"),
        (
            [
                (f"{SGLANG}managers/scheduler.py", "run_batch"),
                (f"{SGLANG}model_executor/model_runner.py", "forward_extend"),
            ],
            "prefill",
        ),
        (
            [
                (f"{SGLANG}managers/scheduler.py", "run_batch"),
                (f"{SGLANG}model_executor/model_runner.py", "forward_decode"),
            ],
            "decode",
        ),
        (
            [
                (f"{SGLANG}model_executor/model_runner.py", "init_device_graphs"),
                (f"{SGLANG}model_executor/cuda_graph_runner.py", "capture"),
            ],
            "graph_capture",
        ),
        ([("app.py", "main"), (f"{SITE}transformers/modeling_utils.py", "from_pretrained")], "load"),
        ([("app.py", "main"), (f"{SITE}torch/nn/modules/module.py", "load_state_dict")], "load"),
        (
            [
                ("train.py", "main"),
                (f"{SITE}transformers/trainer.py", "training_step"),
                (f"{SITE}transformers/trainer.py", "compute_loss"),
                ("model.py", "forward"),
            ],
            "training_forward",
        ),
        # A training step runs the backward pass and the optimizer.
        (
            [
                (f"{SITE}transformers/trainer.py", "training_step"),
                (f"{SITE}torch/_tensor.py", "backward"),
                (f"{SITE}torch/autograd/graph.py", "_engine_run_backward"),
            ],
            "training_backward",
        ),
        (
            [
                (f"{SITE}transformers/trainer.py", "_inner_training_loop"),
                (f"{SITE}torch/optim/adamw.py", "step"),
                (f"{SITE}torch/optim/adamw.py", "_init_group"),
            ],
            "optimizer",
        ),
        ([("app.py", "main"), ("model.py", "forward")], "unknown"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[-1][1],
)
def test_frames_tell_the_phase(frames: list[tuple[str, str]], phase: str, analyzer: Analyzer) -> None:
    assert analyzer.text(traceback(PLAIN, *frames)).phase == phase


# The last phase line before the first error decides (knowledge file (c)).
VLLM_LINES = [
    ("Starting to load model org/m...", "load"),
    ("Model loading took 5.00 GiB memory and 3.000000 seconds", "profile"),
    ("Available KV cache memory: 3.00 GiB", "kv_init"),
    ("GPU KV cache size: 12,345 tokens", "graph_capture"),
    ("Graph capturing finished in 20 secs, took 0.50 GiB", "warmup"),
    ("init engine (profile, create kv cache, warmup model) took 30.00 seconds", "prefill"),
    (
        (
            "Engine 000: Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 5.0 tokens/s, "
            "Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%"
        ),
        "decode",
    ),
]
V0_LINES = [
    ("Starting to load model org/m...", "load"),
    ("Loading model weights took 14.9595 GB", "profile"),
    ("Memory profiling takes 6.50 seconds", "kv_init"),
    ("# GPU blocks: 229, # CPU blocks: 512", "graph_capture"),
    ("Capturing the model for CUDA graphs. This may lead to unexpected consequences", "graph_capture"),
]
SGLANG_LINES = [
    ("Init torch distributed begin.", "load"),
    ("Load weight begin. avail mem=78.50 GB", "load"),
    ("Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=62.00 GB, mem usage=16.5 GB.", "kv_init"),
    ("Memory pool end. avail mem=9.00 GB", "graph_capture"),
    ("Capture cuda graph end. Time elapsed: 20.00 s. avail mem=7.00 GB", "warmup"),
    ("Prefill batch. #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.00", "prefill"),
    ("Decode batch. #running-req: 1, #token: 40, token usage: 0.00", "decode"),
]


@pytest.mark.parametrize(
    ("lines", "seen"),
    [
        pytest.param(lines, count, id=f"{name}-{lines[count - 1][1]}-{count}")
        for name, lines in (("v1", VLLM_LINES), ("v0", V0_LINES), ("sglang", SGLANG_LINES))
        for count in range(1, len(lines) + 1)
    ],
)
def test_the_last_line_that_began_a_phase_tells_it(lines: list[tuple[str, str]], seen: int, analyzer: Analyzer) -> None:
    printed = "".join(f"INFO 03-01 10:00:00 [x.py:1] {line}\n" for line, _ in lines[:seen])
    assert analyzer.text(f"{printed}{PLAIN}\n").phase == lines[seen - 1][1]


def test_a_line_after_the_failure_begins_no_phase_of_it(analyzer: Analyzer) -> None:
    text = f"Starting to load model org/m...\n{PLAIN}\nAvailable KV cache memory: 3.00 GiB\n"
    assert analyzer.text(text).phase == "load"


def test_the_message_speaks_before_the_frames(analyzer: Analyzer) -> None:
    """Zero blocks is a matter of kv_init, wherever it is raised."""
    assert analyzer.text(traceback(NO_BLOCKS, (f"{VLLM}gpu_worker.py", "load_model"))).phase == "kv_init"


def test_the_frames_speak_before_the_last_line(analyzer: Analyzer) -> None:
    log = "INFO 03-01 10:00:00 [x.py:1] Starting to load model org/m...\n"
    frames = [(f"{VLLM}gpu_worker.py", "execute_model"), LLAMA]
    assert analyzer.text(log + traceback(PLAIN, *frames)).phase == "prefill"


@pytest.mark.parametrize(
    ("source", "phase"),
    [
        ("loss.backward()", "training_backward"),
        ("optimizer.step()", "optimizer"),
        ("loss = criterion(output, target)", "training_forward"),
    ],
)
def test_the_source_of_a_frame_tells_the_phase(source: str, phase: str, analyzer: Analyzer) -> None:
    assert analyzer.text(traceback(PLAIN, ("run.py", "main"), source=source)).phase == phase


def test_a_compiler_is_the_phase_only_where_nothing_else_is(analyzer: Analyzer) -> None:
    inductor = (f"{SITE}torch/_inductor/runtime/triton_heuristics.py", "_make_launchers")
    assert analyzer.text(traceback(SHARED, inductor)).phase == "compile"
    backward = (f"{SITE}torch/_tensor.py", "backward")
    assert analyzer.text(traceback(SHARED, backward, inductor)).phase == "training_backward"


def test_losses_before_the_failure_are_a_training(analyzer: Analyzer) -> None:
    text = f"epoch 1 step 10 loss 2.31\nepoch 1 step 20 loss 2.11\n{PLAIN}\n"
    assert analyzer.text(text).phase == "training_forward"


def test_a_phase_of_an_earlier_run_is_not_the_phase_of_a_later_one(analyzer: Analyzer) -> None:
    decoding = VLLM_LINES[-1][0]
    text = (
        "$ vllm serve org/m\n"
        f"INFO 03-01 10:00:00 [x.py:1] {decoding}\n"
        f"{traceback(PLAIN)}"
        "$ vllm serve org/m --max-model-len 4096\n"
        f"{traceback(SHARED)}"
    )
    diagnosis = analyzer.text(text)
    assert diagnosis.resource == "shared_memory"
    assert diagnosis.phase != "decode"


def test_nothing_said_is_unknown(analyzer: Analyzer) -> None:
    assert analyzer.text(PLAIN).phase == "unknown"
    assert analyzer.text("all is well\n").phase == "unknown"
