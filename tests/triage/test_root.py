"""The root cause: the one event that everything after it follows from."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.api import Analyzer
from oortriage.evidence.matcher import Matcher
from tests.triage.messages import NO_BLOCKS, PLAIN, SHARED, traceback
from tests.triage.reading import root_of

GATE = (
    "ValueError: Free memory on device (3.22/4.0 GiB) on startup is less than desired GPU memory "
    "utilization (0.9, 3.6 GiB). Decrease GPU memory utilization or reduce GPU memory used by other "
    "processes."
)
#: Lines that only say that another process or task failed (knowledge file, masking lines).
WRAPPERS = (
    "Background loop has errored already.",
    "AsyncLLMEngine is already dead, terminating server process",
    "RuntimeError: Engine process failed to start. See stack trace for the root cause.",
    "CRITICAL 03-13 09:00:43 [core_client.py:361] Got fatal signal from worker processes, shutting down. See stack trace above for root cause issue.",
    "EngineCore failed to start.",
    "EngineCore encountered a fatal error.",
    "WorkerProc failed to start.",
    "WorkerProc hit an exception.",
    "Exception: WorkerProc initialization failed due to an exception in a background process. See stack trace for root cause.",
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': 1}",
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
    "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.",
    "Worker proc VllmWorker-0 died unexpectedly, shutting down executor.",
    "TimeoutError: RPC call to execute_model timed out.",
    "Received sigquit from a child process. It usually means the child failed.",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
)
FAILURES = ((PLAIN, "device_memory"), (SHARED, "shared_memory"), (NO_BLOCKS, "kv_cache"), (GATE, "device_memory"))
BENIGN = (
    "INFO 03-01 10:00:00 [gpu_worker.py:300] Free memory on device (70.1/79.15 GiB) on startup. Desired GPU memory utilization is (0.9, 71.2 GiB).",
    "/usr/lib/python3.12/multiprocessing/resource_tracker.py:279: UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects to clean up at shutdown",
    "CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of memory, consider decreasing `gpu_memory_utilization` or enforcing eager mode.",
    "INFO 03-01 10:00:00 [shm_broadcast.py:501] No available shared memory broadcast block found in 60 seconds.",
)
DURING = "During handling of the above exception, another exception occurred:"
DIRECT = "The above exception was the direct cause of the following exception:"


# ---------------------------------------------------------------------------------- wrappers


@settings(deadline=None, max_examples=120)
@given(
    wrappers=st.lists(st.sampled_from(WRAPPERS), max_size=8),
    failure=st.sampled_from(FAILURES),
    place=st.integers(0, 8),
)
def test_a_wrapper_never_wins_wherever_the_failure_stands(
    wrappers: list[str], failure: tuple[str, str], place: int, analyzer: Analyzer
) -> None:
    message, resource = failure
    at = min(place, len(wrappers))
    lines = [*wrappers[:at], message, *wrappers[at:]]
    diagnosis = analyzer.text("\n".join(lines) + "\n")
    assert diagnosis.resource == resource
    assert diagnosis.exit_code == 1
    assert diagnosis.evidence[0].role == "root"
    assert diagnosis.evidence[0].line == at + 1
    assert (len(diagnosis.masked_by) > 0) is (len(wrappers) > 0)


@settings(deadline=None, max_examples=80)
@given(wrappers=st.lists(st.sampled_from(WRAPPERS), min_size=1, max_size=8))
def test_wrappers_alone_are_undetermined(wrappers: list[str], analyzer: Analyzer) -> None:
    diagnosis = analyzer.text("\n".join(wrappers) + "\n")
    assert diagnosis.resource == "undetermined"
    assert diagnosis.exit_code == 3
    assert diagnosis.confidence < 0.5
    assert diagnosis.missing, "what to send is named"
    assert diagnosis.evidence[0].role == "wrapper"


def test_the_mask_may_stand_before_the_root(analyzer: Analyzer) -> None:
    """vllm#16107: the client's line is printed 9 ms before the worker's traceback."""
    text = (
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. "
        "Failed core proc(s): {}\n"
        + traceback(NO_BLOCKS, prefix="(EngineCore_DP0 pid=270) ERROR 06-25 12:01:00 [core.py:718] ")
    )
    diagnosis = analyzer.text(text)
    assert (diagnosis.resource, diagnosis.evidence[0].line) == ("kv_cache", 5)
    assert [mask.line for mask in diagnosis.masked_by] == [1]


