"""The command as a user has it: the package as a wheel lays it out, run as a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest

from oortriage.cli.demo import demo_log
from oortriage.evidence.loader import COMPILED, compile_rules, rules_folder
from tests.conftest import ROOT

#: What would make one machine's output differ from another's.
_UNSET = (
    "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "TERMINAL_WIDTH", "TERM",
    "PYTHONIOENCODING", "PYTHONPATH", "TTY_COMPATIBLE", "TTY_INTERACTIVE",
)  # fmt: skip

T4 = ROOT / "fixtures" / "triton" / "vllm-36802-t4-fp32-head256" / "log.txt"
CLEAN = ROOT / "fixtures" / "clean" / "vllm-clean-free-memory-twin" / "log.txt"
MASKED = ROOT / "fixtures" / "clean" / "vllm-only-wrapper-lines" / "log.txt"

RULE = """\
code = "ZZ900"
name = "gizmo-full"
title = "The gizmo is full"
role = "failure"
resource = "device_memory"
cause = "capacity"
software = "gizmo"
anchors = ["gizmo overflow"]
meaning = "The gizmo asked for more than it has."
sources = ["gizmo 1.0: gizmo.py"]

[[pattern]]
regex = '''gizmo overflow: (?P<requested_bytes>\\d+) bytes'''
captures = { requested_bytes = "bytes" }

[[sample]]
text = "gizmo overflow: 300 bytes"
numbers = { requested_bytes = 300 }
"""

#: Two ways to read every pair of letters; no end on the text of the sample.
BOMB = """\
code = "ZZ901"
name = "bomb"
title = "A bomb"
role = "failure"
resource = "device_memory"
software = "gizmo"
anchors = ["aaaa"]
meaning = "Never ends."
sources = ["nowhere"]

[[pattern]]
regex = '''(?:a|aa)+$'''

[[sample]]
text = "FUSE"
""".replace("FUSE", "a" * 60 + "!")
FUSE = "a" * 60 + "!\n"


class Run(Protocol):
    """Run the command in a folder; text in, text out."""

    def __call__(
        self,
        *arguments: str | Path,
        cwd: Path | None = None,
        stdin: str | bytes = "",
        env: dict[str, str] | None = None,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Lay the package out as a wheel does, unless it is installed from one; that starts quickly, too."""
    env = {name: value for name, value in os.environ.items() if name not in _UNSET}
    if rules_folder().parent.name == "_data":
        return env
    site = tmp_path_factory.mktemp("site")
    package = site / "oortriage"
    shutil.copytree(ROOT / "oortriage", package, ignore=shutil.ignore_patterns("__pycache__", "_data"))
    shutil.copytree(ROOT / "rules", package / "_data" / "rules")
    shutil.copytree(ROOT / "tables", package / "_data" / "tables")
    (package / "_data" / "demo").mkdir()
    shutil.copyfile(demo_log(), package / "_data" / "demo" / "vllm-t4.log")
    (package / "_data" / COMPILED).write_bytes(compile_rules(ROOT / "rules"))
    return {**env, "PYTHONPATH": str(site)}


@pytest.fixture(scope="session")
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder to run in: no settings, no rules."""
    return tmp_path_factory.mktemp("nowhere")


def command(arguments: Sequence[str | Path]) -> list[str]:
    return [sys.executable, "-m", "oortriage", *map(str, arguments)]


@pytest.fixture(scope="session")
def run(environment: dict[str, str], nowhere: Path) -> Run:
    def call(
        *arguments: str | Path,
        cwd: Path | None = None,
        stdin: str | bytes = "",
        env: dict[str, str] | None = None,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command(arguments),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            cwd=cwd or nowhere,
            env={**environment, **(env or {})},
            timeout=timeout,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode()
        )

    return call


def complained(done: subprocess.CompletedProcess[str], code: int = 2) -> str:
    """Check that a command ended with one line on stderr and nothing on stdout; return the line."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    return line
