"""Children over logs: one that dies, stalls or babbles costs its log, and nothing else."""

from __future__ import annotations

import textwrap
import time

import pytest

from oortriage.grouping.pool import Pool, PoolError

#: A reader that does to a log what its name says.
PROGRAM = textwrap.dedent(
    """
    import base64, json, os, sys, time

    def say(**answer):
        print(json.dumps(answer), flush=True)

    say(ready=True)
    for line in sys.stdin:
        name = base64.b64decode(json.loads(line)).decode()
        if name == "die":
            os.kill(os.getpid(), 9)
        if name == "leave":
            os._exit(7)
        if name == "stall":
            time.sleep(600)
        if name == "babble":
            print("no JSON", flush=True)
        say(failed=f"{os.getpid()} read {name}")
    """
)


def read(names: list[str], jobs: int = 2, seconds: float = 30, program: str = PROGRAM) -> dict[str, str]:
    answers = list(Pool([], jobs, seconds, program).over(names))
    assert len(answers) == len(names)
    return {name: answer.failed for name, answer in answers}


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_log_has_one_answer(jobs: int) -> None:
    names = [str(number) for number in range(20)]
    told = read(names, jobs)
    assert sorted(told) == sorted(names)
    assert len({text.split()[0] for text in told.values()}) <= jobs


@pytest.mark.parametrize(
    ("name", "reason"),
    [("die", "its reader was killed by signal 9"), ("leave", "its reader ended with exit code 7")],
)
def test_a_log_that_kills_its_reader_is_named_and_the_rest_is_read(name: str, reason: str) -> None:
    told = read(["a", name, "b", "c"], jobs=1)
    assert told[name] == reason
    assert all(f"read {one}" in told[one] for one in "abc")


def test_a_log_that_stalls_is_given_up() -> None:
    began = time.monotonic()
    told = read(["stall", "a", "b"], jobs=1, seconds=2)
    assert told["stall"] == "reading it took longer than 2 seconds"
    assert told["a"].endswith("read a")
    assert time.monotonic() - began < 30


def test_half_an_answer_costs_its_log() -> None:
    told = read(["babble", "a"], jobs=1)
    assert "reader" in told["babble"]
    assert told["a"].endswith("read a")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ('print(\'{"fatal": "rule x is wrong"}\')', "rule x is wrong"),
        ("import sys; sys.exit(3)", "a reader ended as it started (3)"),
    ],
)
def test_readers_that_cannot_work_end_the_run(program: str, message: str) -> None:
    with pytest.raises(PoolError) as caught:
        read(["a", "b", "c"], program=program)
    assert str(caught.value) == message


def test_who_stops_listening_ends_the_readers() -> None:
    pool = Pool([], 2, 30, PROGRAM)
    answers = pool.over(["a", "stall", "b", "stall"])
    next(answers)
    began = time.monotonic()
    answers.close()
    assert time.monotonic() - began < 10
    assert not [child for child in pool._children if child._process.poll() is None]


def test_no_logs_need_no_reader() -> None:
    assert read([], program="raise SystemExit") == {}
