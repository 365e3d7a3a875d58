"""Which Triton compiles: installed, fetched into the cache, or none, and then the message says what to do."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oortriage.errors import OortriageError, UsageError
from oortriage.gpu.virtual.adapter import Target
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.registry import find_recipe
from oortriage.replay import compiler_env as module
from oortriage.replay.child import run_job
from oortriage.replay.compiler_env import CompilerEnv, CompilerMissingError, compiler_env, stated_triton
from oortriage.replay.job import Cell, Job, Outcome


def installed(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """Let only these distributions be installed."""

    def version(name: str) -> str:
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    versions = {name.replace("_", "-"): one for name, one in versions.items()}
    monkeypatch.setattr(importlib.metadata, "version", version)


class Pip:
    """Stands for pip: puts a package where it is told, or fails."""

    def __init__(self, error: str = "") -> None:
        self.error, self.calls = error, list[list[str]]()

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.calls.append(command)
        if self.error:
            return subprocess.CompletedProcess(command, 1, "", self.error)
        package = Path(command[command.index("--target") + 1], "triton")
        package.mkdir()
        (package / "__init__.py").write_text("")
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("OORTRIAGE_CACHE", str(folder))
    return folder


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Pip:
    made = Pip()
    monkeypatch.setattr(module.subprocess, "run", made)
    return made


def test_the_installed_one_is_taken(monkeypatch: pytest.MonkeyPatch, pip: Pip) -> None:
    installed(monkeypatch, triton="3.6.0")
    for asked in ("", "3.6.0", "3.6"):
        assert compiler_env(asked) == CompilerEnv("3.6.0")
    assert pip.calls == []


@pytest.mark.parametrize("name", ["pytorch_triton_rocm", "pytorch_triton", "triton_rocm"])
def test_it_may_be_of_another_distribution(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    installed(monkeypatch, **{name: "3.5.1+git0a1b2c3d"})
    assert compiler_env() == CompilerEnv("3.5.1+git0a1b2c3d")


def test_none_is_said_with_two_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch)
    with pytest.raises(CompilerMissingError, match=r"pip install 'oortriage\[triton\]'.*--triton"):
        compiler_env()


def test_another_release_is_fetched_once(monkeypatch: pytest.MonkeyPatch, cache: Path, pip: Pip) -> None:
    installed(monkeypatch, triton="3.6.0")
    env = compiler_env("3.4.0")
    assert Path(env.folder, "triton", "__init__.py").is_file()
    assert Path(env.folder).parent == cache / "triton"
    assert compiler_env("3.4.0") == env
    (command,) = pip.calls
    assert command[:3] == [sys.executable, "-m", "pip"]
    assert command[-1] == "triton==3.4.0"
    assert [path.name for path in (cache / "triton").iterdir()] == [Path(env.folder).name]


@pytest.mark.parametrize("version", ["newest", "3", "3.4.0; rm", "3.4.0 --pre", "-r file", "3..4", "3.4.0.0.1"])
def test_what_is_no_version_is_refused(version: str, pip: Pip) -> None:
    with pytest.raises(UsageError, match="not a version"):
        compiler_env(version)
    assert pip.calls == []


@pytest.mark.parametrize("version", ["3.3.1", "2.1.0", "3.0"])
def test_one_too_old_is_refused_before_it_is_fetched(version: str, pip: Pip) -> None:
    with pytest.raises(UsageError, match=rf"{version}: older than 3\.4"):
        compiler_env(version)
    assert pip.calls == []


#: What pip prints, with the versions that the index has.
SAID = """\
WARNING: a proxy
ERROR: Could not find a version that satisfies the requirement triton==9.9.9 (from versions: {})
ERROR: No matching distribution found for triton==9.9.9

