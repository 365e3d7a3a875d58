"""The README says what the tool does: its example, its help block and its commands are run.

``OORTRIAGE_UPDATE=1 pytest tests/test_readme.py`` writes the generated blocks anew.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys

import pytest

from tests.cli.replaying import cache
from tests.conftest import ROOT

__all__ = ["cache"]  # a fixture

README = ROOT / "README.md"
SNAPSHOT = ROOT / "tests" / "snapshot" / "h200" / "fragmentation.pickle.gz"
ENVIRONMENT = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERMINAL_WIDTH": "80"}


#: The shape of a small Gemma 3, as its config states it.
GEMMA = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "head_dim": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "sliding_window": 1024,
    "num_hidden_layers": 34,
}
REPRODUCE = "oortriage reproduce --kernel reference.attention --gpu T4 --dtype float32 --head-size 256 --tile 32"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "oortriage", *arguments],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        cwd=ROOT,
        timeout=300,
        check=False,
    )


def block(name: str, body: str) -> str:
    return f"<!-- {name}:begin -->\n{body}<!-- {name}:end -->"


def help_text() -> str:
    return run("analyze", "--help").stdout.replace("python -m oortriage", "oortriage")


@pytest.mark.parametrize(
    ("name", "command", "output"),
    [
        ("demo", "oortriage demo", lambda: run("demo").stdout),
        ("help", "oortriage analyze --help", help_text),
        ("reproduce", REPRODUCE, lambda: run(*REPRODUCE.split()[1:]).stdout),
    ],
)
def test_block_is_what_the_tool_prints(name: str, command: str, output) -> None:
    lead = "" if name == "demo" else f"$ {command}\n"
    wanted = block(name, f"\n```text\n{lead}{output().strip()}\n```\n\n")
    text = README.read_text(encoding="utf-8")
    pattern = re.compile(rf"<!-- {name}:begin -->.*?<!-- {name}:end -->", re.DOTALL)
    if os.environ.get("OORTRIAGE_UPDATE"):
        README.write_text(pattern.sub(lambda _: wanted, text), encoding="utf-8")
        return
    found = pattern.search(text)
    assert found
    assert found.group() == wanted


def test_every_command_of_the_readme_runs(tmp_path, cache) -> None:
    environment = {**os.environ, "OORTRIAGE_CACHE": str(cache)}
    log = ROOT / "fixtures/triton/vllm-36802-t4-fp32-head256/log.txt"
    (tmp_path / "logs").mkdir()
    (tmp_path / "crash.log").write_bytes(log.read_bytes())
    (tmp_path / "logs" / "one.log").write_bytes(log.read_bytes())
    (tmp_path / "snapshot.pickle").write_bytes(gzip.decompress(SNAPSHOT.read_bytes()))
    (tmp_path / "config.json").write_text(json.dumps(GEMMA), encoding="utf-8")
    commands = re.findall(r"^\$ (oortriage [^#\n]+)", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) >= 7
    for written in commands:
        waits = written.startswith(("oortriage serve", "oortriage watch"))  # goes on until it is stopped
        command = " ".join(written.split()[:2]) + " --help" if waits else written
        shell = command.strip().replace("oortriage", f"{sys.executable} -m oortriage", 1)
        done = subprocess.run(
            shell, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        if "cannot be reached" in done.stderr:
            continue  # vLLM's source comes from the package index
        if done.returncode == 3 and ("--live" in command or "oortriage device" in command):
            continue  # no card here, which is what they say
        if "--post" in command:  # nobody is there to say yes
            assert done.returncode == 2, (command, done.stderr)
            continue
        assert done.returncode in (0, 1), (command, done.stderr)
        assert done.stdout.strip() or " -o " in command, command
        assert "Traceback" not in done.stderr


def test_python_example_runs(tmp_path, monkeypatch, capsys) -> None:
    log = ROOT / "fixtures/triton/vllm-36802-t4-fp32-head256/log.txt"
    (tmp_path / "crash.log").write_bytes(log.read_bytes())
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert code
    exec(code.group(1), {})
    assert capsys.readouterr().out.startswith("shared_memory")
