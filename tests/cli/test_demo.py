"""``oortriage demo``: the bundled log, its whole story, no set-up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from oortriage.cli import demo_story
from oortriage.cli.app import app
from oortriage.replay.compiler_env import CompilerMissingError
from oortriage.replay.options import Options
from tests.cli.conftest import T4, Run, complained

STEPS = ["1. The verdict", "2. The proof", "3. The experiment", "4. What the patch would do", "5. The report"]


def test_the_demo_tells_the_t4_case(run: Run) -> None:
    """81,920 bytes for one block: FP32, head size 256, tiles of 16 and 32; a T4 has 65,536."""
    done = run("demo", "--format", "json")
    table = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (table["resource"], table["file"]) == ("shared_memory", "vllm-t4.log")
    assert table["numbers"] == {"required_bytes": 81920, "limit_bytes": 65536}
    assert table["facts"]["gpu"]["value"] == "Tesla T4"
    assert sum(term["bytes"] for term in table["bill"]["terms"]) == 81920


def test_the_verdict_alone_fits_on_one_screen(run: Run) -> None:
    done = run("demo", "--verdict")
    assert done.returncode == 0
    assert done.stdout.startswith("Shared memory of one block (on the chip)")
    assert len(done.stdout.splitlines()) <= 60


def test_the_demo_can_show_its_log(run: Run) -> None:
    done = run("demo", "--log")
    assert (done.returncode, done.stdout) == (0, T4.read_bytes().decode())


def test_the_whole_story_with_a_compiler(run: Run, tmp_path: Path) -> None:
    """Q, K and V add up to the printed figure; stages move nothing, tiles do; the patch fits; a report is left."""
    pytest.importorskip("triton")
    out = tmp_path / "out"
    done = run("demo", "--output", out, env={"XDG_CACHE_HOME": str(tmp_path / "cache")}, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    places = [done.stdout.index(f"\n{one}" if one[0] != "1" else one) for one in STEPS]
    assert places == sorted(places)
    assert done.stdout.count("   $ oortriage ") >= 6
    for line in ("16,384 B  Q ", "32,768 B  K ", "32,768 B  V ", "81,920 B  needed, of 65,536"):
        assert line in done.stdout
    assert "the figure that the log prints" in done.stdout.replace("\n", " ")
    assert "num_stages moves 0 bytes on sm_75" in done.stdout
    assert "K/V tile 32 -> 16: 81,920 -> 49,152 bytes of 65,536, 16,384 to spare" in done.stdout
    assert sorted(path.name for path in out.iterdir()) == ["report.md", "vllm-t4.log"]
    report = (out / "report.md").read_text(encoding="utf-8")
    assert "reference.attention" in report
    assert "num\\_stages moves 0 bytes" in report
    assert (out / "vllm-t4.log").read_bytes() == T4.read_bytes()


def test_without_a_compiler_the_rest_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(_options: Options) -> None:
        raise CompilerMissingError("Triton is not installed: `pip install 'oortriage[triton]'`")

    monkeypatch.setattr("oortriage.replay.selection.select", missing)
    done = CliRunner().invoke(app, ["demo", "--output", str(tmp_path)])
    assert done.exit_code == 0
    assert all(one in done.stdout for one in STEPS)
    assert done.stdout.count("pip install 'oortriage[triton]'") == 2
    assert "K/V tile 32 -> 16\n" in done.stdout
    assert "reference.attention" not in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_the_commands_shown_are_those_that_were_run() -> None:
    """What a user copies compiles the same cells."""
    for flag in (f"--tile {demo_story._TILE}", "--dtype float32", "--head-size 256"):
        assert flag in demo_story.REPRODUCE
    for name, levels in demo_story._GRID.items():
        assert f"--vary {name}={','.join(map(str, levels))}" in demo_story.EXPERIMENT
    assert demo_story._SHAPE == {"dtype": "float32", "head_size": 256}


@pytest.mark.parametrize("more", [["--verdict"], ["--format", "json"]])
def test_a_folder_goes_with_the_whole_story(run: Run, tmp_path: Path, more: list[str]) -> None:
    assert "--output" in complained(run("demo", "--output", tmp_path, *more))


def test_a_folder_that_cannot_be_made_is_told_before_anything(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "cannot be made" in complained(run("demo", "--output", tmp_path / "file" / "out"))
