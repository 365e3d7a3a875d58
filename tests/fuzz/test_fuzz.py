"""No bytes break the analyzer: it never raises, cites only lines that exist, and takes linear time."""

from __future__ import annotations

import gc
import time
from functools import lru_cache

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oortriage.api import Analyzer, default_analyzer
from oortriage.triage.diagnosis import Diagnosis

GENEROUS = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
)

#: What real logs are made of, whole and cut.
MESSAGES = [
    (
        b"triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 98304, "
        b"Hardware limit: 65536. Reducing block sizes or `num_stages` may help."
    ),
    b"triton.compiler.OutOfResources: out of resource: shared memoryRequired: 1Hardware limit: 2",
    b"out of resource: tensor memory, Required: 640, Hardware limit: 512.",
    b"out of resource: threads, Required: 2048, Hardware limit: 1024.",
    (
        b"RuntimeError: No valid triton configs. OutOfMemoryError: out of resource: "
        b"triton_tem_fused_mm_0 Required: 131072 Hardware limit:101376 Reducing block sizes"
    ),
    (
        b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total "
        b"capacity of 23.65 GiB of which 10.26 GiB is free. Process 4711 has 13.39 GiB memory in use. "
        b"Of the allocated memory 12.06 GiB is allocated by PyTorch, and 1.47 GiB is reserved by "
        b"PyTorch but unallocated."
    ),
    (
        b"RuntimeError: CUDA out of memory. Tried to allocate 1.70 GiB (GPU 0; 6.00 GiB total "
        b"capacity; 2.93 GiB already allocated; 0 bytes free; 5.23 GiB reserved in total by PyTorch)"
    ),
    b"CUDA out of memory. Tried to allocate more than 1EB memory.",
    b"17179869184.00 GiB 18446744073707737660 bytes",
    (
        b"ValueError: No available memory for the cache blocks. Try increasing "
        b"`gpu_memory_utilization` when initializing the engine."
    ),
    (
        b"ValueError: Free memory on device (3.02/15.77 GiB) on startup is less than desired GPU memory "
        b"utilization (0.9, 14.19 GiB). Decrease GPU memory utilization"
    ),
    b"INFO 11-29 20:16:45 [gpu_worker.py:298] Available KV cache memory: -2.14 GiB",
    (
        b"ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB "
        b"KV cache is needed, which is larger than the available KV cache memory (3.86 GiB)."
    ),
    b"RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    (
        b"RuntimeError: Prefill out of memory. Try to lower your batch size.\nTry to allocate 9472 "
        b"tokens.\nAvailable tokens: 2048"
    ),
    b"ptxas error   : Entry function 'f' uses too much shared data (0x12c00 bytes, 0xc000 max)",
    b"RuntimeError: CUDA error: invalid configuration argument",
    (
        b"DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's "
        b"workers are out of shared memory."
    ),
    b"Out of memory: Killed process 4711 (python3) total-vm:104857600kB, anon-rss:65011712kB",
    b"resource_tracker: There appear to be 2 leaked shared_memory objects to clean up at shutdown",
    b'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "CUDACachingAllocator.cpp":1016',
    b"RESOURCE_EXHAUSTED: Shared memory size limit exceeded: requested 264252, available: 232448",
    b"Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
    b"AUTOTUNE mm(1024x1024, 1024x1024)",
    b"step 12 loss 0.5 | 3.2 it/s",
    b"Traceback (most recent call last):",
    b'  File "/opt/v/core.py", line 718, in run',
    b'    raise OutOfResources(self.metadata.shared, max_shared, "shared memory")',
    b"During handling of the above exception, another exception occurred:",
    (
        b"INFO 11-29 20:16:45 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: "
        b"model='m', dtype=torch.float16, max_seq_len=4096, tensor_parallel_size=2"
    ),
    b"|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |",
    b"torch==2.9.0 triton==3.5.0 python 3.12 Tesla T4 device_name=NVIDIA_GeForce_RTX_3090.json",
]
GLUE = [
    b"\n", b"\n", b"\n", b"\r", b"\r\n", b" ", b"\\n", b"\0", b"\x1b[1;36m", b"\x1b[0m", b"[1;36m",
    b"^[[0;0m", b"^M", b"\xff\xfe", b"\xef\xbb\xbf", b"```\n", b"> ", b"    ", b"'", b'"', b"`",
    b"&gt;", b"&quot;", "Größe：１２".encode(), "\u2028\u200b😀".encode(), b"{", b'{"msg": "', b'"}',
    b"[rank0]: ", b"[rank1]: ", b"(EngineCore_DP0 pid=270) ERROR 10-02 03:04:05 [core.py:718] ",
    b"(VllmWorker rank=7 pid=9) ", b"[2025-05-04 01:05:33 TP5] ", b"2026-03-01T10:00:01Z ",
    b"vllm-1  | ", b"E0912 11:54:57.366000 1121 torch/_inductor/x.py:1517] [2/0] ",
    b"Nov 29 21:13:39 node7 vllm[331]: ", "│ ".encode(), b"$ python train.py\n",
    b"usage: serve [-h]\n", b"x" * 79, b"9" * 60, b"(" * 30, b"=" * 80,
]  # fmt: skip


