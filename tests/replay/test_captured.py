"""A real capsule compiled again: its figure to the byte, the experiment on it, and what is said about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oortriage.errors import UsageError
from oortriage.replay.experiment import experiment, read_vary
from oortriage.replay.options import Options
from oortriage.replay.reproduce import reproduce
from oortriage.replay.selection import select
from tests.capture.conftest import captured, triton_cache

__all__ = ["captured", "triton_cache"]


@pytest.fixture
def capsule(captured: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OORTRIAGE_CACHE", str(tmp_path / "cache"))
    return captured()


def changed(capsule: Path, folder: Path, **change: Any) -> str:
    path = folder / "changed.json"
    path.write_text(json.dumps({**json.loads(capsule.read_text()), **change}))
    return str(path)


def test_selection(capsule: Path) -> None:
    told = json.loads(capsule.read_text())
    chosen = select(Options(kernel=str(capsule)))
    assert (chosen.required_bytes, chosen.required_from) == (told["required"], "capsule")
    assert (chosen.card.limit_bytes, chosen.limit_from) == (1000, "capsule")
    assert chosen.card.target.name == "sm_75"
    assert chosen.source_name == "the capsule's source"
    assert any("sha256" in note and "kernels.py line" in note for note in chosen.notes)
    assert not any("log" in note for note in chosen.notes)


def test_reproduced_to_the_byte(capsule: Path) -> None:
    found = reproduce(select(Options(kernel=str(capsule))))
    assert found.failure is None
    assert (found.verdict, found.required_bytes) == ("reproduced", json.loads(capsule.read_text())["required"])
    assert (found.function, found.residual_bytes) == ("product", 0)
    assert {buffer.file for buffer in found.buffers} <= {"kernels.py", "helper.py", ""}
    assert found.constants["B"] == 32


def test_a_constant_set_otherwise(capsule: Path) -> None:
    found = reproduce(select(Options(kernel=str(capsule), overrides={"B": 16})))
    assert (found.verdict, found.constants["B"]) == ("not_reproduced", 16)


def test_what_is_no_constant_is_refused(capsule: Path) -> None:
    with pytest.raises(UsageError, match="no kernel launched here has a constant of that name"):
        reproduce(select(Options(kernel=str(capsule), overrides={"n": 16})))


def test_an_experiment(capsule: Path) -> None:
    found = experiment(select(Options(kernel=str(capsule))), read_vary(["B=16,32,64", "num_warps=2,4"]))
    assert (found.baseline, len(found.cells)) == ({"B": 32, "num_warps": 4}, 6)
    sizes = {cell.settings["B"]: cell.required_bytes or 0 for cell in found.cells if cell.settings["num_warps"] == 4}
    assert sizes[16] < sizes[32] < sizes[64]


def test_another_card(capsule: Path) -> None:
    chosen = select(Options(kernel=str(capsule), gpu="A100"))
    assert (chosen.card.target.name, chosen.limit_from) == ("sm_80", "table")
    assert any("the capsule is of" in note for note in chosen.notes)


def test_an_amd_card(capsule: Path, tmp_path: Path) -> None:
    name = changed(capsule, tmp_path, target={"backend": "hip", "arch": "gfx942", "warp_size": 64}, options={})
    found = reproduce(select(Options(kernel=name)))
    assert (found.target, found.failure) == ("gfx942", None)


def test_another_release_is_said(capsule: Path, tmp_path: Path) -> None:
    chosen = select(Options(kernel=changed(capsule, tmp_path, versions={"triton": "3.0.0"})))
    assert any("the capsule is of Triton 3.0.0" in note for note in chosen.notes)


def test_another_resource_has_no_figure_to_hold_against(capsule: Path, tmp_path: Path) -> None:
    name = changed(capsule, tmp_path, resource="threads", required=2048, limit=1024)
    found = reproduce(select(Options(kernel=name)))
    assert found.verdict == "computed"
    assert any("2,048 threads" in note for note in found.notes)


def test_a_card_that_is_not_known(capsule: Path, tmp_path: Path) -> None:
    name = changed(capsule, tmp_path, target={"backend": "cuda", "arch": 61234, "warp_size": 32})
    with pytest.raises(UsageError, match="which GPU"):
        select(Options(kernel=name))


def test_source_that_does_not_build_ends_with_one_line(capsule: Path, tmp_path: Path) -> None:
    functions = json.loads(capsule.read_text())["functions"]
    functions[0]["source"] = "def product(: broken"
    with pytest.raises(UsageError, match="SyntaxError"):
        reproduce(select(Options(kernel=changed(capsule, tmp_path, functions=functions))))


def test_its_source_runs_in_the_child_alone(capsule: Path, tmp_path: Path) -> None:
    """Selecting reads a capsule; compiling runs its source, in a process of its own."""
    functions = json.loads(capsule.read_text())["functions"]
    mark = tmp_path / "ran"
    functions[0]["source"] += f"\nimport os\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\n"
    chosen = select(Options(kernel=changed(capsule, tmp_path, functions=functions)))
    assert not mark.exists()
    reproduce(chosen)
    import os

    assert int(mark.read_text()) != os.getpid()
