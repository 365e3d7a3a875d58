"""Runs one engine in a process of its own and says how it ended; its log is read by the product's own reader."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from oortriage.cache import cache_folder
from oortriage.fix.engine.layout import lay_out
from oortriage.fix.engine.model import CONFIG, weights, write_model
from oortriage.fix.engine.player import VARIABLE as PLAYS
from oortriage.fix.plugin import VARIABLE as POLICY
from oortriage.gpu.virtual.driver import Card
from oortriage.triage.diagnosis import Diagnosis

#: Tokens to generate, and lengths of the prompts: within the sliding window and beyond it.
TOKENS, PROMPTS = 32, (64, 1500)
#: Device memory for all, and of that for the KV cache; the model's weights are 90 MB.
MEMORY_BYTES, KV_CACHE_BYTES = 6 << 30, 1 << 30
#: A cold start: import, compilation of every kernel, on a slow disk.
SECONDS = 900.0

#: Which processes there are: all in one; an engine core that is spawned; a worker below that.
Processes = Literal["one", "core", "worker"]
Form = Literal["control", "file", "plugin"]
#: Reads a log; given by the command, for the rules are loaded there.
Reader = Callable[[Path], Diagnosis]

_REPORT = re.compile(r"oortriage: tile policy \S+ is on in process (?P<pid>\d+) \((?P<name>[^)]*)\)")
_ERROR = re.compile(r"\b[A-Z]\w*(?:Error|Exception): .+")
#: The user's own settings that would change what is checked.
_CLEARED = ("VLLM_PLUGINS", "VLLM_ATTENTION_BACKEND", "TRITON_INTERPRET", POLICY, PLAYS)


class EngineAsk(msgspec.Struct, frozen=True):
    """One run; ``rule`` by plugin, ``plays`` the card that the one here is to play.

    ``paths``: the folder that holds the package ``vllm`` as it is to be, then those that come behind the user's own.
    """

    form: Form
    processes: Processes
    python: str
    paths: tuple[str, ...]
    rule: str = ""
    plays: Card | None = None


class EngineRun(msgspec.Struct, frozen=True):
    """How a run ended. Bytes of a block; seconds by stage; ``reporting`` maps processes to their ids.

    ``stage`` is the last that began: import, start, request, done. ``tokens`` are those generated, a list a prompt;
    ``warnings`` what the plugin said beyond that it is on.
    """

    form: Form
    processes: Processes
    status: Literal["generated", "out_of_resources", "failed", "timed_out"]
    stage: str
    exit_code: int | None
    tokens: list[list[int]] = []
    required_bytes: int | None = None
    limit_bytes: int | None = None
    code: str = ""
    fingerprint: str = ""
    reporting: dict[str, int] = {}
    warnings: list[str] = []
    seconds: dict[str, float] = {}
    detail: str = ""

    @property
    def whole(self) -> bool:
        """Whether every prompt got all its tokens and the program ended well."""
        return self.status == "generated" and [len(one) for one in self.tokens] == [TOKENS] * len(PROMPTS)


def run_engine(ask: EngineAsk, read: Reader, *, seconds: float = SECONDS, logs: Path | None = None) -> EngineRun:
    """Run one engine; a process that hangs is ended with all its children.

    Args:
        ask: what to run.
        read: reads the log of a run that failed.
        seconds: time limit.
        logs: a folder that gets the run's log, named by form and processes.
    """
    with tempfile.TemporaryDirectory(prefix="oortriage-engine-") as place:
        folder = Path(place)
        result, log = folder / "result.json", folder / "engine.log"
        program = lay_out(folder / "path")
        job = {
            "model": str(write_model(folder / "model")),
            "weights": weights(),
            "vocabulary": CONFIG["vocab_size"],
            "tokens": TOKENS,
            "prompts": PROMPTS,
            "memory_bytes": MEMORY_BYTES,
            "kv_cache_bytes": KV_CACHE_BYTES,
            "executor": "mp" if ask.processes == "worker" else "",
            "result": str(result),
        }
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        command = [ask.python, str(program), str(folder / "job.json")]
        exit_code = _call(command, _variables(ask, folder), log, folder, seconds)
        if logs is not None:
            logs.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(log, logs / f"{ask.form}-{ask.processes}.log")
        told = _told(result)
        text = log.read_text(encoding="utf-8", errors="replace")
        base = EngineRun(
            ask.form,
            ask.processes,
            "timed_out" if exit_code is None else "generated" if not exit_code else "failed",
            told.get("stage", "import"),
            exit_code,
            tokens=told.get("tokens", []),
            reporting=_reporting(text, told.get("pid", 0)),
            warnings=_warnings(text),
            seconds=told.get("seconds", {}),
        )
        if base.whole:
            return base
        return _diagnosed(base, read(log), text)


def _diagnosed(run: EngineRun, found: Diagnosis, text: str) -> EngineRun:
    required, limit = found.numbers.get("required_bytes"), found.numbers.get("limit_bytes")
    refused = run.status == "failed" and found.resource == "shared_memory" and required is not None
    return msgspec.structs.replace(
        run,
        status="out_of_resources" if refused else "failed" if run.status == "generated" else run.status,
        required_bytes=int(required) if required is not None else None,
        limit_bytes=int(limit) if limit is not None else None,
        code=found.code,
        fingerprint=found.fingerprint,
        detail=(found.summary if found.resource not in ("none", "undetermined") else _first_error(text))[:400],
    )


def _first_error(text: str) -> str:
    """Find the first exception in a log: those after it tell of its consequences."""
    if found := _ERROR.search(text):
        return found.group()
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it wrote nothing")


def _variables(ask: EngineAsk, folder: Path) -> dict[str, str]:
    found = {name: value for name, value in os.environ.items() if name not in _CLEARED}
    kept = [one for one in (found.get("PYTHONPATH"),) if one]
    found |= {
        "PYTHONPATH": os.pathsep.join([str(folder / "path"), *ask.paths[:1], *kept, *ask.paths[1:]]),
        "PYTHONSAFEPATH": "",
        "OORTRIAGE_CACHE": str(cache_folder()),
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0" if ask.processes == "one" else "1",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "VLLM_USE_FLASHINFER_SAMPLER": "0",  # it would compile itself at first use
        "VLLM_USE_DEEP_GEMM": "0",  # FP8 products: no part of this, and warmed up at every start on Hopper
        "VLLM_CACHE_ROOT": str(folder / "cache"),
        "VLLM_CONFIG_ROOT": str(folder / "config"),
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
    }
    if ask.rule:
        found[POLICY] = ask.rule
    if ask.plays is not None:
        found[PLAYS] = msgspec.json.encode(ask.plays).decode()
        # Apart: the binaries in there are text, which the cache's key does not know.
        found["TRITON_CACHE_DIR"] = str(cache_folder() / "text-for-driver" / ask.plays.target.name)
    return found


def _call(command: list[str], variables: dict[str, str], log: Path, folder: Path, seconds: float) -> int | None:
    """Return the exit code; None when time ran out."""
    with log.open("wb") as out:
        child = subprocess.Popen(  # noqa: S603 (the interpreter of the vLLM to check, and our program)
            command, stdout=out, stderr=subprocess.STDOUT, env=variables, cwd=folder, start_new_session=True
        )
        try:
            return child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:  # an engine core outlives its front end now and then
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _told(result: Path) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told


def _reporting(text: str, front_end: int) -> dict[str, int]:
    """Find the processes that said that the policy is on, by the names that vLLM gives them."""
    found: dict[str, int] = {}
    for match in _REPORT.finditer(text):
        pid, name = int(match["pid"]), match["name"]
        if name == "MainProcess":  # vLLM also starts one that only looks at the model's class
            name = "front end" if pid == front_end else "model registry"
        found.setdefault(name, pid)
    return found


def _warnings(text: str) -> list[str]:
    """List what the plugin warned of, each once; vLLM's own prefix is left out."""
    found = (line.partition("oortriage: ")[2].strip() for line in text.splitlines() if "WARNING" in line)
    return list(dict.fromkeys(one for one in found if one))