@st.composite
def cut_messages(draw: st.DrawFn) -> bytes:
    message = draw(st.sampled_from(MESSAGES))
    if draw(st.booleans()):
        return message
    low = draw(st.integers(0, len(message)))
    return message[low : low + draw(st.integers(0, len(message)))]


MIXTURES = st.lists(
    st.one_of(cut_messages(), st.sampled_from(GLUE), st.sampled_from(GLUE), st.binary(max_size=12)),
    max_size=50,
).map(b"".join)


@lru_cache(maxsize=1)
def own_analyzer() -> Analyzer:
    return Analyzer()


def assert_sound(diagnosis: Diagnosis, data: bytes) -> None:
    """A diagnosis that keeps its contract, and cites nothing that is not in the input."""
    again = msgspec.json.decode(msgspec.json.encode(diagnosis), type=Diagnosis)
    assert again.resource == diagnosis.resource
    assert diagnosis.schema_version == 1
    assert 0.0 <= diagnosis.confidence <= 1.0
    assert diagnosis.fingerprint
    assert diagnosis.title
    assert diagnosis.summary
    assert diagnosis.exit_code in (0, 1, 3)
    last = data.count(b"\n") + 1
    raw = data.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
    for quote in diagnosis.evidence:
        assert 1 <= quote.line <= last
        assert quote.column >= 1
        if not diagnosis.notes:  # UTF-16 has other bytes, and its note
            line = raw[quote.line - 1]
            assert quote.text in line
            assert quote.column <= len(line) + 1
    for fact in diagnosis.facts.values():
        assert 0 <= fact.line <= last
    for other in (*diagnosis.masked_by, *diagnosis.others):
        assert 1 <= other.line <= last
    for out in diagnosis.ruled_out:
        assert 0 <= out.line <= last
    if diagnosis.status == "fatal" and diagnosis.resource != "undetermined":
        assert diagnosis.code
        assert diagnosis.evidence


# --- never raises


@GENEROUS
@given(st.binary(max_size=600))
def test_no_bytes_raise(data: bytes) -> None:
    assert_sound(own_analyzer().text(data), data)


@GENEROUS
@given(st.text(max_size=400))
def test_no_text_raises(text: str) -> None:
    assert_sound(own_analyzer().text(text), text.encode("utf-8", "replace"))


@settings(GENEROUS, max_examples=200)
@given(MIXTURES)
def test_no_mixture_of_real_fragments_raises(data: bytes) -> None:
    assert_sound(own_analyzer().text(data), data)


@GENEROUS
@given(MIXTURES, st.integers(0, 300))
def test_no_mixture_raises_when_it_is_a_large_log(data: bytes, whole: int) -> None:
    assert_sound(own_analyzer().text(data, whole=whole), data)


@settings(GENEROUS, max_examples=60)
@given(MIXTURES, st.sampled_from(["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"]))
def test_no_encoding_raises(data: bytes, encoding: str) -> None:
    text = data.decode("utf-8", "replace")
    coded = text.encode(encoding)
    diagnosis = own_analyzer().text(coded)
    lines = text.count("\n") + 1
    assert all(1 <= quote.line <= lines for quote in diagnosis.evidence)


@settings(GENEROUS, max_examples=60)
@given(st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=8), st.integers(40, 130))
def test_no_wrapped_log_raises(messages: list[bytes], width: int) -> None:
    text = b"\n".join(messages).decode()
    rows = [line[at : at + width] for line in text.split("\n") for at in range(0, len(line), width)]
    data = "\n".join(rows).encode()
    assert_sound(own_analyzer().text(data), data)


