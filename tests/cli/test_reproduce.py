"""``oortriage reproduce`` end to end: the contract, logs, reports, kernels of one's own, and every mistake."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CLEAN, T4, Run, complained
from tests.cli.replaying import ARGUMENTS, CONTRACT, KERNEL, REFERENCE, VLLM, cache, replay, table, vllm
from tests.conftest import ROOT

__all__ = ["cache", "replay", "vllm"]  # fixtures

FIXTURES = ROOT / "fixtures" / "triton"
#: Settings that leave little to be tried.
PINNED = ("--tile", "16", "--window", "0", "--head-size", "128", "--dtype", "float32")
FEW = ("--phase", "prefill", "--block-size", "16", "--set", "q_per_kv=2")


# The contract.


def keeps_the_contract(found: Any) -> None:
    assert (found["required_bytes"], found["limit_bytes"], found["fits"]) == (81920, 65536, False)
    assert (found["target"], found["triton"].count(".")) == ("sm_75", 2)
    assert (found["verdict"], found["over_bytes"], found["residual_bytes"]) == ("computed", 16384, 0)
    assert all(isinstance(one, str) for one in found["assumptions"])
    kinds = {"name": str, "shape": list, "dtype": str, "bytes": int, "offset": int, "file": str, "line": int, "shares_with": list}  # fmt: skip
    for buffer in found["buffers"]:
        assert {name: type(buffer[name]) for name in kinds} == kinds
    large = {tuple(one["shape"]): one["bytes"] for one in found["buffers"] if one["bytes"] > 8192}
    assert large == {(256, 32): 32768, (32, 256): 32768, (16, 256): 16384}
    names = {one["name"] for one in found["buffers"]}
    assert all(set(one["shares_with"]) <= names for one in found["buffers"])
    ends = [one["offset"] + one["bytes"] for one in found["buffers"]]
    assert max(ends) == 81920


def test_vllms_kernel_by_the_contract(vllm: Run) -> None:
    found = table(vllm("reproduce", *VLLM, *CONTRACT, "--format", "json"))
    keeps_the_contract(found)
    assert found["source"] == "vllm 0.17.1, its wheel"
    assert found["function"] == "kernel_unified_attention_2d"
    assert {one["file"] for one in found["buffers"]} == {"vllm/v1/attention/ops/triton_unified_attention.py"}
    assert [one["name"] for one in found["buffers"] if one["bytes"] > 8192] == ["K_load", "V_load", "Q"] or {
        one["name"] for one in found["buffers"] if one["bytes"] > 8192
    } == {"K_load", "V_load", "Q"}


@pytest.mark.usefixtures("replay")
def test_our_own_kernel_gives_the_same_figure_with_neither_torch_nor_vllm(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Nor is anything imported from the folder one stands in: logs are downloaded, and a ``json.py`` may be with them."""
    here, first = tmp_path / "logs", tmp_path / "first"
    for folder, names in ((here, ("json", "triton", "msgspec")), (first, ("torch", "vllm"))):
        folder.mkdir()
        for name in names:
            (folder / f"{name}.py").write_text(f"raise RuntimeError('{name} was imported')")
    # As the installed script starts: without the current folder on the path.
    code = "import sys; sys.path[:1] = []; sys.argv[0] = 'oortriage'; from oortriage.cli.app import main; main()"
    flags = ("reproduce", *REFERENCE, *CONTRACT, "--format", "json", "--no-cache")
    path = os.pathsep.join([str(first), environment.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code, *flags], cwd=here, env={**environment, "PYTHONPATH": path}, capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip
    found = table(done)
    keeps_the_contract(found)
    assert found["source"] == "built in"


# From logs.


@pytest.fixture(scope="module")
def from_log(vllm: Run) -> Any:
    return table(vllm("reproduce", T4, "--format", "json"))


def test_the_t4_log_to_the_byte(from_log: Any) -> None:
    assert (from_log["verdict"], from_log["required_bytes"], from_log["printed_bytes"]) == ("reproduced", 81920, 81920)
    assert from_log["limit_from"] == "log"
    assert from_log["origin"]["head_size"].startswith("log line ")
    assert (from_log["settings"]["dtype"], from_log["settings"]["head_size"]) == ("float32", 256)
    assert all(one["required_bytes"] == 81920 for one in from_log["exact_settings"])
    assert any(one.startswith("assumed: window = 0") for one in from_log["assumptions"])


@pytest.mark.usefixtures("from_log")
def test_standard_input_a_report_and_a_gzip_are_the_same_log(vllm: Run, tmp_path: Path, from_log: Any) -> None:
    piped = table(vllm("reproduce", "-", "--format", "json", stdin=T4.read_bytes()))
    assert piped == from_log
    report = tmp_path / "report.json"
    assert vllm("analyze", T4, "--format", "json", "--output", report).returncode == 1
    assert table(vllm("reproduce", report, "--format", "json")) == from_log
    (tmp_path / "log.txt.gz").write_bytes(gzip.compress(T4.read_bytes()))
    assert table(vllm("reproduce", tmp_path / "log.txt.gz", "--format", "json")) == from_log


def test_text_and_markdown_of_the_log(vllm: Run, from_log: Any, tmp_path: Path) -> None:
    done = vllm(
        "reproduce", T4, "--svg", tmp_path / "map.svg", "--output", tmp_path / "page.md", "--format", "markdown"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.startswith("**Reproduced to the byte: 81,920 bytes of 65,536, 16,384 over**\n")
    assert ET.parse(tmp_path / "map.svg").getroot().tag.endswith("svg")
    text = vllm("reproduce", T4).stdout
    assert text.startswith(
        "Reproduced to the byte: 81,920 bytes of 65,536, 16,384 over\nkernel_unified_attention_2d on Tesla T4"
    )
    assert max(map(len, text.splitlines())) <= 80
    for buffer in from_log["buffers"]:
        assert f"{buffer['bytes']:,}" in text


@pytest.mark.parametrize(
    ("fixture", "flags", "required", "changed"),
    [
        ("vllm-57712-k8s-turing-head512", ("--window", "0", "--dtype", "float16", *FEW), 98304, {"head_size": 512}),
        ("vllm-33846-5090-sliding-gz", ("--head-size", "256", *FEW), 116992, {"window": 1024}),
    ],
)
def test_other_logs_with_settings_they_do_not_state(
    vllm: Run, fixture: str, flags: tuple[str, ...], required: int, changed: dict[str, int]
) -> None:
    (log,) = (one for one in (FIXTURES / fixture).iterdir() if one.name.startswith("log"))
    found = table(vllm("reproduce", log, *flags, "--format", "json"))
    assert (found["verdict"], found["required_bytes"], found["printed_bytes"]) == (
        "reproduced_with_other_settings", required, required,
    )  # fmt: skip
    assert changed.items() <= found["changed"].items()
    assert not [one for one in found["assumptions"] for name in changed if one.startswith(f"assumed: {name} = ")]


def test_a_log_that_lacks_all_but_the_failure(replay: Run, tmp_path: Path) -> None:
    """One line is enough with the card and the kernel named; the rest is found by trying."""
    (tmp_path / "crash.log").write_text(
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 81920, Hardware limit: 65536. "
        "Reducing block sizes or `num_stages` may help.\n"
    )
    log = tmp_path / "crash.log"
    assert complained(replay("reproduce", log)).startswith(
        "oortriage: no recipe for the kernel (the log does not name it)"
    )
    assert complained(replay("reproduce", log, *REFERENCE)).startswith(
        "oortriage: which GPU? Say --gpu T4, --gpu sm_86 or --gpu gfx942; a limit of 65,536 bytes is that of sm_75, gfx"
    )
    done = replay("reproduce", log, *REFERENCE, "--gpu", "T4", "--tile", "32", "--window", "0", "--dtype", "float32")
    assert done.returncode == 0
    assert done.stdout.startswith("Reproduced with other settings: 81,920 bytes of 65,536, 16,384 over, with")
    assert "(log" not in done.stdout


def test_a_log_without_a_release_asks_for_it(replay: Run, tmp_path: Path) -> None:
    text = T4.read_text(encoding="utf-8").replace("0.17.1", "")
    (tmp_path / "crash.log").write_text(text, encoding="utf-8")
    said = complained(replay("reproduce", tmp_path / "crash.log"))
    assert "which vllm? Name the release (--vllm X.Y.Z) or its folder (--source PATH)" in said


# What does not come out.


def test_not_reproduced_is_one_and_names_the_nearest(replay: Run) -> None:
    done = replay("reproduce", *REFERENCE, *CONTRACT, "--set", "block_size=16", "--required", "81921")
    assert (done.returncode, done.stderr) == (1, "")
    assert " ".join(done.stdout.split()).startswith(
        "Not reproduced: asked for are 81,921 bytes, these settings need 81,920 bytes of 65,536, 16,384 over"
    )
    assert "\nnearest: 81,920 bytes with dtype=float32" in done.stdout


def test_the_log_is_of_another_card_and_other_settings(replay: Run) -> None:
    done = replay("reproduce", T4, *REFERENCE, "--gpu", "A10", *PINNED)
    text = " ".join(done.stdout.split())
    assert done.returncode == 1
    assert "note: the log is of Tesla T4; --gpu A10 is compiled for, with its limit of 101,376 bytes" in text
    assert "says head_size = 256; 128 is used, as --head-size says" in text


def test_not_compiled_is_three_and_shows_the_compilers_line(replay: Run, tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(KERNEL)
    done = replay("reproduce", "--kernel", tmp_path / "k.py:broken", "--gpu", "T4", "--arg", "x=*i32", "--arg", "N=128")
    assert (done.returncode, done.stderr) == (3, "")
    text = " ".join(done.stdout.split())
    assert text.startswith("Not compiled: CompilationError: ")
    assert "Cannot make_shape_compatible: incompatible dimensions at index 0: 128 and 256" in text
    assert "of the kernel: tl.store(x + tl.arange(0, N), tl.arange(0, 2 * N))" in text


def test_registers_and_occupancy(replay: Run) -> None:
    flags = (*REFERENCE, "--gpu", "sm_86", "--dtype", "float16", "--head-size", "64", "--tile", "16", "--registers")
    found = table(replay("reproduce", *flags, "--format", "json"))
    assert 16 <= found["registers"]["registers"] <= 255
    assert found["occupancy"]["blocks"] > 0
    text = replay("reproduce", *flags).stdout
    assert "\nregisters: " in text
    assert "\noccupancy: " in text


# A kernel of one's own.


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file whose name has a space, a colon, and what acts on terminals and pages."""
    path = tmp_path_factory.mktemp("own") / "my ke:rnel \x1b[31m **b** <i> `x`.py"
    path.write_text(KERNEL)
    return f"{path}:product"


def test_a_kernel_of_ones_own_with_side_effects(replay: Run, own: str) -> None:
    found = table(replay("reproduce", "--kernel", own, "--gpu", "A100", *ARGUMENTS, "--format", "json"))
    assert (found["function"], found["source"], found["fits"]) == ("product", "its own file", True)
    assert found["required_bytes"] == 3 * (64 * 32 + 32 * 64) * 2 - (64 * 32 + 32 * 64) * 2, "two stages of both tiles"
    assert {one["name"] for one in found["buffers"]} >= {"left", "right"}
    assert found["constants"]["BM"] == 64


def test_its_name_acts_on_no_terminal_and_no_page(replay: Run, own: str) -> None:
    text = replay("reproduce", "--kernel", own, "--gpu", "A100", *ARGUMENTS).stdout
    assert "\x1b" not in text
    page = replay("reproduce", "--kernel", own, "--gpu", "A100", *ARGUMENTS, "--format", "markdown").stdout
    assert "\x1b" not in page
    assert "<i>" not in re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", page)
    said = complained(replay("reproduce", "--kernel", own.replace(".py", "2.py"), "--gpu", "T4"))
    assert said.endswith("2.py: there is no such file")
    assert "\x1b" not in said


def test_a_changed_file_is_compiled_again_and_so_is_one_beside_it(replay: Run, tmp_path: Path) -> None:
    (tmp_path / "sizes.py").write_text("WIDTH = 32\n")
    (tmp_path / "k.py").write_text(
        "import triton\nimport triton.language as tl\nfrom sizes import WIDTH\nSIZE = tl.constexpr(WIDTH)\n"
        "@triton.jit\ndef f(x):\n    at = tl.arange(0, SIZE)\n"
        "    v = tl.load(x + at[:, None] * SIZE + at[None, :])\n    tl.store(x + tl.arange(0, SIZE), tl.sum(v, 0))\n"
    )
    arguments = ("reproduce", "--kernel", tmp_path / "k.py:f", "--gpu", "T4", "--arg", "x=*fp32", "--format", "json")
    first = table(replay(*arguments))["required_bytes"]
    (tmp_path / "sizes.py").write_text("WIDTH = 64\n")
    assert table(replay(*arguments))["required_bytes"] > first


@pytest.mark.parametrize(
    ("name", "text", "function", "words"),
    [
        ("k.py", KERNEL, "absent", "k.py: absent is no @triton.jit kernel in there; it has product, broken"),
        (
            "k.py",
            KERNEL,
            "product",
            "product needs 'a', 'b', 'c', 'N', 'K', 'BM', 'BN', and 'BK': say --arg NAME=VALUE",
        ),
        ("k.py", "def f(:\n", "f", "k.py: not Python: invalid syntax"),
        (
            "k.py",
            "raise ValueError('\x1b[31mtwo\\nlines')\n",
            "f",
            r"k.py: cannot be imported: ValueError: \x1b[31mtwo",
        ),
        ("k.py", "import sys\nsys.exit(5)\n", "f", "k.py: cannot be imported: SystemExit: 5"),
    ],
    ids=["no such function", "no arguments", "syntax", "raises", "exits"],
)
def test_files_that_are_no_use(replay: Run, tmp_path: Path, name: str, text: str, function: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    said = complained(replay("reproduce", "--kernel", f"{name}:{function}", "--gpu", "T4", cwd=tmp_path))
    assert words in said


def test_a_file_that_ends_the_process(replay: Run, tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("import os\nos._exit(0)\n")
    done = replay("reproduce", "--kernel", "k.py:f", "--gpu", "T4", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.startswith("Not compiled: the compiler's process ended")


# Mistakes on the command line: one line, and 2; nothing is compiled for them.


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "which kernel? Give a log, or --kernel: "),
        (["missing.log"], "missing.log: no such file"),
        (["missing.json"], "missing.json: cannot be read: No such file"),
        ([CLEAN], "the verdict is none, not a block's shared memory"),
        ([*REFERENCE, "--gpu", "RTX 9999 Super"], "unknown GPU 'RTX 9999 Super'; "),
        (["--kernel", "none.py:f", "--gpu", "T4"], "none.py: there is no such file"),
        ([*REFERENCE, "--gpu", "T4", "--set", "head_size"], "--set head_size: write NAME=VALUE"),
        ([*REFERENCE, "--gpu", "T4", "--set", "tile=1", "--tile", "2"], "--set tile: it is given by its own option"),
        ([*REFERENCE, "--gpu", "T4", "--set", "num_warps=few"], "--set num_warps: few is no whole number above 0"),
        ([*REFERENCE, "--gpu", "T4", "--dtype", "float8"], "dtype: 'float8' is no element type"),
        ([*REFERENCE, "--gpu", "T4", "--triton", "newest"], "--triton newest: not a version"),
        ([*VLLM, "--gpu", "T4", "--source", "."], "there is no package vllm in there"),
        (["--kernel", "vllm.unified_attention", "--vllm", "../../x", "--gpu", "T4"], "that is no version"),
    ],
)
def test_mistakes(replay: Run, arguments: list[Any], words: str) -> None:
    assert words in complained(replay("reproduce", *arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--head-size", "0"], ["--head-size", "x"], ["--window", "-1"], ["--tile", "0"], ["--required", "-4"],
        ["--timeout", "0"], ["--limit", "-1"], ["--format", "csv"],
    ],
)  # fmt: skip
def test_options_out_of_range(run: Run, arguments: list[str]) -> None:
    done = run("reproduce", *REFERENCE, "--gpu", "T4", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert arguments[0] in done.stderr


def test_an_output_that_cannot_be_written(replay: Run, tmp_path: Path) -> None:
    said = complained(replay("reproduce", *REFERENCE, *CONTRACT, "--output", tmp_path / "no" / "where"))
    assert said.endswith("cannot be written: No such file or directory")
