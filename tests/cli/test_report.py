"""``oortriage report`` end to end: formats, redaction, parts run before, and posting to a GitHub on this machine."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from oortriage.api import Analyzer
from oortriage.cli.app import main
from oortriage.fix.verify import SCHEMA_VERSION, Layer, Verification
from oortriage.report.json import encode
from tests.cli.conftest import CLEAN, MASKED, T4, Run, command, complained
from tests.cli.replaying import cache, replay
from tests.post.server import NUMBER, REPOSITORY, TOKEN, GitHub, Planned, serving

__all__ = ["cache", "replay"]  # fixtures

ISSUE = f"{REPOSITORY}#{NUMBER}"
SECRET = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ12345678"
#: A crash with a secret beside it, and what would act if it were not escaped.
LOG = (
    f"HF_TOKEN={SECRET}\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB "
    f"of which 1.00 GiB is free. @octocat see #1 <img src=x> HF_TOKEN={SECRET} \x1b[31m\n"
)


@pytest.fixture
def github() -> Iterator[GitHub]:
    with serving() as server:
        yield server


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "crash.log"
    path.write_text(LOG)
    return path


@pytest.fixture(scope="session")
def t4(analyzer: Analyzer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The diagnosis as `analyze` writes it, so that nothing waits for the rules."""
    path = tmp_path_factory.mktemp("t4") / "t4.json"
    path.write_text(encode(analyzer.file(T4)))
    return path


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run the command in this process: the same `main`, without the start of a process."""

    def call(*arguments: str | Path, env: dict[str, str] | None = None, **_: Any) -> subprocess.CompletedProcess[str]:
        words = list(map(str, arguments))
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            patch.setattr("sys.argv", ["oortriage", *words])
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        code = ended.value.code
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess(words, code if isinstance(code, int) else 0, out, err)

    return call


@pytest.fixture
def post(here: Run, github: GitHub, tmp_path: Path) -> Run:
    """Run the command with a login for that GitHub, and no gh."""
    pytest.importorskip("httpx", reason="posting with a token needs httpx (the extra [post])")
    return logged_in(here, github, tmp_path, path="")


def logged_in(run: Run, github: GitHub, folder: Path, path: str) -> Run:
    def call(*arguments: str | Path, env: dict[str, str] | None = None, **more: Any) -> Any:
        login = {
            "GH_ENTERPRISE_TOKEN": TOKEN,
            "GH_HOST": "127.0.0.1",
            "GH_CONFIG_DIR": str(folder / "gh"),
            "PATH": path,
            **(env or {}),
        }
        return run("report", *arguments, "--api-url", github.api, env=login, **more)

    return call


# The report.


@pytest.mark.parametrize(("path", "code"), [(T4, 1), (CLEAN, 0), (MASKED, 3)])
def test_exit_codes(run: Run, path: Path, code: int) -> None:
    done = run("report", path)
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.startswith("## ")


@pytest.mark.parametrize(
    ("format", "start"), [("markdown", "## "), ("html", "<!"), ("json", "{"), ("sarif", "{"), ("text", "Shared")]
)
def test_formats(here: Run, t4: Path, tmp_path: Path, format: str, start: str) -> None:  # noqa: A002
    out = tmp_path / "report"
    done = here("report", t4, "--format", format, "--output", out)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    text = out.read_text()
    assert text.lower().startswith(start.lower())
    assert re.search("81,?920", text)


def test_json_holds_the_parts(here: Run, t4: Path) -> None:
    found = json.loads(here("report", t4, "--format", "json", "--exit-zero").stdout)
    assert found["diagnosis"]["code"] == "SM101"
    assert (found["reproduction"], found["experiment"], found["verification"]) == (None, None, None)
    assert found["commands"] == [f"oortriage analyze {t4}"]
    assert found["redacted"] == []


@pytest.mark.parametrize("format", ["markdown", "html", "json", "sarif", "text"])
def test_secrets_stay(here: Run, log: Path, format: str) -> None:  # noqa: A002
    done = here("report", log, "--format", format)
    assert done.returncode == 1
    assert SECRET not in done.stdout
    assert "\x1b" not in done.stdout


def test_unredacted_only_with_the_word(here: Run, log: Path) -> None:
    done = here("report", log, "--no-redact=publish")
    assert done.returncode == 1
    assert SECRET in done.stdout
    assert "nobody is there to type it" in complained(here("report", "--no-redact", log))
    assert "not confirmed" in complained(here("report", log, "--no-redact=yes"))
    assert "not confirmed" in complained(here("report", log, "--no-redact=Publish"))


def test_a_log_from_standard_input_or_diagnosed_before(run: Run, tmp_path: Path) -> None:
    assert "81,920" in run("report", "-", stdin=T4.read_bytes()).stdout
    before = tmp_path / "before.json"
    before.write_text(run("analyze", T4, "--format", "json").stdout)
    assert "81,920" in run("report", before).stdout


def test_what_was_run_before_is_in_it(replay: Run, tmp_path: Path) -> None:
    reproduction = tmp_path / "reproduction.json"
    options = (
        "--kernel",
        "reference.attention",
        "--gpu",
        "T4",
        "--dtype",
        "float32",
        "--head-size",
        "256",
        "--tile",
        "32",
    )
    done = replay("reproduce", *options, "--required", "81920", "--format", "json", "-o", reproduction)
    assert done.returncode == 0, done.stderr
    found = json.loads(replay("report", T4, "--reproduction", reproduction, "--format", "json").stdout)
    assert found["reproduction"]["required_bytes"] == 81920
    assert f"oortriage reproduce {T4}" in found["commands"]
    other = json.loads(reproduction.read_text()) | {"printed_bytes": 99}
    reproduction.write_text(json.dumps(other))
    assert "it is of another failure: 99 bytes" in complained(replay("report", T4, "--reproduction", reproduction))


def test_the_kernel_is_compiled_and_varied_for_the_report(replay: Run) -> None:
    done = replay("report", T4, "--reproduce", "--experiment", "--format", "json", "--exit-zero")
    found = json.loads(done.stdout)
    if found["reproduction"] is None:
        pytest.skip(f"vLLM's source cannot be read here: {done.stderr}")
    assert found["reproduction"]["required_bytes"] == 81920
    assert {cell["required_bytes"] for cell in found["experiment"]["cells"] if cell.get("required_bytes")} >= {
        49152,
        81920,
    }
    assert [one.split()[1] for one in found["commands"]] == ["analyze", "reproduce", "experiment"]


def test_layers_verified_before_are_in_it(here: Run, t4: Path, tmp_path: Path) -> None:
    verification = Verification(
        SCHEMA_VERSION,
        rule="tile16",
        vllm="vLLM 0.17.1",
        version="0.17.1",
        applied=False,
        verified=True,
        layers=[
            Layer("policy", "passed", "288 rows"),
            Layer("bytes", "passed", "81,920 before, 49,152 after"),
            Layer("kernel", "not_run", "needs a card"),
        ],
    )
    path = tmp_path / "verified.json"
    path.write_bytes(msgspec.json.encode(verification))
    text = here("report", t4, "--verification", path).stdout
    assert "81,920 before, 49,152 after" in text
    assert "needs a card" in text
    found = json.loads(here("report", t4, "--verification", path, "--format", "json").stdout)
    assert [one["status"] for one in found["verification"]["layers"]] == ["passed", "passed", "not_run"]
    assert found["commands"][-1] == "oortriage patch verify"


def test_what_cannot_be_run_is_told(here: Run) -> None:
    done = here("report", CLEAN, "--reproduce")
    assert done.returncode == 0
    assert done.stderr.startswith("oortriage: reproduce was not run: ")
    assert done.stdout.startswith("## ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--reproduce", "--reproduction", "x"), "do not go together"),
        (("--experiment", "--experiment-file", "x"), "do not go together"),
        (("--verification", "gone.json"), "cannot be read"),
        (("--verification", T4), "not what `oortriage patch verify --format json` writes"),
        (("--post", "o/r#1", "--new", "o/r"), "do not go together"),
        (("--dry-run",), "go with --post or --new"),
        (("--post", "o/r"), "write owner/repo#NUMBER"),
        (("--new", "o/r#1"), "write owner/repo"),
        (("--post", "o/r#1"), "nobody is there to be asked"),
        (("--post", "o/r#1", "--yes", "--api-url", "http://git.corp"), "in the clear"),
        (("--output", "/nowhere/at/all"), "cannot be written"),
    ],
)
def test_mistakes(here: Run, t4: Path, arguments: tuple[str | Path, ...], words: str) -> None:
    assert words in complained(here("report", t4, *arguments))


def test_a_log_that_is_not_there(here: Run) -> None:
    assert "gone.log" in complained(here("report", "gone.log"))


# Posting.


def test_a_comment_and_its_update(post: Run, github: GitHub, log: Path) -> None:
    done = post(log, "--post", ISSUE, "--yes")
    assert done.returncode == 1, done.stderr
    assert done.stdout == github.comments[0]["html_url"] + "\n"
    assert re.search(
        r"where: octo/logs#7, It crashes\n  as: me\n  a new comment\n  size: [\d,]+ characters", done.stderr
    )
    assert re.search(r"redacted: .*token 1 \(\d times\)", done.stderr)
    body = github.comments[0]["body"]
    assert body.startswith("<!-- oortriage report v1-")
    assert SECRET not in json.dumps([one.body for one in github.seen])
    assert "\x1b" not in body
    log.write_text(LOG.replace("Tried", "again: Tried"))
    more = post(log, "--post", ISSUE, "--yes")
    assert more.stdout == done.stdout
    assert [one.method for one in github.changes] in (["POST"], ["POST", "PATCH"])
    assert len(github.comments) == 1


def test_what_the_log_says_does_not_act(post: Run, github: GitHub, log: Path) -> None:
    cmark = pytest.importorskip("cmarkgfm", reason="GitHub's reader of Markdown is in the extra [test]")
    assert post(log, "--post", ISSUE, "--yes").returncode == 1
    page = cmark.github_flavored_markdown_to_html(github.comments[0]["body"])
    outside = re.sub(r"<(code|pre)[^>]*>.*?</\1>", "", page, flags=re.DOTALL)
    assert "<img" not in page
    assert "@octocat" not in outside


@pytest.mark.skipif(not shutil.which("gh"), reason="gh is not installed")
def test_a_comment_through_gh(run: Run, github: GitHub, log: Path, tmp_path: Path) -> None:
    done = logged_in(run, github, tmp_path, os.environ["PATH"])(log, "--post", ISSUE, "--yes")
    assert done.returncode == 1, done.stderr
    assert done.stdout == github.comments[0]["html_url"] + "\n"
    assert all("GitHub CLI" in one.headers["user-agent"] for one in github.seen)
    assert TOKEN not in done.stdout + done.stderr


def test_a_dry_run_changes_nothing(post: Run, github: GitHub, t4: Path) -> None:
    done = post(t4, "--post", ISSUE, "--dry-run")
    first, _, body = done.stdout.partition("\n\n")
    assert first == f"POST {github.api}/repos/{REPOSITORY}/issues/{NUMBER}/comments"
    text = json.loads(body)["body"]
    assert "81,920" in text
    github.comment(text.replace("81,920", "old"))
    again = post(t4, "--post", ISSUE, "--dry-run").stdout
    assert again.startswith(f"PATCH {github.api}/repos/{REPOSITORY}/issues/comments/100\n")
    assert post(t4, "--new", REPOSITORY, "--dry-run").stdout.startswith(
        f"POST {github.api}/repos/{REPOSITORY}/issues\n"
    )
    assert github.changes == []


def test_a_dry_run_without_a_login(here: Run, t4: Path, tmp_path: Path) -> None:
    env = {"PATH": "", "GH_CONFIG_DIR": str(tmp_path), "GH_TOKEN": "", "GITHUB_TOKEN": ""}
    done = here("report", t4, "--post", "o/r#1", "--dry-run", "--api-url", "http://127.0.0.1:9", env=env)
    assert done.stdout.startswith("POST http://127.0.0.1:9/repos/o/r/issues/1/comments\n")
    assert "nothing was looked up: no login" in done.stderr
    done = here("report", t4, "--post", "o/r#1", "--yes", "--api-url", "http://127.0.0.1:9", env=env)
    assert "no login for 127.0.0.1" in complained(done)


def test_the_report_goes_to_a_file_too(post: Run, github: GitHub, t4: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    done = post(t4, "--post", ISSUE, "--yes", "--format", "json", "--output", out)
    assert done.stdout == github.comments[0]["html_url"] + "\n"
    assert json.loads(out.read_text())["diagnosis"]["code"] == "SM101"


def test_a_refusal_is_one_line_and_2(post: Run, github: GitHub, t4: Path) -> None:
    locked = Planned(403, message="Unable to create comment because issue is locked.")
    github.plan("POST", f"/repos/{REPOSITORY}/issues/{NUMBER}/comments", locked)
    done = post(t4, "--post", ISSUE, "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert "oortriage: GitHub refused: the conversation is locked" in done.stderr.splitlines()[-1]
    assert post(t4, "--post", f"{REPOSITORY}#8", "--yes").returncode == 2
    assert "not valid" in post(t4, "--post", ISSUE, "--yes", env={"GH_ENTERPRISE_TOKEN": "x"}).stderr


def test_a_hostile_issue_does_not_reach_the_terminal(post: Run, github: GitHub, t4: Path) -> None:
    github.plan("GET", f"/repos/{REPOSITORY}/issues/{NUMBER}", Planned(404, message="\x1b]0;x\x07\nlist"))
    done = post(t4, "--post", ISSUE, "--yes")
    assert "\x1b" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_issue_is_opened_and_not_again(post: Run, github: GitHub, t4: Path) -> None:
    done = post(t4, "--new", REPOSITORY, "--yes")
    assert (done.returncode, done.stdout) == (1, github.issues[0]["html_url"] + "\n"), done.stderr
    assert "duplicates: none found by 3 searches" in done.stderr
    assert "required 81,920 B" in github.issues[0]["title"]
    again = post(t4, "--new", REPOSITORY, "--yes")
    assert again.stdout == done.stdout
    assert "is reported there already, by me" in again.stderr
    assert len(github.issues) == 1


def test_duplicates_are_shown(post: Run, github: GitHub, t4: Path) -> None:
    github.found.append(github.described(3, "the same \x1b[2J", "text", "someone"))
    done = post(t4, "--new", REPOSITORY, "--yes")
    assert f"may be the same (open): https://github.com/{REPOSITORY}/issues/3 the same \\x1b[2J" in done.stderr
    assert len(github.issues) == 1


def test_no_issue_where_nothing_failed(post: Run, github: GitHub) -> None:
    assert "nothing to open an issue for" in complained(post(CLEAN, "--new", REPOSITORY, "--yes"))
    assert github.seen == []


# At a terminal.


def at_terminal(
    arguments: list[str | Path], answer: str, environment: dict[str, str], folder: Path
) -> tuple[int, str, str]:
    """Run with a terminal as standard input, type an answer, and return the code and both outputs."""
    pty = pytest.importorskip("pty", reason="terminals of this kind are POSIX's")
    outer, inner = pty.openpty()
    try:
        with subprocess.Popen(
            command(["report", *arguments]), stdin=inner, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=folder, env=environment, text=True,
        ) as child:  # fmt: skip
            os.write(outer, answer.encode())
            out, err = child.communicate(timeout=60)
        return child.returncode, out, err
    finally:
        for end in (outer, inner):
            with contextlib.suppress(OSError):
                os.close(end)


@pytest.mark.parametrize(("answer", "posted"), [("y\n", 1), ("n\n", 0), ("\n", 0)])
def test_the_question(
    environment: dict[str, str], t4: Path, github: GitHub, tmp_path: Path, answer: str, posted: int
) -> None:
    env = {**environment, "GH_ENTERPRISE_TOKEN": TOKEN, "PATH": ""}
    code, out, err = at_terminal([t4, "--post", ISSUE, "--api-url", github.api], answer, env, tmp_path)
    assert f"Post this to {ISSUE}? [y/N]:" in err
    assert len(github.comments) == posted
    assert (code, bool(out)) == ((1, True) if posted else (2, False))


def test_possible_duplicates_need_more_than_an_answer(
    environment: dict[str, str], t4: Path, github: GitHub, tmp_path: Path
) -> None:
    github.found.append(github.described(3, "the same", "text", "someone"))
    env = {**environment, "GH_ENTERPRISE_TOKEN": TOKEN, "PATH": ""}
    code, out, err = at_terminal([t4, "--new", REPOSITORY, "--api-url", github.api], "y\n", env, tmp_path)
    assert (code, out, github.changes) == (2, "", [])
    assert "open one all the same with --yes" in err


@pytest.mark.parametrize(("answer", "code"), [("publish\n", 1), ("yes\n", 2), ("\n", 2)])
def test_the_word(environment: dict[str, str], log: Path, tmp_path: Path, answer: str, code: int) -> None:
    done, out, err = at_terminal(["--no-redact", log], answer, environment, tmp_path)
    assert done == code
    assert (SECRET in out) == (code == 1)
    assert "Type 'publish' to go on" in err