@settings(GENEROUS, max_examples=60)
@given(MIXTURES)
def test_the_same_bytes_give_the_same_diagnosis(data: bytes) -> None:
    assert own_analyzer().text(data) == own_analyzer().text(data)


@settings(GENEROUS, max_examples=60)
@given(st.lists(cut_messages(), max_size=12))
def test_line_ends_do_not_change_the_verdict(messages: list[bytes]) -> None:
    lines = [message.replace(b"\n", b" ") for message in messages]
    unix = own_analyzer().text(b"\n".join(lines))
    windows = own_analyzer().text(b"\r\n".join(lines))
    assert (unix.resource, unix.code, unix.numbers) == (
        windows.resource,
        windows.code,
        windows.numbers,
    )


@settings(GENEROUS, max_examples=60)
@given(
    st.lists(
        st.sampled_from(["INFO start", "DEBUG 12 x", "hello", "", "loading: 12%", "x = [1, 2]"]),
        max_size=30,
    )
)
def test_small_talk_is_no_failure(lines: list[str]) -> None:
    diagnosis = own_analyzer().text("\n".join(lines))
    assert (diagnosis.resource, diagnosis.exit_code, diagnosis.evidence) == ("none", 0, [])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\0",
        b"\0" * 5000,
        b"\r" * 5000,
        b"\xff" * 5000,
        b"\xff\xfe",
        b"\xfe\xff",
        b"\xef\xbb\xbf",
        b"\x1b" * 5000,
        b"\x1b[" * 3000,
        b"(" * 20_000,
        b'{"msg": ' * 3000,
        b"[" * 20_000,
        b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
        b"CUDA out of memory. Tried to allocate " + b"9" * 20_000 + b" GiB",
        b"CUDA out of memory. Tried to allocate 1" + b"0" * 400 + b".00 GiB.",
        b"out of resource: shared memory, Required: " + b"9" * 400 + b", Hardware limit: 0",
        b"out of resource: shared memory, Required: 0, Hardware limit: 0.",
        "CUDA out of memory. Tried to allocate ２.００ GiB.".encode(),
        "out of resource: shared memory, Required: ٣٤, Hardware limit: ٣٣".encode(),
        (
            b"Free memory on device (0.00/0.00 GiB) on startup is less than desired GPU memory "
            b"utilization (0.0, 0.00 GiB)."
        ),
        b"uses too much shared data (0x" + b"f" * 5000 + b" bytes, 0x0 max)",
    ],
    ids=range(23),
)
def test_odd_inputs_one_by_one(data: bytes) -> None:
    diagnosis = own_analyzer().text(data)
    if not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        assert_sound(diagnosis, data)


def test_no_source_line_of_a_traceback_is_the_root() -> None:
    data = (
        b"Traceback (most recent call last):\n"
        b'  File "a.py", line 1, in f\n'
        b'    raise OutOfResources("out of resource: shared memory, Required: 2, Hardware limit: 1")\n'
        b"KeyError: 1\n"
    )
    diagnosis = own_analyzer().text(data)
    assert diagnosis.resource == "none"


# --- linear time

