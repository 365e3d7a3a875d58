"""The experiment beside the page: progress, end, stop, and what may be asked for."""

from __future__ import annotations

import io
import json
import os
import time

import msgspec
import pytest

from oortriage.replay import experiment as replay
from oortriage.replay import selection
from oortriage.replay.experiment import Experiment, GridCell
from oortriage.serve import run as serve_run
from oortriage.serve.experiment_child import run
from oortriage.serve.run import Ask, Told

JSON = {"content-type": "application/json"}
DONE = Experiment(
    schema_version=1,
    kernel="reference.attention",
    target="cuda:75",
    gpu="T4",
    triton="3.6.0",
    source="built in",
    limit_bytes=65536,
    factors={"TILE_SIZE": [16, 32]},
    baseline={"TILE_SIZE": 32},
    baseline_bytes=81920,
    cells=[GridCell({"TILE_SIZE": 16}, 40960, True), GridCell({"TILE_SIZE": 32}, 81920, False)],
    effects={"TILE_SIZE": 40960},
    interactions={},
    recommendation=None,
    sentence="TILE_SIZE moves the bytes by 40,960.",
)
READ = "import sys, time; sys.stdin.readline();"


@pytest.fixture
def child(monkeypatch):
    """Let another program stand for the child."""
    return lambda program: monkeypatch.setattr(serve_run, "_PROGRAM", program)


@pytest.fixture
def key(page, crash):
    return page.add(crash).json()["id"]


def start(page, key, **asked):
    return page("POST", f"logs/{key}/experiment", content=json.dumps(asked), headers=JSON)


def wait(page, key, state, seconds=20.0):
    end = time.monotonic() + seconds
    while (told := page("GET", f"logs/{key}/experiment").json())["state"] != state:
        assert time.monotonic() < end, told
        time.sleep(0.02)
    return told


def said(*told):
    lines = b"".join(msgspec.json.encode(one) + b"\n" for one in told)
    return f"{READ} sys.stdout.buffer.write({lines!r}); sys.stdout.flush()"


def test_progress_then_a_result_that_is_in_the_report(page, key, child):
    child(said(Told(0, 37), Told(5, 37)) + "; sys.stdin.read()")
    assert page("GET", f"logs/{key}/experiment").json()["state"] == "none"
    assert start(page, key).json()["state"] == "running"
    end = time.monotonic() + 20
    while page("GET", f"logs/{key}/experiment").json()["done"] != 5 and time.monotonic() < end:
        time.sleep(0.02)
    assert page("GET", f"logs/{key}/experiment").json()["all"] == 37
    assert page("DELETE", f"logs/{key}/experiment").json()["state"] == "stopped"
    child(said(Told(experiment=DONE)))
    assert start(page, key).status_code == 202
    assert wait(page, key, "done")["sentence"] == DONE.sentence
    written = page("GET", f"logs/{key}/report", params={"format": "json"}).json()
    assert written["experiment"]["baseline_bytes"] == 81920
    assert "oortriage experiment crash.log" in written["commands"]


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (said(Told(problem="Triton is not installed: pip install 'oortriage[triton]'")), "oortriage[triton]"),
        (READ + "sys.exit(7)", "ended with 7"),
        (READ + "print('no json')", "cannot be read"),
        ("import os; os.kill(os.getpid(), 9)", "ended with -9"),
    ],
)
def test_what_goes_wrong_is_said(page, key, child, program, problem):
    child(program)
    start(page, key)
    assert problem in wait(page, key, "failed")["problem"]
    assert page("GET", f"logs/{key}/report", params={"format": "json"}).json()["experiment"] is None


def test_one_experiment_at_a_time(page, key, child, crash):
    child(READ + "sys.stdin.read()")
    other = page.add(crash).json()["id"]
    assert start(page, key).status_code == 202
    assert start(page, key).status_code == 409
    assert start(page, other).status_code == 409
    page("DELETE", f"logs/{key}/experiment")
    assert start(page, other).status_code == 202
    assert page("DELETE", f"logs/{other}").status_code == 204  # forgotten, and so ended
    end = time.monotonic() + 20
    while start(page, key).status_code == 409 and time.monotonic() < end:
        time.sleep(0.02)
    assert page("GET", f"logs/{key}/experiment").json()["state"] == "running"


def test_the_end_of_the_server_ends_the_child(page, key, child, tmp_path):
    mark = tmp_path / "pid"
    child(f"{READ} import os; open({str(mark)!r}, 'w').write(str(os.getpid())); sys.stdin.read()")
    start(page, key)
    end = time.monotonic() + 20
    while not (mark.exists() and mark.read_text()) and time.monotonic() < end:
        time.sleep(0.02)
    page.client.__exit__(None, None, None)
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)
    page.client.__enter__()


@pytest.mark.parametrize("kernel", ["/etc/passwd:main", "evil.py:kernel", "capsule.json", "nothing"])
def test_a_kernel_that_would_run_code_is_refused(page, key, kernel):
    assert start(page, key, kernel=kernel).status_code == 422
    assert page("GET", f"logs/{key}/experiment").json()["state"] == "none"


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"kernel": 1}', b'{"source": "/"}', b"[" * 3000, b"\xff\xfe"])
def test_other_bodies_are_refused(page, key, body):
    assert page("POST", f"logs/{key}/experiment", content=body, headers=JSON).status_code == 422


def test_a_large_or_simple_body_is_refused(page, key):
    assert page("POST", f"logs/{key}/experiment", content=b" " * 5000, headers=JSON).status_code == 413
    simple = {"content-type": "text/plain"}
    assert page("POST", f"logs/{key}/experiment", content=b"{}", headers=simple).status_code == 415
    assert start(page, key, gpu="x" * 61).status_code == 422


def test_the_real_child_says_why_there_is_no_kernel(page):
    key = page.add(b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.\n").json()["id"]
    assert start(page, key).status_code == 202
    assert "shared memory" in wait(page, key, "failed")["problem"]


def test_the_child_asks_as_the_command_does(analyzer, crash, monkeypatch):
    asked = []

    def compiled(chosen, factors, *, progress):
        asked.append((chosen, factors))
        progress(1, 2)
        return DONE

    monkeypatch.setattr(selection, "select", lambda options, diagnosis: (options.kernel, options.gpu, diagnosis))
    monkeypatch.setattr(replay, "experiment", compiled)
    out = io.BytesIO()
    diagnosis = analyzer.text(crash)
    assert run(Ask(diagnosis, "reference.attention", "T4"), out).experiment == DONE
    assert asked == [(("reference.attention", "T4", diagnosis), {})]
    assert json.loads(out.getvalue()) == {"done": 1, "all": 2}