[notice] a new pip
"""


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            SAID.format("3.4.0, 3.5.0"),
            "Triton 9.9.9 cannot be fetched: ERROR: No matching distribution found for triton==9.9.9",
        ),
        (
            SAID.format("none"),
            "the package index cannot be reached, or has no Triton for this Python and this system",
        ),
        ("/opt/venv/bin/python: No module named pip", "No module named pip"),
    ],
)
def test_what_cannot_be_fetched_is_said(cache: Path, pip: Pip, said: str, message: str) -> None:
    pip.error = said
    with pytest.raises(CompilerMissingError) as raised:
        compiler_env("9.9.9")
    assert message in str(raised.value)
    assert list((cache / "triton").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_said(cache: Path, pip: Pip) -> None:
    cache.write_text("not a folder")
    with pytest.raises(CompilerMissingError, match=r"triton: cannot be written: (Not a directory|File exists)"):
        compiler_env("3.4.0")
    assert pip.calls == []


def test_another_process_that_was_first_is_no_failure(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Pip()

    def meanwhile(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(module.subprocess, "run", first)
        compiler_env("3.4.0")
        return Pip()(command)

    monkeypatch.setattr(module.subprocess, "run", meanwhile)
    env = compiler_env("3.4.0")
    assert Path(env.folder, "triton", "__init__.py").is_file()
    assert len(list((cache / "triton").iterdir())) == 1


def test_the_child_gets_its_folder_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine")
    assert CompilerEnv("3.4.0", "/cache/3.4.0").variables()["PYTHONPATH"].split(":") == ["/cache/3.4.0", "/mine"]
    assert CompilerEnv("3.6.0").variables()["PYTHONPATH"] == "/mine"
    monkeypatch.delenv("PYTHONPATH")
    assert CompilerEnv("3.4.0", "/cache/3.4.0").variables()["PYTHONPATH"] == "/cache/3.4.0"


def test_triton_s_interpreter_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert "TRITON_INTERPRET" not in CompilerEnv("3.6.0").variables()


@pytest.mark.parametrize(
    ("triton", "torch", "stated"),
    [
        ("3.5.1", "2.8.0", "3.5.1"),
        ("", "2.8.0+cu128", "3.4.0"),
        ("", "2.10.1", "3.6.0"),
        ("", "2.99", ""),
        ("", "", ""),
        ("", "nightly", ""),
    ],
)
def test_a_log_s_release_is_stated_or_its_pytorch_s(triton: str, torch: str, stated: str) -> None:
    assert stated_triton(triton, torch) == stated


CELLS = ((32, 4, 81_920), (16, 4, 49_152), (32, 2, 49_152))


def figures(env: CompilerEnv) -> list[Outcome]:
    """Compile the public report's kernel, its fix and another lever: FP32, head 256, on sm_75."""
    recipe = find_recipe("reference.attention")
    shape, _ = recipe.shape({"dtype": "float32", "head_size": 256})
    cells = tuple(Cell(shape, {"TILE_SIZE": tile, "num_warps": warps}) for tile, warps, _ in CELLS)
    found: list[Outcome] = []
    run_job(Job(recipe.name, Card(Target("cuda", 75, 32), 65_536), cells), env, found.append)
    return found


@pytest.mark.index
@pytest.mark.parametrize("version", ["", "3.4.0", "3.9.0"])
def test_three_releases_agree_on_the_public_report(version: str) -> None:
    pytest.importorskip("triton")
    try:
        env = compiler_env(version)
    except OortriageError as problem:
        pytest.skip(str(problem))
    outcomes = figures(env)
    assert [one.largest and one.largest.required_bytes for one in outcomes] == [required for *_, required in CELLS]
    assert {one.triton for one in outcomes} == {env.version}
    assert all(one.largest and one.largest.ledger.residual == 0 for one in outcomes)
    assert {"K", "V", "Q", "P"} <= {buffer.name for buffer in outcomes[0].kernels[0].ledger.buffers}


@pytest.mark.index
def test_a_release_that_does_not_exist_is_said(cache: Path) -> None:
    with pytest.raises(CompilerMissingError, match=r"Triton 9\.9\.9 cannot be fetched: ") as raised:
        compiler_env("9.9.9")
    if "cannot be reached" in str(raised.value):
        pytest.skip(str(raised.value))
    assert "No matching distribution found for triton==9.9.9" in str(raised.value)
    assert list((cache / "triton").iterdir()) == []


def test_offline_it_is_said_too(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pip")
    for name, value in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(cache.parent),
        "PIP_CONFIG_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CompilerMissingError, match="the package index cannot be reached"):
        compiler_env("3.4.1")
