"""``oortriage budget --from-log``, wishes and what-ifs, through the installed command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from oortriage.cli.app import main
from oortriage.fix.engine.model import CONFIG
from oortriage.report.page.picture import harmless
from tests.budget._logs import available, banner, pool_v1, profile_v0, refused_v1
from tests.budget.configs import LLAMA_3_8B
from tests.cli.conftest import Run, complained
from tests.conftest import ROOT

RUNS = ROOT / "fixtures" / "runs"
HEALTHY = (
    banner("0.17.1", 8192)
    + "DEBUG Initial free memory: 23.5 GiB; Requested memory: 0.9 (util), 21.6 GiB\n"
    + available("5.0")
    + pool_v1(40960, 8192, 5.0)
)


@pytest.fixture
def quick(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The same command in this process: as a user has it is tested once a shape, the rest of the arguments here."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments: str | Path, **_: object) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["oortriage", *map(str, arguments)])
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code if isinstance(code, int) else 0, said.out, said.err)  # type: ignore[arg-type]

    return call


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "vllm.log"
    path.write_text(HEALTHY)
    return path


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    path = tmp_path / "llama" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(LLAMA_3_8B))
    return path


def test_a_log_alone_is_rebuilt_and_answered(run: Run, log: Path) -> None:
    done = run("budget", "--from-log", log, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    jsonschema.validate(found, json.loads(run("schema", "budget-log").stdout))
    figures = found["budget"]["figures"]
    assert figures["kv_available_bytes"]["provenance"] == "measured"
    assert figures["kv_available_bytes"]["how"] == "line 3"
    assert figures["capacity_bytes"]["provenance"] == "derived"
    assert found["verdict"] == "works"
    assert all(one["agrees"] for one in found["budget"]["checks"])


def test_the_model_s_shape_is_held_against_the_log(quick: Run, log: Path, llama: Path) -> None:
    found = json.loads(quick("budget", "--from-log", log, llama, "-f", "json").stdout)
    shaped = [one for one in found["budget"]["checks"] if "shape" in one["what"]]
    assert {one["what"].partition(",")[0] for one in shaped} == {"tokens of the pool", "requests of full length"}
    assert all(one["agrees"] for one in shaped)
    other = json.loads(json.dumps(LLAMA_3_8B)) | {"num_hidden_layers": 16}
    llama.write_text(json.dumps(other))
    found = json.loads(quick("budget", "--from-log", log, llama, "-f", "json").stdout)
    assert not all(one["agrees"] for one in found["budget"]["checks"])


def test_own_runs_of_a_hybrid_model_come_out_by_its_shape(quick: Run, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    path = RUNS / "native-compiled-mp-ok" / "native_compiled_mp_ok.log"
    found = json.loads(quick("budget", "--from-log", path, config, "-f", "json").stdout)
    shaped = [one for one in found["budget"]["checks"] if "shape" in one["what"]]
    assert len(shaped) == 2
    assert all(one["agrees"] for one in shaped)
    assert abs(shaped[0]["printed"] / shaped[0]["computed"] - 1) < 0.001


def test_a_wish_decides_the_exit_code(quick: Run, log: Path, llama: Path) -> None:
    assert quick("budget", "--from-log", log, "--want-concurrency", "5").returncode == 0
    more = quick("budget", "--from-log", log, llama, "--want-concurrency", "6", "-f", "json")
    assert more.returncode == 1
    flags = {one["kind"]: one["change"] for one in json.loads(more.stdout)["budget"]["solutions"]}
    assert flags["length"] == "--max-model-len 6816"  # 2,560 blocks // 6 x 16
    assert flags["utilization"] == "--gpu-memory-utilization 0.95"  # 0.9 + 1 / 24, the bounds of 5.0 and of the card
    assert flags["kv_memory"] == f"--kv-cache-memory-bytes {6 * 2**30}"
    assert flags["kv_dtype"] == "--kv-cache-dtype fp8"


def test_a_planned_budget_takes_wishes_too(quick: Run, llama: Path) -> None:
    arguments = ("budget", llama, "--vllm", "0.17.1", "--kv-memory", "5GiB", "-f", "json")
    found = json.loads(quick(*arguments, "--want-len", "8192", "--want-concurrency", "5").stdout)
    assert [one["kind"] for one in found["solutions"]] == ["fits", "length"]
    done = quick(*arguments, "--want-concurrency", "9", "--max-model-len", "8192")
    assert done.returncode == 1
    flags = {one["kind"]: one["change"] for one in json.loads(done.stdout)["solutions"]}
    assert flags["kv_memory"] == f"--kv-cache-memory-bytes {9 * 2**30}"
    assert "solutions" not in json.loads(quick(*arguments).stdout)


def test_what_ifs_name_what_a_release_refuses(quick: Run, log: Path, llama: Path) -> None:
    axes = "util=0.8,0.9,1.5 len=8192 block=16,64,256 kv=auto,fp8,nvfp4"
    found = json.loads(quick("budget", "--from-log", log, llama, "--what-if", axes, "-f", "json").stdout)
    rows = {(one["utilization"], one["block_size"], one["kv_dtype"]): one for one in found["what_if"]}
    assert len(rows) == 27
    assert "0.17.1 takes" in rows[0.9, 16, "nvfp4"]["refused"]
    assert rows[1.5, 16, "auto"]["refused"].startswith("--gpu-memory-utilization 1.5")
    same, half = rows[0.9, 16, "auto"], rows[0.9, 16, "fp8"]
    assert (same["kv_tokens"]["value"], half["kv_tokens"]["value"]) == (40960, 81920)
    less = rows[0.8, 16, "auto"]
    assert less["kv_memory"]["value"] == pytest.approx((5.0 - 2.4) * 2**30)
    assert less["kv_tokens"]["value"] == less["kv_memory"]["value"] // (2 << 20) * 16
    text = quick("budget", "--from-log", log, llama, "--what-if", axes).stdout
    assert text.count("refused: ") == 2
    old = quick(
        "budget", llama, "--vllm", "0.6.3", "--kv-memory", "5GiB", "--what-if", "block=16,64", "-f", "markdown"
    ).stdout
    assert "--block-size 64: 0.6.3 takes 8, 16, 32" in old


def test_the_chart_is_written(quick: Run, log: Path, tmp_path: Path) -> None:
    picture = tmp_path / "card.svg"
    assert quick("budget", "--from-log", log, "--svg", picture).returncode == 0
    assert harmless(picture.read_text())


def test_text_and_markdown_say_no_more_than_json(quick: Run, tmp_path: Path) -> None:
    path = tmp_path / "refused.log"
    path.write_text(banner("0.11.0", 32768) + available("3.58") + refused_v1(32768, "4.50", "3.58", 26032))
    text = quick("budget", "--from-log", path)
    assert text.returncode == 1
    assert text.stdout.startswith("One request of 32,768 tokens does not fit")
    assert "--max-model-len 26032" in text.stdout
    assert max(map(len, text.stdout.splitlines())) <= 80
    assert "**What works**" in quick("budget", "--from-log", path, "-f", "markdown").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "which model and release"),
        (("--from-log", "LOG", "--want-len", "0"), "--want-len"),
        (("--from-log", "LOG", "--want-concurrency", "nan"), "--want-concurrency"),
        (("--from-log", "LOG", "--what-if", "size=3"), "--what-if"),
        (("--from-log", "LOG", "--what-if", "len=abc"), "--what-if"),
        (("--from-log", "LOG", "--what-if", "len=" + ",".join(map(str, range(1, 500)))), "combinations"),
        (("--from-log", "LOG", "--svg", "/nonexistent/x.svg"), "/nonexistent"),
        (("--from-log", "/nonexistent.log"), "/nonexistent.log"),
    ],
)
def test_bad_input_is_one_line(quick: Run, log: Path, arguments: tuple[str, ...], words: str) -> None:
    done = quick("budget", *(str(log) if one == "LOG" else one for one in arguments))
    assert complained(done)
    assert words in done.stderr


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe" * 500, b"hello\n", b"\x1b[31m KV cache \x1b[2J\n" * 50])
def test_files_without_a_budget_are_refused(quick: Run, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.log"
    path.write_bytes(content)
    done = quick("budget", "--from-log", path)
    assert complained(done)
    assert "\x1b" not in done.stderr


def test_analyze_shows_the_budget(quick: Run, tmp_path: Path) -> None:
    path = tmp_path / "v0.log"
    path.write_text(
        profile_v0(8.0, 0.7, 5.2, 0.03, 1.42, -1.05)
        + "ValueError: No available memory for the cache blocks. Try increasing "
        "`gpu_memory_utilization` when initializing the engine.\n"
    )
    text = quick("analyze", path).stdout
    assert "Memory budget" in text
    assert "over the share" in text
    found = json.loads(quick("analyze", path, "-f", "json").stdout)
    assert [one["kind"] for one in found["budget"]["parts"]][-2:] == ["missing", "outside"]
    assert "s memory budget" in quick("analyze", path, "-f", "html").stdout
