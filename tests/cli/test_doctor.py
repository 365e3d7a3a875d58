"""``oortriage doctor`` as a process of its own, on whatever machine runs the tests, with a made library."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import jsonschema
import pytest

from tests.cli.conftest import Run, complained
from tests.cli.test_device import CARD, NONE

XID = "[ 12.3] NVRM: Xid (PCI:0000:0b:00): 79, pid=77, name=python, GPU has fallen off the bus.\n"


@pytest.fixture
def module(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """A module named pynvml goes first; settings of the machine that runs the tests do not count."""
    own = os.pathsep.join(part for part in (str(tmp_path), environment.get("PYTHONPATH", "")) if part)
    return {"PYTHONPATH": own, "CUDA_VISIBLE_DEVICES": "0"}


def test_a_card(run: Run, module: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text(CARD)
    done = run("doctor", "--json", env=module)
    assert (done.returncode in (0, 1), done.stderr) == (True, "")
    found = json.loads(done.stdout)
    (one,) = found["facts"]["cards"]["cards"]
    assert (one["name"], one["capability"], one["shared_memory_per_block_bytes"]) == ("Tesla T4", "7.5", 65536)
    jsonschema.validate(found, json.loads(run("schema", "doctor").stdout))


def test_no_card_another_interpreter_and_nothing_of_it_imported(
    run: Run, module: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "pynvml.py").write_text(NONE)
    for name in ("torch", "vllm", "triton"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('{name} was imported')\n")
    done = run("doctor", "--python", sys.executable, env=module)
    assert done.stderr == ""
    assert "was imported" not in done.stdout
    assert "NVIDIA" in done.stdout.splitlines()[0]
    assert "What could not be looked at" in done.stdout
    assert "of another interpreter: yes" in done.stdout
    assert f"python: {sys.version_info[0]}.{sys.version_info[1]}." in done.stdout


def test_a_library_that_kills_its_process(run: Run, module: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("import os\nos.abort()\n")
    done = run("doctor", "--json", env=module)
    assert done.returncode == 1
    assert any(one["code"] == "DR112" for one in json.loads(done.stdout)["findings"])


def test_files_in_place_of_the_machine(run: Run, module: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text(NONE)
    os.mkfifo(tmp_path / "dmesg.txt")  # as <(dmesg) gives one
    threading.Thread(target=(tmp_path / "dmesg.txt").write_text, args=(XID,), daemon=True).start()
    (tmp_path / "topo.txt").write_text("\tGPU0\tGPU1\n GPU0\tX\tCNS\n GPU1\tCNS\tX\n")
    done = run("doctor", "--json", "--dmesg", tmp_path / "dmesg.txt", "--topo", tmp_path / "topo.txt", env=module)
    assert done.returncode == 1
    found = {one["code"]: one for one in json.loads(done.stdout)["findings"]}
    assert "fallen off the bus" in found["DR371"]["message"]
    assert "chipset" in found["DR381"]["message"]


def test_files_that_are_no_text(run: Run, module: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(bytes(range(256)) * 100)
    done = run("doctor", "--json", "--dmesg", tmp_path / "odd", "--topo", tmp_path / "odd", env=module)
    assert "Traceback" not in done.stderr
    json.loads(done.stdout)


def test_a_block_for_an_issue(run: Run, module: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text(CARD)
    done = run(
        "doctor", "--issue", "--output", tmp_path / "block.md", env={**module, "VLLM_API_KEY": "sk-1234567890abcdefgh"}
    )
    assert done.stdout == ""
    block = (tmp_path / "block.md").read_text()
    assert block.startswith("```text\noortriage doctor ")
    assert "GPU 0: Tesla T4, capability 7.5" in block
    for private in ("sk-1234567890abcdefgh", str(tmp_path), "GPU-1234"):
        assert private not in block


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--topo", "/"], "is a folder"),
        (["--python", "/nowhere/python", "--topo", "/nowhere"], "--python /nowhere/python: is not there"),
        (["--issue", "--json"], "--issue is Markdown"),
    ],
)
def test_what_cannot_be_done(run: Run, arguments: list[str], said: str) -> None:
    assert said in complained(run("doctor", *arguments))


def test_a_code_is_explained(run: Run) -> None:
    done = run("explain", "dr201")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("# DR201: torch's CUDA is too new for the driver\n")
    assert "What helps: " in done.stdout