#: Shapes that have broken parsers like this one: repeated within long lines and as lines of their own.
SHAPES = {
    "tracebacks": "Traceback (most recent call last):\n",
    "frames": '  File "x.py", line 1, in f\n',
    "half a frame": 'File "',
    "frames and code": '  File "x.py", line 1, in f\n    raise RuntimeError("CUDA out of memory")\n',
    "exceptions": "RuntimeError: x\n",
    "chains": "During handling of the above exception, another exception occurred:\n",
    "round brackets": "(",
    "square brackets": "[",
    "braces": "{",
    "digits": "1",
    "spaces": " ",
    "backticks": "`",
    "quotes": '"',
    "dots": "a.",
    "colons": "a: ",
    "escapes": "\x1b[",
    "lost escapes": "[1;36m(",
    "entities": "&amp;",
    "blank lines": "\n",
    "fences": "```\n",
    "headings": "# a\n",
    "quotations": "> ",
    "boxes": "│ x\n",
    "ranks": "[rank0]: x ",
    "rank lines": "[rank0]: x\n",
    "processes": "(VllmWorker rank=7 pid=1) ",
    "times": "2025-05-04 01:05:33 ",
    "levels": "ERROR ",
    "free memory": "Free memory on device ",
    "out of resource": "out of resource: ",
    "out of memory": "CUDA out of memory. ",
    "sizes": "1.00 GiB ",
    "required": "Required: 1, Hardware limit: 1 ",
    "process clauses": "Process 1 has 1.00 GiB memory in use. ",
    "escaped breaks": "\\n",
    "escaped tracebacks": 'Traceback (most\\n  File \\"x\\"\\n',
    "out of memory lines": "CUDA out of memory. \n",
    "out of resource lines": "out of resource: shared memory, Required: 98304, Hardware limit: 65536.\n",
    "whole messages": MESSAGES[5].decode() + "\n",
    "masks": "Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
    "banners": "INFO vLLM API server version 0.9\nRuntimeError: CUDA error: out of memory\n",
    "json": '{"level": "error", "msg": "CUDA out of memory. Tried to allocate 2.00 GiB."}\n',
    "json, never closed": '{"msg": ',
    "tables": "|  0%   35C    P8 |   1MiB / 24576MiB |\n",
    "progress": "step 1 loss 1 it/s\n",
    "wrapped rows": "x" * 79 + "y\n",
    "carriage returns": "50%|##\r",
}
SMALL = 6_000
FACTOR = 10
#: Ten times the input may take ten times the time; thirty times leaves room for a loaded machine.
ALLOWED = 30
#: Below this a measurement says nothing; a shape may always take so long.
NEGLIGIBLE_S = 0.75
#: Nobody waits longer for sixty kilobytes, however they grow.
HANG_S = 5.0


def seconds(data: bytes) -> float:
    """Seconds of this process alone: other work on the machine does not count."""
    gc.collect()
    start = time.process_time()
    default_analyzer().text(data)
    return time.process_time() - start


def of_size(shape: str, size: int, *, in_line: bool) -> bytes:
    if in_line:
        shape = shape.replace("\n", " ")
        shape = (shape * (2000 // len(shape) + 1))[:2000] + "\n"
    return (shape * (size // len(shape) + 1))[:size].encode()


@pytest.mark.parametrize("in_line", [False, True], ids=["lines", "in a line"])
@pytest.mark.parametrize("shape", SHAPES)
def test_ten_times_the_input_takes_about_ten_times_the_time(shape: str, in_line: bool) -> None:
    small = of_size(SHAPES[shape], SMALL, in_line=in_line)
    large = of_size(SHAPES[shape], SMALL * FACTOR, in_line=in_line)
    seconds(small)  # compiles the rules that this shape needs
    base = seconds(small)
    taken = seconds(large)
    assert taken < max(ALLOWED * base, NEGLIGIBLE_S)
    assert taken < HANG_S


OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {}.00 MiB. GPU 0 has a total "
    "capacity of 23.65 GiB of which 10.26 GiB is free.\n"
)
SKIPPED = "WARNING skipping batch: CUDA out of memory. Tried to allocate {}.00 MiB.\n"


@pytest.mark.parametrize(
    "text",
    [
        "".join(OOM.format(number) for number in range(200))
        + "".join(f"DEBUG request {number} was handled by the worker\n" for number in range(2500)),
        "".join(SKIPPED.format(n) + f"step {n} loss 0.5\n" for n in range(1500)),
    ],
    ids=["failures, then chatter", "batches skipped"],
)
def test_hundreds_of_failures_are_judged_in_time(text: str) -> None:
    """Whether each was survived is asked of all the lines below it."""
    assert seconds(text.encode()) < HANG_S


@pytest.mark.parametrize("count", [50, 150, 199, 201, 250, 400])
def test_the_failure_that_ended_a_run_is_the_root_however_many_were_survived(count: int) -> None:
    skipped = "".join(
        "WARNING batch " + "b" * (n % 9 + 1) + " skipped: " + OOM.format(n + 1) + f"step {n} loss 0.5\n"
        for n in range(count)
    )
    end = (
        'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n'
        "    loss.backward()\n" + OOM.format(7777)
    )
    diagnosis = default_analyzer().text(skipped + end)
    root = next(quote for quote in diagnosis.evidence if quote.role == "root")
    assert (diagnosis.resource, diagnosis.status) == ("device_memory", "fatal")
    assert root.line == 2 * count + 4
    assert diagnosis.numbers["requested_bytes"] == 7777 << 20
