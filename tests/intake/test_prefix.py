"""Every style of prefix that reports carry: what is peeled off, what is kept of it, what remains.

The styles are those of the survey of public reports (shared-memory-messages.md (e) 6 and
memory-messages.md) and of the collectors that stand in front of them.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.intake.clean import clean
from oortriage.intake.prefix import NO_PREFIX, Prefix, peel

FRAME = '  File "/opt/v/core.py", line 718, in run'

#: prefix, and the fields that come out of it; fields that are not named must be empty.
STYLES: dict[str, tuple[str, dict[str, str]]] = {
    # vLLM
    "vllm worker with parallel ranks": (
        "(Worker_TP0_DCP0_EP0 pid=4711) ERROR 06-25 12:01:00 [multiproc_executor.py:1000] ",
        {
            "process": "Worker_TP0_DCP0_EP0",
            "pid": "4711",
            "level": "ERROR",
            "time": "06-25 12:01:00",
            "place": "multiproc_executor.py:1000",
        },
    ),
    "vllm worker with rank": (
        "(VllmWorker rank=7 pid=331) ERROR 03-13 09:00:43 [multiproc_executor.py:375] ",
        {
            "process": "VllmWorker",
            "rank": "7",
            "pid": "331",
            "level": "ERROR",
            "time": "03-13 09:00:43",
            "place": "multiproc_executor.py:375",
        },
    ),
    "vllm worker with a bare rank's name (0.10)": (
        "(VllmWorker TP1 pid=406) ERROR 08-25 12:24:17 [multiproc_executor.py:596] ",
        {
            "process": "VllmWorker",
            "rank": "TP1",
            "pid": "406",
            "level": "ERROR",
            "time": "08-25 12:24:17",
            "place": "multiproc_executor.py:596",
        },
    ),
    "vllm worker process (V0)": (
        "(VllmWorkerProcess pid=140) ERROR 09-12 01:02:03 [multiproc_worker_utils.py:233] ",
        {
            "process": "VllmWorkerProcess",
            "pid": "140",
            "level": "ERROR",
            "time": "09-12 01:02:03",
            "place": "multiproc_worker_utils.py:233",
        },
    ),
    "vllm engine core": (
        "(EngineCore_DP0 pid=270) ERROR 10-02 03:04:05 [core.py:718] ",
        {
            "process": "EngineCore_DP0",
            "pid": "270",
            "level": "ERROR",
            "time": "10-02 03:04:05",
            "place": "core.py:718",
        },
    ),
    "vllm engine core without level": (
        "(EngineCore pid=1685) ",
        {"process": "EngineCore", "pid": "1685"},
    ),
    "vllm api server": ("(APIServer pid=1) ", {"process": "APIServer", "pid": "1"}),
    "vllm runner": ("(Runner pid=77) ", {"process": "Runner", "pid": "77"}),
    "vllm without process": (
        "INFO 11-29 20:16:45 [utils.py:278] ",
        {"level": "INFO", "time": "11-29 20:16:45", "place": "utils.py:278"},
    ),
    "vllm with a folder in the place": (
        "WARNING 11-29 20:16:45 [v1/worker/gpu_worker.py:278] ",
        {"level": "WARNING", "time": "11-29 20:16:45", "place": "v1/worker/gpu_worker.py:278"},
    ),
    "vllm with a year": (
        "ERROR 2025-11-29 20:16:45 [core.py:1] ",
        {"level": "ERROR", "time": "2025-11-29 20:16:45", "place": "core.py:1"},
    ),
    "vllm of 2024, one bracket": (
        "ERROR 03-13 09:00:43 core.py:330] ",
        {"level": "ERROR", "time": "03-13 09:00:43", "place": "core.py:330"},
    ),
    # Ray
    "ray actor": ("(RayWorkerWrapper pid=2222) ", {"process": "RayWorkerWrapper", "pid": "2222"}),
    "ray actor of another node": (
        "(RayWorkerWrapper pid=2222, ip=10.0.0.3) ",
        {"process": "RayWorkerWrapper", "pid": "2222", "container": "10.0.0.3"},
    ),
    "ray task": ("(main_task pid=12345) ", {"process": "main_task", "pid": "12345"}),
    "ray method": (
        "(WorkerDict.actor_rollout pid=5) ",
        {"process": "WorkerDict.actor_rollout", "pid": "5"},
    ),
    "ray worker without a name": ("(pid=4242) ", {"pid": "4242"}),
    "raylet": ("(raylet) ", {"process": "raylet"}),
    "raylet of another node": (
        "(raylet, ip=10.0.6.140) ",
        {"process": "raylet", "container": "10.0.6.140"},
    ),
    "ray's own C++ log": (
        "[2023-08-11 10:13:54,613 E 30 30] (raylet) ",
        {"time": "2023-08-11 10:13:54", "level": "E", "pid": "30", "process": "raylet"},
    ),
    "ray driver with a tab": (
        "2022-06-03 17:35:45,343\tINFO context.py:70 -- ",
        {"time": "2022-06-03 17:35:45,343", "level": "INFO", "place": "context.py:70"},
    ),
    # SGLang
    "sglang rank": (
        "[2025-05-04 01:05:33 TP5] ",
        {"time": "2025-05-04 01:05:33", "rank": "TP5"},
    ),
    "sglang two kinds of ranks": (
        "[2025-05-04 01:05:33 DP1 TP5] ",
        {"time": "2025-05-04 01:05:33", "rank": "DP1 TP5"},
    ),
    "sglang four kinds of ranks": (
        "[2025-05-04 01:05:33 DP1 TP5 EP5 PP0] ",
        {"time": "2025-05-04 01:05:33", "rank": "DP1 TP5 EP5 PP0"},
    ),
    "sglang without rank": ("[2025-05-04 01:05:33] ", {"time": "2025-05-04 01:05:33"}),
    "sglang of 2024": ("[22:30:32 TP0] ", {"time": "22:30:32", "rank": "TP0"}),
    "sglang diffusion": ("[12-27 11:24:23] ", {"time": "12-27 11:24:23"}),
    # torch
    "torchrun rank": ("[rank3]: ", {"rank": "3"}),
    "torch glog in a rank, no space": (
        "[rank0]:E0410 07:53:02.558000 255947 torch/_inductor/runtime/triton_heuristics.py:1905] [15/4] ",
        {
            "rank": "0",
            "level": "E",
            "pid": "255947",
            "place": "torch/_inductor/runtime/triton_heuristics.py:1905",
        },
    ),
    "torch glog": (
        "E0912 11:54:57.366000 1121181 torch/_inductor/select_algorithm.py:1517] [2/0] ",
        {
            "level": "E",
            "pid": "1121181",
            "place": "torch/_inductor/select_algorithm.py:1517",
        },
    ),
    "torch glog with a restart in the frame": (
        "W0306 11:54:57.366000 99 site-packages/torch/_dynamo/x.py:12] [3/0_1] ",
        {"level": "W", "pid": "99", "place": "site-packages/torch/_dynamo/x.py:12"},
    ),
    "torch C++": (
        "[W1129 20:17:07.100251010 socket.cpp:207] ",
        {"level": "W", "place": "socket.cpp:207"},
    ),
    # glog, absl, NCCL
    "absl": (
        "2023-08-28 03:06:51.319566: W external/xla/xla/service/gpu/nvptx_compiler.cc:698] ",
        {
            "time": "2023-08-28 03:06:51.319566",
            "level": "W",
            "place": "external/xla/xla/service/gpu/nvptx_compiler.cc:698",
        },
    ),
    "nccl": ("gpu-01:331:402 [7] ", {"container": "gpu-01", "pid": "331", "rank": "7"}),
    "triton inference server": (
        "I0114 14:18:56.393046 28565 pinned_memory_manager.cc:241] ",
        {"level": "I", "pid": "28565", "place": "pinned_memory_manager.cc:241"},
    ),
    # LMDeploy, TensorRT-LLM
    "lmdeploy": (
        "2025-04-28 18:58:47,270 - lmdeploy - ERROR - model_agent.py:789 - ",
        {
            "time": "2025-04-28 18:58:47,270",
            "process": "lmdeploy",
            "level": "ERROR",
            "place": "model_agent.py:789",
        },
    ),
    "turbomind": ("[TM][ERROR] ", {"level": "ERROR"}),
    "trt-llm, C++": ("[TensorRT-LLM][WARNING] ", {"level": "WARNING"}),
    "trt-llm, python": (
        "[04/02/2026-18:45:45] [TRT-LLM] [W] ",
        {"time": "04/02/2026-18:45:45", "level": "W"},
    ),
    "trt-llm, python, with rank": (
        "[12/04/2025-18:38:28] [TRT-LLM] [RANK 3] [E] ",
        {"time": "12/04/2025-18:38:28", "rank": "3", "level": "E"},
    ),
    "tensorrt": (
        "[04/02/2026-18:45:45] [TRT] [E] ",
        {"time": "04/02/2026-18:45:45", "level": "E"},
    ),
    # collectors and launchers
    "docker compose": ("vllm-1  | ", {"container": "vllm-1"}),
    "docker compose, short name": ("svc  | ", {"container": "svc"}),
    "kubectl logs --prefix": (
        "[pod/vllm-0/engine] ",
        {"container": "vllm-0", "process": "engine"},
    ),
    "containerd": (
        "2025-12-01T12:34:56.123456789Z stderr F ",
        {"time": "2025-12-01T12:34:56.123456789Z"},
    ),
    "kubectl logs --timestamps": (
        "2025-12-01T12:34:56.123456789Z ",
        {"time": "2025-12-01T12:34:56.123456789Z"},
    ),
    "github actions": (
        "2025-12-01T12:34:56.1234567Z ",
        {"time": "2025-12-01T12:34:56.1234567Z"},
    ),
    "journald": (
        "Nov 29 21:13:39 node7 vllm[331]: ",
        {"time": "Nov 29 21:13:39", "container": "node7", "process": "vllm", "pid": "331"},
    ),
    "journald, one digit of the day": (
        "Nov  9 21:13:39 node7 python3[331]: ",
        {"time": "Nov  9 21:13:39", "container": "node7", "process": "python3", "pid": "331"},
    ),
    "journald, kernel": (
        "Nov 29 21:13:39 node7 kernel: ",
        {"time": "Nov 29 21:13:39", "container": "node7", "process": "kernel"},
    ),
    "journald, short-iso": (
        "2025-11-29T21:13:39+0100 node7 python3[331]: ",
        {
            "time": "2025-11-29T21:13:39+0100",
            "container": "node7",
            "process": "python3",
            "pid": "331",
        },
    ),
    "srun --label": ("0: ", {"rank": "0"}),
    "srun --label, padded": (" 3: ", {"rank": "3"}),
    "a supervisor's console": (
        "[16:10:33] stdout/INFO  ",
        {"time": "16:10:33", "process": "stdout", "level": "INFO"},
    ),
    "a marker of errors": ("@E@", {}),
    "deepspeed": (
        "[2025-05-04 01:05:33,123] [ERROR] [launch.py:325:sigkill_handler] ",
        {
            "time": "2025-05-04 01:05:33,123",
            "level": "ERROR",
            "place": "launch.py:325:sigkill_handler",
        },
    ),
    "loguru": (
        "2025-05-04 01:05:33.123 | ERROR    | app.sub:run:12 - ",
        {"time": "2025-05-04 01:05:33.123", "level": "ERROR", "place": "app.sub:run:12"},
    ),
    "python's basic logging": ("ERROR:root:", {"level": "ERROR", "process": "root"}),
    # nested
    "compose round kubernetes times round vllm": (
        "vllm-1  | 2025-12-01T12:34:56.1Z (EngineCore_DP0 pid=270) ERROR 10-02 03:04:05 [core.py:7] ",
        {
            "container": "vllm-1",
            "process": "EngineCore_DP0",
            "pid": "270",
            "level": "ERROR",
            "time": "2025-12-01T12:34:56.1Z",
            "place": "core.py:7",
        },
    ),
    "ray round vllm round a rank": (
        "(RayWorkerWrapper pid=2222, ip=10.0.0.3) ERROR 10-02 03:04:05 [worker.py:7] [rank1]: ",
        {
            "container": "10.0.0.3",
            "process": "RayWorkerWrapper",
            "pid": "2222",
            "level": "ERROR",
            "time": "10-02 03:04:05",
            "place": "worker.py:7",
            "rank": "1",
        },
    ),
    "journald round sglang": (
        "Nov 29 21:13:39 node7 sglang[9]: [2025-11-29 21:13:39 TP1] ",
        {
            "container": "node7",
            "process": "sglang",
            "pid": "9",
            "time": "Nov 29 21:13:39",
            "rank": "TP1",
        },
    ),
    "srun round trt-llm": (
        " 0: [12/04/2025-18:38:28] [TRT-LLM] [E] ",
        {"rank": "0", "time": "12/04/2025-18:38:28", "level": "E"},
    ),
    "a time, doubled": (
        "2025-12-01T12:34:56.1Z 2025-12-01T12:34:56.2Z ",
        {"time": "2025-12-01T12:34:56.1Z"},
    ),
}

FIELDS = ("container", "process", "pid", "rank", "level", "time", "place")


def fields(prefix: Prefix) -> dict[str, str]:
    return {name: getattr(prefix, name) for name in FIELDS if getattr(prefix, name)}


@pytest.mark.parametrize("style", STYLES)
def test_a_prefix_is_peeled_and_its_facts_kept(style: str) -> None:
    text, expected = STYLES[style]
    message = "torch.OutOfMemoryError: CUDA out of memory."
    prefix = peel(text + message)
    assert (text + message)[prefix.length :] == message
    assert fields(prefix) == expected


#: These stand only in front of the first line of a message, never of a frame.
FIRST_LINE_ONLY = {"python's basic logging", "nccl", "ray driver with a tab"}
EVERY_LINE = [style for style in STYLES if style not in FIRST_LINE_ONLY]


@pytest.mark.parametrize("style", EVERY_LINE)
def test_the_indentation_of_a_frame_survives(style: str) -> None:
    text, expected = STYLES[style]
    prefix = peel(text + FRAME)
    assert (text + FRAME)[prefix.length :] == FRAME
    assert fields(prefix) == expected


@pytest.mark.parametrize("style", EVERY_LINE)
def test_the_indentation_of_source_code_survives(style: str) -> None:
    text, _ = STYLES[style]
    code = "    self.model_runner.profile_run()"
    assert (text + code)[peel(text + code).length :] == code


@pytest.mark.parametrize("style", [style for style in EVERY_LINE if not style.startswith("srun")])
def test_a_prefix_with_nothing_behind_it_leaves_an_empty_body(style: str) -> None:
    text, expected = STYLES[style]
    prefix = peel(text)
    assert text[prefix.length :].strip() == ""
    assert fields(prefix) == expected


def test_colours_round_a_prefix_do_not_hide_it() -> None:
    line = clean("\x1b[1;36m(EngineCore pid=7)\x1b[0;0m ERROR 06-25 12:01:00 [core.py:1] text")
    prefix = peel(line)
    assert fields(prefix) == {
        "process": "EngineCore",
        "pid": "7",
        "level": "ERROR",
        "time": "06-25 12:01:00",
        "place": "core.py:1",
    }
    assert line[prefix.length :] == "text"


@pytest.mark.parametrize("level", ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "FATAL"])
@pytest.mark.parametrize("form", ["[{}] text", "{}: text", "{} 06-25 12:01:00 [a.py:1] text"])
def test_levels_are_kept(level: str, form: str) -> None:
    line = form.format(level)
    prefix = peel(line)
    assert prefix.level == level
    assert line[prefix.length :] == "text"


# --- streams


def test_two_ranks_are_two_streams() -> None:
    assert peel("[rank0]: a").stream != peel("[rank1]: a").stream


def test_two_processes_of_one_name_are_two_streams() -> None:
    assert peel("(EngineCore pid=1) a").stream != peel("(EngineCore pid=2) a").stream


def test_two_containers_are_two_streams() -> None:
    assert peel("vllm-1  | a").stream != peel("vllm-2  | a").stream


def test_level_and_time_do_not_make_a_stream() -> None:
    assert peel("INFO 11-29 20:16:45 [utils.py:278] a").stream == ""
    assert peel("2025-12-01T12:34:56.1Z a").stream == ""


def test_a_stream_is_the_same_with_and_without_level() -> None:
    full = peel("(EngineCore_DP0 pid=270) ERROR 10-02 03:04:05 [core.py:718] a")
    assert full.stream == peel("(EngineCore_DP0 pid=270) a").stream != ""


def test_the_name_of_a_stream_says_who() -> None:
    line = "Nov 29 21:13:39 node7 vllm[5]: [rank2]: text"
    assert peel(line).stream == "node7/vllm rank=2 pid=5"


# --- quotes and boxes


@pytest.mark.parametrize(("line", "body"), [("> text", "text"), ("> >   text", "  text")])
def test_a_markdown_quote_is_peeled(line: str, body: str) -> None:
    prefix = peel(line)
    assert prefix.quoted
    assert line[prefix.length :] == body


def test_a_quoted_prefix_is_peeled_too() -> None:
    line = "> [rank1]: RuntimeError: x"
    prefix = peel(line)
    assert (prefix.quoted, prefix.rank, line[prefix.length :]) == (True, "1", "RuntimeError: x")


@pytest.mark.parametrize("line", ["│ /a/b.py:33 in f", "│ ❱ 33 │   x = 1", "| N/A   30C |"])
def test_boxes_are_marked(line: str) -> None:
    assert peel(line).boxed


def test_a_box_is_no_container() -> None:
    assert peel("| train  | 0.5 |").container == ""


# --- what is no prefix


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "RuntimeError: CUDA error: out of memory",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "Traceback (most recent call last):",
        '  File "/a/b.py", line 3, in f',
        "    return self._call_impl(*args, **kwargs)",
        "out of resource: shared memory, Required: 98304, Hardware limit: 65536.",
        "(most recent call last)",
        "[2, 3, 4]",
        "[notice] A new release of pip is available",
        "Error running sage attention: out of resource",
        "ptxas error   : Entry function 'f' uses too much shared data",
        "x.cu:12:3: error: local memory (1) exceeds limit (65536) in 'f'",
        "CUDA error 2 at ggml-cuda.cu:12: out of memory",
        "INFORMATION is power",
        "Killed",
        "2",
        "1024 threads",
    ],
)
def test_plain_messages_have_no_prefix(text: str) -> None:
    assert peel(text) == NO_PREFIX


@pytest.mark.parametrize("code", ["    mask | other", "  flags | re.IGNORECASE", "    a  | b"])
def test_an_or_in_source_code_is_no_container(code: str) -> None:
    """Compose begins its lines at the margin."""
    assert peel(code) == NO_PREFIX


@pytest.mark.parametrize("spaces", [5, 8, 40])
def test_deep_indentation_is_never_looked_through(spaces: int) -> None:
    assert peel(" " * spaces + "[rank0]: x") == NO_PREFIX


# --- invariants

ANY_PREFIX = st.sampled_from([text for text, _ in STYLES.values()])


@given(st.lists(ANY_PREFIX, max_size=12), st.text(max_size=30))
def test_peeling_ends_within_the_line(prefixes: list[str], text: str) -> None:
    line = "".join(prefixes) + text
    prefix = peel(line)
    assert 0 <= prefix.length <= len(line)
    assert all(value == value.strip() for value in fields(prefix).values())


@given(st.text("([rank0]: INFO-.|>│pid=1 ,)E@/", max_size=60))
def test_no_text_raises(line: str) -> None:
    assert 0 <= peel(line).length <= len(line)


@pytest.mark.parametrize("style", STYLES)
@given(rest=st.text("abc XYZ:([|0", max_size=20))
@settings(max_examples=20)
def test_a_body_that_begins_with_a_word_is_left_whole(style: str, rest: str) -> None:
    text, _ = STYLES[style]
    line = text + "Memory: " + rest
    assert line[peel(line).length :] == "Memory: " + rest
