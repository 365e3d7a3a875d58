"""How a card is chosen and used, and what becomes of a child that dies; without a card."""

from __future__ import annotations

import subprocess

import msgspec
import pytest

from oortriage.errors import UsageError
from oortriage.replay import live
from oortriage.replay.compiler_env import CompilerEnv
from oortriage.replay.job import Cell, Failure, Job, LiveResult, Outcome
from oortriage.replay.live import LocalCard, NoCardError, choose_mode, local_card, run_live
from oortriage.replay.options import Options
from oortriage.replay.selection import select

H200, T4 = LocalCard("NVIDIA H200", (9, 0), 1), LocalCard("Tesla T4", (7, 5), 1)


@pytest.fixture(autouse=True)
def _ask_anew():
    local_card.cache_clear()
    yield
    local_card.cache_clear()


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("oortriage.replay.selection.compiler_env", lambda _: CompilerEnv("3.6.0"))
    return lambda gpu: select(Options(kernel="reference.attention", gpu=gpu))


@pytest.mark.parametrize(
    ("wanted", "card", "gpu", "mode"),
    [
        ("auto", T4, "T4", "native"),
        ("auto", H200, "T4", "emulated"),
        ("auto", H200, "H100", "native"),
        ("native", H200, "T4", "native"),
        ("emulated", H200, "RTX 4090", "emulated"),
        ("emulated", T4, "T4", "emulated"),
    ],
)
def test_the_card_itself_when_it_is_the_failing_kind(wanted, card, gpu, mode, chosen) -> None:
    assert choose_mode(wanted, card, chosen(gpu).card.target) == mode


@pytest.mark.parametrize(
    ("wanted", "card", "gpu", "words"),
    [
        ("auto", T4, "H100", "only an older card"),
        ("auto", H200, "MI300X", "AMD"),
        ("sideways", H200, "T4", "native or emulated"),
    ],
)
def test_what_cannot_be_played_is_a_usage_error(wanted, card, gpu, words, chosen) -> None:
    with pytest.raises(UsageError, match=words):
        choose_mode(wanted, card, chosen(gpu).card.target)


def answering(monkeypatch, **given) -> None:
    done = subprocess.CompletedProcess([], **{"returncode": 0, "stdout": "", "stderr": "", **given})
    monkeypatch.setattr(live.subprocess, "run", lambda *_a, **_k: done)


def test_a_card_is_what_torch_says(monkeypatch) -> None:
    answering(monkeypatch, stdout='a warning\n["NVIDIA H200", [9, 0], 2]\n')
    assert local_card(1) == LocalCard("NVIDIA H200", (9, 0), 2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"returncode": 1, "stderr": "x\nModuleNotFoundError: No module named 'torch'"}, "No module named 'torch'"),
        ({"returncode": -11}, "no reason given"),
        ({"stdout": '["", [0, 0], 0]'}, "sees no CUDA device"),
        ({"stdout": '["", [0, 0], 2]'}, "there are 2 CUDA devices"),
    ],
)
def test_no_card_says_what_is_missing(given, words, monkeypatch) -> None:
    answering(monkeypatch, **given)
    with pytest.raises(NoCardError, match=words):
        local_card(5)


def test_a_driver_that_hangs_is_no_card(monkeypatch) -> None:
    def hang(*_a, **_k):
        raise subprocess.TimeoutExpired("python", 180)

    monkeypatch.setattr(live.subprocess, "run", hang)
    with pytest.raises(NoCardError, match="did not answer"):
        local_card()


def running(monkeypatch, outcomes) -> list[Job]:
    jobs: list[Job] = []

    def run_job(job, _env, done, **_):
        jobs.append(job)
        for index, outcome in enumerate(outcomes):
            done(msgspec.structs.replace(outcome, cell=index))

    monkeypatch.setattr(live, "run_job", run_job)
    monkeypatch.setattr(live, "local_card", lambda _device=0: H200)
    return jobs


def test_a_child_that_died_is_a_result_with_its_reason(monkeypatch, chosen) -> None:
    result = LiveResult("ran", "NVIDIA H200", "emulated")
    running(
        monkeypatch,
        [Outcome(0, failure=Failure("crashed", "the process was killed (SIGKILL)")), Outcome(1, live=result)],
    )
    run = run_live(chosen("T4"), [Cell(), Cell()], "auto")
    assert [(one.status, one.message) for one in run.results] == [
        ("failed", "the process was killed (SIGKILL)"),
        ("ran", ""),
    ]


def test_playing_keeps_the_failing_cards_target_and_limit_and_says_what_times_mean(monkeypatch, chosen) -> None:
    jobs = running(monkeypatch, [Outcome(0, live=LiveResult("ran", "NVIDIA H200", "emulated"))])
    run = run_live(chosen("T4"), [Cell()], "auto")
    assert (jobs[0].card.target.name, jobs[0].card.limit_bytes) == ("sm_75", 65_536)
    assert any("only their ratios" in note for note in run.notes)


def test_forced_natively_the_card_has_its_own_target_and_limit(monkeypatch, chosen) -> None:
    jobs = running(monkeypatch, [Outcome(0, live=LiveResult("ran", "NVIDIA H200", "native"))])
    run = run_live(chosen("T4"), [Cell()], "native")
    assert (jobs[0].card.target.name, jobs[0].card.limit_bytes) == ("sm_90", 232_448)
    assert any("its own target and limit" in note for note in run.notes)
