"""``oortriage lint`` end to end: the contract, files, source trees, exit codes, and the pages that go with it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from oortriage.cli.app import app, main
from oortriage.lint.checks import CHECKS
from oortriage.lint.reference import reference
from tests.cli.conftest import Run, complained
from tests.conftest import ROOT
from tests.lint.test_extract import RELEASE

CLAIMS = ROOT / "docs" / "seed-claims.md"
#: Verbs whose rooms may still be empty, when this part is looked at alone.
ROOMS = ("budget", "doctor", "watch")


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], nowhere: Path) -> Run:
    """Run the command in this process: most of what is asked here needs no process of its own."""

    def call(*arguments: str | Path, cwd: Path | None = None, **_: object) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["oortriage", *map(str, arguments)])
        monkeypatch.chdir(cwd or nowhere)
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return subprocess.CompletedProcess([], int(ended.value.code or 0), said.out, said.err)

    return call


def test_the_contract_that_scripts_hold_on_to(run: Run) -> None:
    done = run("lint", "--vllm", "0.6.3", "--format", "json", "--", "vllm", "serve", "m", "--block-size", "64")
    assert (done.returncode, done.stderr) == (1, "")
    table = json.loads(done.stdout)
    jsonschema.validate(table, json.loads(run("schema", "lint").stdout))
    (one,) = table["findings"]
    assert list(one) == ["code", "severity", "subject", "message", "since", "until", "source"]
    assert (one["code"], one["severity"], one["subject"], one["since"]) == (
        "LT301",
        "error",
        "--block-size 64",
        "0.6.4",
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--vllm", "0.17.1", "--", "vllm", "serve", "m", "--block-size", "64"], 0),
        (["--vllm", "0.17.1", "vllm serve m --block-size 64"], 0),
        (["vllm serve m --kv-cache-memory 5G", "--vllm", "0.17.1"], 0),
        (["--vllm", "0.17.1", "--", "VLLM_USE_V1=0", "vllm", "serve", "m"], 1),
        (["--vllm", "0.17.1", "--", "vllm serve m --foo"], 1),
        (["--vllm", "v0.17.1", "vllm serve m --foo"], 1),
        (["--gpu", "T4", "vllm serve m --dtype bfloat16"], 1),
    ],
)
def test_the_exit_code_says_whether_something_was_found(inside: Run, arguments: list[str], code: int) -> None:
    done = inside("lint", *arguments)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "what is to be checked"),
        (["gone.sh"], "no such file"),
        (["--vllm", "newest", "vllm serve m"], "is no version"),
        (["--vllm", "1.0", "--vllm-source", ".", "vllm serve m"], "give one"),
        (["--gpu", "MI300X", "vllm serve m"], "NVIDIA's alone"),
        (["--gpu", "T9", "vllm serve m"], "T9"),
        (["--config", "gone.json", "vllm serve m"], "gone.json"),
        (["--vllm-source", "/", "vllm serve m"], "no vLLM in there"),
        (["."], "is a folder"),
        (["--list", "--format", "sarif"], "no form of SARIF"),
    ],
)
def test_a_mistake_is_one_line(inside: Run, arguments: list[str], told: str) -> None:
    assert told in complained(inside("lint", *arguments))


def test_files_of_several_kinds_each_with_its_release(inside: Run, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text('FROM vllm/vllm-openai:v0.6.3\nCMD ["--model", "m", "--block-size", "64"]\n')
    (tmp_path / "run.sh").write_text("pip install vllm==0.17.1\nvllm serve m --block-size 64 --swap-space 4\n")
    done = inside("lint", "Dockerfile", "run.sh", "--format", "json", cwd=tmp_path)
    assert done.returncode == 1
    table = json.loads(done.stdout)
    assert [(one["name"], one["vllm"]) for one in table["inputs"]] == [("Dockerfile", "0.6.3"), ("run.sh", "0.17.1")]
    assert [(one["file"], one["line"], one["code"]) for one in table["findings"]] == [
        ("Dockerfile", 2, "LT301"),
        ("run.sh", 2, "LT408"),
    ]


def test_one_bad_file_does_not_hide_what_is_wrong_with_the_others(inside: Run, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("vllm serve m --foo\n")
    (tmp_path / "bad.yaml").write_text("a: [1")
    (tmp_path / "bin.sh").write_bytes(b"\0")
    done = inside("lint", "bad.yaml", "run.sh", "bin.sh", cwd=tmp_path)
    assert done.returncode == 2
    assert "LT101 --foo" in done.stdout
    assert [line.split(":")[1].strip() for line in done.stderr.splitlines()] == ["bad.yaml", "bin.sh"]
    assert "bad.yaml" in complained(inside("lint", "bad.yaml", "bin.sh", cwd=tmp_path))


def test_standard_input_is_a_file_too(run: Run) -> None:
    done = run("lint", "-", "--vllm", "0.17.1", stdin="\nvllm serve m --foo\n")
    assert done.returncode == 1
    assert "2: error LT101 --foo" in done.stdout


def test_bytes_that_are_no_text_are_refused(run: Run) -> None:
    assert "is no text" in complained(run("lint", "-", stdin=bytes(range(256))))


def test_the_model_s_config_is_held_against_the_command(inside: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"text_config": {"num_attention_heads": 40, "max_position_embeddings": 4096}}'
    )
    command = "vllm serve m -tp 3 --max-model-len 8192"
    done = inside("lint", "--config", tmp_path, "--vllm", "0.17.1", "--format", "json", command)
    assert [one["code"] for one in json.loads(done.stdout)["findings"]] == ["LT307", "LT308"]


@pytest.mark.parametrize("text", ["[1]", "{", "\x00"])
def test_a_config_that_is_none_is_told(inside: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    assert "config" in complained(inside("lint", "--config", tmp_path, "vllm serve m"))


def test_a_source_tree_counts_before_the_table(inside: Run, tmp_path: Path) -> None:
    for name, text in RELEASE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "vllm" / "_version.py").write_text('__version__ = "0.99.1"\n')
    command = "VLLM_A=1 VLLM_USE_V1=1 vllm serve m --length auto --size 9 --block-size 16"
    done = inside("lint", "--vllm-source", tmp_path, "--format", "json", command)
    table = json.loads(done.stdout)
    assert table["inputs"][0]["vllm"] == "0.99.1"
    assert "read from the files" in table["inputs"][0]["origin"]
    assert [(one["code"], one["subject"]) for one in table["findings"]] == [
        ("LT103", "--block-size"), ("LT202", "VLLM_USE_V1"), ("LT301", "--size 9"),
    ]  # fmt: skip


def test_an_installed_vllm_counts_where_nothing_else_names_a_release(
    inside: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oortriage.kernels.source import folder
    from oortriage.kernels.source._interface import SourceSpec

    for name, text in RELEASE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    spec = SourceSpec("vllm", "0.99.2", "installed", str(tmp_path))
    monkeypatch.setattr(folder, "installed_spec", lambda _: spec)
    table = json.loads(inside("lint", "--format", "json", "vllm serve m --size 9").stdout)
    assert table["inputs"][0]["vllm"] == "0.99.2"
    assert [one["code"] for one in table["findings"]] == ["LT301"]
    # A release that the input itself names counts more, and one that cannot be read counts as none.
    command = "docker run vllm/vllm-openai:v0.17.1 --model m"
    assert json.loads(inside("lint", "--format", "json", command).stdout)["inputs"][0]["vllm"] == "0.17.1"
    (tmp_path / "vllm" / "envs.py").write_text("def (")
    assert "newest in the table" in inside("lint", "vllm serve m").stdout


def test_the_reference_is_current() -> None:
    assert (ROOT / "docs" / "lint.md").read_text(encoding="utf-8") == reference(), "oortriage lint --list -f markdown"


def test_the_list_is_the_reference(inside: Run) -> None:
    assert inside("lint", "--list", "--format", "markdown").stdout == reference()
    assert len(inside("lint", "--list").stdout.splitlines()) == len(CHECKS)


def verbs() -> set[str]:
    return {one.name or "" for one in (*app.registered_commands, *app.registered_groups)}


def test_every_check_that_the_claims_name_exists() -> None:
    named = set(re.findall(r"\bLT\d+\b", CLAIMS.read_text(encoding="utf-8")))
    assert len(named) > 20
    assert named <= {one.code for one in CHECKS}


def test_every_command_that_the_claims_name_exists() -> None:
    named = set(re.findall(r"`oortriage ([\w-]+)", CLAIMS.read_text(encoding="utf-8")))
    empty = {one for one in ROOMS if len(list((ROOT / "oortriage" / one).glob("*.py"))) < 4}
    assert "lint" in named
    assert named - empty <= verbs()


def test_every_claim_has_a_verdict_and_four_cells() -> None:
    rows = [one for one in CLAIMS.read_text(encoding="utf-8").splitlines() if one.startswith("| ")]
    claims = [[cell.strip() for cell in one.strip("| ").replace("| |", "|  |").split("|")] for one in rows]
    claims = [cells for cells in claims if cells[0] != "claim"]
    assert len(claims) > 75
    for cells in claims:
        assert cells[1] in ("true", "false", "partly", "unknown")
    # A claim that is not true says what is, and by which source.
    assert all(len(cells) > 2 and cells[2] for cells in claims if cells[1] in ("false", "partly"))
