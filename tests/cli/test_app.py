"""The command as a whole: its verbs, its errors, its end, and what starting it costs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import oortriage
from oortriage.cli.app import main
from tests.cli.conftest import CLEAN, T4, Run, command, complained

VERBS = (
    "analyze",
    "run",
    "reproduce",
    "experiment",
    "report",
    "group",
    "budget",
    "serve",
    "fit",
    "kernels",
    "device",
    "snapshot",
    "lint",
    "doctor",
    "watch",
    "demo",
    "explain",
    "schema",
    "rules",
    "cases",
    "patch",
)


def test_the_installed_script_is_this_command() -> None:
    (script,) = entry_points(group="console_scripts", name="oortriage")
    assert script.load() is main


def test_version(run: Run) -> None:
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"oortriage {oortriage.__version__}\n", "")


def test_help_lists_every_verb(run: Run) -> None:
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert set(re.findall(r"(?m)^  (\w+)  ", done.stdout)) == set(VERBS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["analyse"], "analyse"),
        (["analyze", "--format", "yaml", "x.log"], "yaml"),
    ],
)
def test_wrong_usage_ends_with_two_and_names_it(run: Run, arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def modules_after(statement: str, env: dict[str, str], cwd: Path) -> set[str]:
    code = f"import sys; before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=cwd, timeout=60, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_the_command_imports_nothing_heavy(environment: dict[str, str], nowhere: Path) -> None:
    loaded = modules_after("import oortriage.cli.app", environment, nowhere)
    assert "typer" in loaded
    assert loaded & {"torch", "triton", "vllm", "httpx", "jinja2", "requests", "numpy", "pynvml", "ray"} == set()


def test_analyzing_imports_nothing_heavy(environment: dict[str, str], nowhere: Path) -> None:
    loaded = modules_after(f"import oortriage; oortriage.analyze({str(T4)!r})", environment, nowhere)
    assert "msgspec" in loaded
    assert loaded & {"torch", "triton", "vllm", "httpx", "jinja2", "requests", "numpy", "pynvml", "ray"} == set()
    assert loaded & {"typer", "rich"} == set()


def test_the_package_by_itself_imports_next_to_nothing(environment: dict[str, str], nowhere: Path) -> None:
    loaded = modules_after("import oortriage", environment, nowhere)
    assert "oortriage" in loaded
    assert loaded & {"typer", "rich", "msgspec", "regex", "ahocorasick_rs", "zstandard", "click"} == set()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end otherwise there")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["analyze", CLEAN], 0), (["analyze", T4], 1), (["analyze", "-f", "json", CLEAN], 0), (["rules", "list"], 0)],
    ids=["clean", "found", "json", "list"],
)
def test_a_reader_that_goes_away_is_no_failure(
    environment: dict[str, str], nowhere: Path, arguments: list[str | Path], code: int
) -> None:
    """``| head`` on a clean log: silence, and not the code that means a failure was found."""
    process = subprocess.Popen(
        command(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=nowhere
    )
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=60), complaint) == (code, b"")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe")
def test_an_interrupt_ends_with_130_and_silence(environment: dict[str, str], nowhere: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "endless.log"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        command(["analyze", pipe]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=nowhere
    )
    with pipe.open("wb"):  # opens when the command has opened its end
        process.send_signal(signal.SIGINT)
        out, complaint = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in complaint


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["analyze", CLEAN], ["demo", "--log"], ["rules", "list"]])
def test_a_full_disk_is_one_line_and_two(
    environment: dict[str, str], nowhere: Path, arguments: list[str | Path]
) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command(arguments), stdout=full, stderr=subprocess.PIPE, env=environment, cwd=nowhere,
            timeout=60, check=False,
        )  # fmt: skip
    assert b"Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.returncode == 2


def test_a_narrow_encoding_does_not_stop_the_report(run: Run, tmp_path: Path) -> None:
    """Windows consoles and minimal containers cannot print every letter of a log."""
    (tmp_path / "cn.log").write_text(
        "报错 triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 73728, "
        "Hardware limit: 65536.\n",
        encoding="utf-8",
    )
    done = run("analyze", tmp_path / "cn.log", env={"PYTHONIOENCODING": "ascii"})
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert "73,728" in done.stdout


def test_an_error_line_carries_no_terminal_code(run: Run) -> None:
    line = complained(run("analyze", "\x1b]0;owned\x07\x1b[31mnone.log"))
    assert "\x1b" not in line
    assert "\x07" not in line