def test_a_wrapper_that_quotes_the_failure_is_still_a_wrapper(analyzer: Analyzer) -> None:
    quoted = SHARED.partition(": ")[2]
    text = (
        traceback(SHARED, prefix="(Worker_TP0 pid=401) ")
        + f"(EngineCore pid=268) RuntimeError: Worker failed with error '{quoted}', please check the "
        "stack trace above for the root cause\n"
    )
    diagnosis = analyzer.text(text)
    assert diagnosis.evidence[0].line == 4
    assert diagnosis.evidence[0].stream == "Worker_TP0 pid=401"
    assert 5 in {mask.line for mask in diagnosis.masked_by}


def test_a_mask_is_listed_once_however_often_it_is_printed(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(f"{SHARED}\n" + f"{WRAPPERS[7]}\n" * 8)
    assert [mask.line for mask in diagnosis.masked_by] == [2]


# --------------------------------------------------------------------------- order and streams


def test_a_log_printed_newest_first_is_read_from_its_end(analyzer: Analyzer) -> None:
    """worker-vllm#40: viewers of cloud logs print backwards."""
    lines = [f"2026-03-01T10:00:{second:02d}Z INFO loading shard {second}" for second in range(10)]
    lines += [
        f"2026-03-01T10:00:11Z {SHARED}",
        "2026-03-01T10:00:12Z EngineCore encountered a fatal error.",
        f"2026-03-01T10:00:13Z {PLAIN}",
    ]
    diagnosis = analyzer.text("\n".join(reversed(lines)) + "\n")
    # Read in order of time the shared-memory failure is first; as printed it would come last.
    assert diagnosis.resource == "shared_memory"
    assert diagnosis.evidence[0].line == 3
    assert diagnosis.evidence[0].text == lines[10]
    assert any("newest first" in note for note in diagnosis.notes)


def test_the_first_failure_of_a_run_is_the_root(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(traceback(SHARED) + traceback(PLAIN))
    assert diagnosis.resource == "shared_memory"
    diagnosis = analyzer.text(traceback(PLAIN) + traceback(SHARED))
    assert diagnosis.resource == "device_memory"


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_ranks_that_fail_alike_are_one_failure(ranks: int, analyzer: Analyzer) -> None:
    text = "".join(traceback(SHARED, prefix=f"[rank{rank}]: ") for rank in range(ranks))
    diagnosis = analyzer.text(text)
    assert diagnosis.occurrences == ranks
    assert diagnosis.streams == [f"rank={rank}" for rank in range(ranks)]
    assert diagnosis.others == []
    assert diagnosis.evidence[0].line == 4


def test_ranks_that_interleave_line_by_line_are_told_apart(analyzer: Analyzer) -> None:
    """vllm#14452 and sglang#6001: the tracebacks of all ranks run through each other."""
    blocks = [
        traceback(
            SHARED, ("/app/a.py", "f"), prefix=f"(Worker_TP{rank} pid={400 + rank}) ERROR 03-11 09:18:55 [x.py:1] "
        )
        for rank in range(4)
    ]
    rows = zip(*(block.splitlines() for block in blocks), strict=True)
    text = "\n".join(line for row in rows for line in row) + "\n"
    diagnosis = analyzer.text(text)
    assert (diagnosis.resource, diagnosis.occurrences) == ("shared_memory", 4)
    assert diagnosis.evidence[0].line == 13
    assert diagnosis.evidence[0].stream == "Worker_TP0 pid=400"


def test_another_shortage_of_another_rank_is_later_and_not_the_same(analyzer: Analyzer) -> None:
    text = traceback(SHARED, prefix="[rank0]: ") + traceback(PLAIN, prefix="[rank1]: ")
    diagnosis = analyzer.text(text)
    assert diagnosis.occurrences == 1
    assert [(one.resource, one.relation) for one in diagnosis.others] == [("device_memory", "later")]
    assert diagnosis.confidence < analyzer.text(traceback(SHARED)).confidence


# ---------------------------------------------------------------------------------- two runs


@pytest.mark.parametrize(
    "start",
    [
        "$ vllm serve org/m --gpu-memory-utilization 0.3",
        "INFO 03-01 10:05:00 [utils.py:302] vLLM API server version 0.17.1",
        "user@host:~$ python serve.py",
        "INFO 03-01 10:05:00 [__init__.py:216] Automatically detected platform cuda.",
    ],
)
def test_of_two_runs_in_one_paste_the_last_failure_is_the_root(start: str, analyzer: Analyzer) -> None:
    """vllm#27508 and #27934: up gives an OOM, down gives zero blocks, both in one report."""
    diagnosis = analyzer.text(traceback(PLAIN) + f"{start}\n" + traceback(NO_BLOCKS))
    assert (diagnosis.resource, diagnosis.evidence[0].line) == ("kv_cache", 9)
    assert [(one.code[:2], one.line, one.relation) for one in diagnosis.others] == [("DM", 4, "other_run")]


def test_a_crash_loop_is_one_failure_shown_at_its_first_run(analyzer: Analyzer) -> None:
    start = "INFO 03-01 10:05:00 [utils.py:302] vLLM API server version 0.17.1\n"
    diagnosis = analyzer.text((start + traceback(NO_BLOCKS)) * 4)
    assert diagnosis.resource == "kv_cache"
    assert diagnosis.evidence[0].line == 5
    assert diagnosis.others == []


def test_banners_of_several_processes_before_the_failure_are_one_run(analyzer: Analyzer) -> None:
    banner = "INFO 03-01 10:05:00 [__init__.py:216] Automatically detected platform cuda.\n"
    text = banner * 3 + traceback(SHARED) + traceback(PLAIN)
    diagnosis = analyzer.text(text)
    assert diagnosis.resource == "shared_memory"
    assert [one.relation for one in diagnosis.others if one.relation == "other_run"] == []


# ------------------------------------------------------------------- survived and secondary


def test_an_oom_after_a_timeout_that_killed_the_run_is_not_the_root(analyzer: Analyzer) -> None:
    """The restart or the clean-up runs out of memory because the dead process still holds it."""
    timeout = (
        "torch.distributed.DistBackendError: [Rank 3] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=10, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600100 milliseconds before "
        "timing out."
    )
    text = traceback(timeout) + "EngineCore encountered a fatal error.\n" + traceback(PLAIN)
    diagnosis = analyzer.text(text)
    assert (diagnosis.resource, diagnosis.exit_code) == ("none", 0)
    assert diagnosis.evidence[0].line == 4
    # The other way round the timeout is what the ranks that wait see of the OOM.
    text = traceback(PLAIN) + "EngineCore encountered a fatal error.\n" + traceback(timeout)
    assert analyzer.text(text).resource == "device_memory"


AUTOTUNE = (
    "Autotuning failed with out of resource: shared memory, Required: 131072, Hardware limit: "
    "101376. Reducing block sizes or `num_stages` may help.\n"
)


def test_configurations_that_an_autotuner_drops_are_recovered(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(f"{AUTOTUNE * 3}step 1 loss 2.3\nstep 2 loss 2.2\n")
    assert (diagnosis.resource, diagnosis.status, diagnosis.exit_code) == ("none", "recovered", 0)
    assert {one.role for one in diagnosis.evidence} == {"recovered"}


def test_a_failure_after_dropped_configurations_is_the_root(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(AUTOTUNE * 3 + traceback(PLAIN))
    assert (diagnosis.resource, diagnosis.status) == ("device_memory", "fatal")
    assert diagnosis.evidence[0].line == 7


@pytest.mark.parametrize(
    "progress",
    ["retrying with batch size 4\n", "epoch 1 step 11 loss 2.10\n", "falling back to a smaller tile\n"],
)
def test_a_logged_failure_that_the_program_got_over_is_recovered(progress: str, analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(f"WARNING {PLAIN.partition(': ')[2]}\n{progress}")
    assert (diagnosis.resource, diagnosis.status) == ("none", "recovered")


def test_progress_that_ends_in_death_is_no_recovery(analyzer: Analyzer) -> None:
    text = f"WARNING {PLAIN.partition(': ')[2]}\nstep 11 loss 2.1\nRuntimeError: training failed\n"
    assert analyzer.text(text).resource == "device_memory"


def test_a_single_line_of_progress_does_not_undo_a_traceback(analyzer: Analyzer) -> None:
    assert analyzer.text(traceback(PLAIN) + "step 11 loss 2.1\n").resource == "device_memory"


def test_a_kill_after_a_reported_death_is_the_clean_up(analyzer: Analyzer) -> None:
    assert analyzer.text("EngineCore encountered a fatal error.\nKilled\n").resource == "undetermined"
    assert analyzer.text("loading shard 3\nKilled\n").resource == "host_memory"


# ------------------------------------------------------------------------------------- chains


def test_the_resource_failure_inside_a_chain_is_the_root(analyzer: Analyzer) -> None:
    """An old Triton misses its cache (KeyError) before the launch that really fails."""
    text = (
        traceback("KeyError: ('2-.-0-.-0', 'fp16')")
        + f"\n{DURING}\n\n"
        + traceback(SHARED)
        + f"\n{DURING}\n\n"
        + traceback("RuntimeError: worker failed")
    )
    diagnosis = analyzer.text(text)
    assert diagnosis.resource == "shared_memory"
    assert diagnosis.evidence[0].line == 11


@pytest.mark.parametrize("chain", [DURING, DIRECT])
@pytest.mark.parametrize(("message", "resource"), FAILURES, ids=["oom", "shared", "blocks", "gate"])
def test_exceptions_wrapped_round_a_failure_do_not_hide_it(
    chain: str, message: str, resource: str, analyzer: Analyzer
) -> None:
    text = traceback(message) + f"\n{chain}\n\n" + traceback("RuntimeError: the task failed")
    assert analyzer.text(text).resource == resource


def test_a_companion_of_the_same_chain_adds_its_figures(analyzer: Analyzer) -> None:
    outer = (
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. "
        "Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine."
    )
    diagnosis = analyzer.text(traceback(PLAIN) + f"\n{DIRECT}\n\n" + traceback(outer))
    assert diagnosis.numbers["dummy_requests"] == 1024
    assert diagnosis.numbers["requested_bytes"] == 2 * 1024**3
    assert [one.role for one in diagnosis.evidence] == ["root", "same_failure"]


# --------------------------------------------------------------------- unrelated, clean, talk


@pytest.mark.parametrize(
    "exception",
    [
        "ModuleNotFoundError: No module named 'foo'",
        "KeyError: 'lm_head.weight'",
        "AssertionError: sizes must match",
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_an_unrelated_exception_is_no_resource_failure(exception: str, wrapped: bool, analyzer: Analyzer) -> None:
    text = traceback(exception) + ("EngineCore failed to start.\n" if wrapped else "")
    diagnosis = analyzer.text(text)
    assert (diagnosis.resource, diagnosis.cause, diagnosis.exit_code) == ("none", "unrelated", 0)
    assert diagnosis.evidence[0].line == 4


@pytest.mark.parametrize("line", BENIGN)
def test_look_alikes_are_no_failure(line: str, analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(f"{line}\n")
    assert (diagnosis.resource, diagnosis.exit_code) == ("none", 0)


@settings(deadline=None, max_examples=60)
@given(
    before=st.lists(st.sampled_from((*BENIGN, "loading shard 3", "")), max_size=6),
    after=st.lists(st.sampled_from((*BENIGN, "Aborted (core dumped)", "")), max_size=6),
    failure=st.sampled_from(FAILURES),
)
def test_look_alikes_around_a_failure_change_nothing(
    before: list[str], after: list[str], failure: tuple[str, str], analyzer: Analyzer
) -> None:
    message, resource = failure
    diagnosis = analyzer.text("\n".join([*before, message, *after]) + "\n")
    assert diagnosis.resource == resource
    assert diagnosis.evidence[0].line == len(before) + 1


def test_a_message_that_is_only_talked_about_is_no_failure(analyzer: Analyzer) -> None:
    text = 'To avoid errors such as "CUDA out of memory. Tried to allocate 2.00 GiB" lower the batch.\n'
    assert analyzer.text(text).exit_code == 0


@pytest.mark.parametrize("text", ["", "\n\n\n", "epoch 1 loss 2\nepoch 2 loss 1\n", "\x00\x01\x02"])
def test_nothing_failed_in_a_clean_log(text: str, analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(text)
    assert (diagnosis.resource, diagnosis.exit_code, diagnosis.evidence) == ("none", 0, [])


# ------------------------------------------------------------------------ the struct of a root


def test_a_root_sorts_everything_it_saw(matcher: Matcher) -> None:
    text = (
        f"{AUTOTUNE}EngineCore encountered a fatal error.\n"
        + traceback(SHARED, prefix="[rank0]: ")
        + traceback(SHARED, prefix="[rank1]: ")
        + traceback("KeyError: 'x'", prefix="[rank2]: ")
        + traceback(PLAIN, prefix="[rank3]: ")
    )
    root = root_of(text, matcher)
    assert root.event
    assert root.event.code == "SM101"
    assert [event.stream for event in root.same] == ["rank=1"]
    assert [event.code for event in root.wrappers] == ["WR106"]
    assert [event.code for event in root.recovered] == ["SM104"]
    assert [event.code for event in root.later] == ["DM101"]
    assert [raised.type for raised, _ in root.unknown] == ["KeyError"]
    assert root.other_runs == ()


def test_the_plainest_wording_goes_before_an_earlier_guess(matcher: Matcher) -> None:
    """A bare CUDA error may be anything; the message with figures says what it was."""
    root = root_of(f"RuntimeError: CUDA error: out of memory\n{traceback(PLAIN)}", matcher)
    assert root.event
    assert root.event.code == "DM101"


def test_what_is_raised_goes_before_what_is_only_logged(matcher: Matcher) -> None:
    logged = f"INFO 03-01 10:00:00 [x.py:1] {SHARED.partition(': ')[2]}"
    root = root_of(f"{logged}\n{traceback(PLAIN)}", matcher)
    assert root.event
    assert root.event.code == "DM101"
