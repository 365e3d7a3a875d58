"""Both ways to GitHub do the same: what is sent, what comes back, what goes wrong, what is tried again."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest

from oortriage.post._interface import Request, Transport
from oortriage.post.connect import connect
from oortriage.post.errors import PostError, StatusError, UncertainError
from oortriage.post.gh import GhTransport, logged_in
from oortriage.post.http import HttpTransport, token_for
from oortriage.post.rest import RestClient
from oortriage.post.retry import PATIENCE, RateLimitError, Retrying, UnreachableError
from tests.post.conftest import as_gh
from tests.post.server import NUMBER, REPOSITORY, TOKEN, Clock, GitHub, Planned

COMMENTS = f"/repos/{REPOSITORY}/issues/{NUMBER}/comments"
ISSUE = f"/repos/{REPOSITORY}/issues/{NUMBER}"


def test_every_question_and_every_change(client: RestClient, github: GitHub) -> None:
    assert client.whoami() == "me"
    issue = client.get(REPOSITORY, NUMBER)
    assert (issue.repository, issue.number, issue.title, issue.body, issue.locked) == (
        REPOSITORY,
        NUMBER,
        "It crashes",
        "",
        False,
    )
    made = client.create_comment(REPOSITORY, NUMBER, "ü \U0001f41b `x`\n")
    assert (made.author, made.body) == ("me", "ü \U0001f41b `x`\n")
    assert client.update_comment(REPOSITORY, made.id, "new").body == "new"
    assert [one.body for one in client.comments(REPOSITORY, NUMBER)] == ["new"]
    opened = client.create_issue(REPOSITORY, "title", "body")
    assert [one.url for one in client.opened_by(REPOSITORY, "me")] == [opened.url]
    github.found.append(github.described(3, "old", "text"))
    assert [one.number for one in client.search('repo:octo/logs "a b" & c')] == [3]
    assert github.seen[-1].path.startswith("/search/issues?q=repo%3Aocto%2Flogs+%22a+b%22+%26+c&")
    for seen in github.seen:
        assert seen.headers["accept"] == "application/vnd.github+json"
        assert seen.headers["x-github-api-version"] == "2022-11-28"
        assert seen.headers["authorization"].endswith(TOKEN)


def test_a_workflow_asks_who_it_is_by_graphql(client: RestClient, github: GitHub) -> None:
    github.bot = True
    assert client.whoami() == "me"
    assert github.changes == []


def test_a_long_conversation_is_read_to_its_end(client: RestClient, github: GitHub) -> None:
    for number in range(205):
        github.comment(f"text {number}")
    assert [one.body for one in client.comments(REPOSITORY, NUMBER)][-1] == "text 204"


@pytest.mark.parametrize(
    ("status", "message", "words"),
    [
        (401, "Bad credentials", "the login is not valid"),
        (403, "Unable to create comment because issue is locked.", "the conversation is locked"),
        (403, "Resource not accessible by personal access token", "needs write access to issues"),
        (403, "Resource protected by organization SAML enforcement.", "single sign-on"),
        (404, "Not Found", "no such repository or issue"),
        (410, "Issues are disabled for this repo", "switched off"),
        (422, "Validation Failed", "not valid"),
        (418, "short and stout", "not expected"),
    ],
)
def test_a_refusal_says_what_to_do(
    client: RestClient, github: GitHub, clock: Clock, status: int, message: str, words: str
) -> None:
    github.plan("POST", COMMENTS, Planned(status, message=message))
    with pytest.raises(StatusError, match=words) as caught:
        client.create_comment(REPOSITORY, NUMBER, "text")
    assert caught.value.status == status
    assert message in str(caught.value)
    assert len(github.changes) == 1
    assert clock.waits == []


def test_a_text_that_is_too_long_is_said_to_be(client: RestClient) -> None:
    with pytest.raises(StatusError, match=r"too long \(422: Validation Failed; body is too long"):
        client.create_comment(REPOSITORY, NUMBER, "x" * 65_537)


def test_a_page_that_is_no_api(http_client: RestClient, github: GitHub) -> None:
    github.plan("GET", ISSUE, Planned(200, message="welcome to the hotel's network"))
    with pytest.raises(PostError, match="no answer of GitHub's API"):
        http_client.get(REPOSITORY, NUMBER)


# Faults and limits.


def test_questions_are_asked_again_after_faults(client: RestClient, github: GitHub, clock: Clock) -> None:
    github.plan("GET", ISSUE, Planned(502), Planned(503), Planned(500))
    assert client.get(REPOSITORY, NUMBER).title == "It crashes"
    assert clock.waits == [1, 2, 4]
    assert clock.told[0] == "GitHub answered 502; trying again in 1 s"


def test_faults_without_end_end(http_client: RestClient, github: GitHub, clock: Clock) -> None:
    github.plan("GET", ISSUE, *[Planned(503)] * 9)
    with pytest.raises(PostError, match="answered 503"):
        http_client.get(REPOSITORY, NUMBER)
    assert clock.waits == [1, 2, 4, 8]


def test_a_change_is_not_sent_twice_after_a_fault(client: RestClient, github: GitHub) -> None:
    github.plan("POST", COMMENTS, Planned(502, after=True))
    with pytest.raises(UncertainError):
        client.create_comment(REPOSITORY, NUMBER, "text")
    assert len(github.comments) == 1


def test_a_dropped_connection_is_uncertain(client: RestClient, github: GitHub) -> None:
    github.plan("POST", COMMENTS, *[Planned(0, drop=True, after=True)] * 3)
    with pytest.raises(UncertainError):
        client.create_comment(REPOSITORY, NUMBER, "text")
    assert len(github.comments) == 1


def test_retry_after_is_waited_for(client: RestClient, github: GitHub, clock: Clock) -> None:
    limited = Planned(403, {"Retry-After": "30"}, "You have exceeded a secondary rate limit")
    github.plan("POST", COMMENTS, limited, Planned(429, {"Retry-After": "2"}))
    client.create_comment(REPOSITORY, NUMBER, "text")
    assert clock.waits == [30, 2]
    assert [one["body"] for one in github.comments] == ["text"]


def test_the_reset_of_a_limit_is_waited_for(client: RestClient, github: GitHub, clock: Clock) -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(clock.time) + 20)}
    github.plan("GET", ISSUE, Planned(403, headers, "API rate limit exceeded"))
    client.get(REPOSITORY, NUMBER)
    assert 19 < clock.waits[0] <= 21


def test_a_secondary_limit_without_a_time_is_a_minute(http_client: RestClient, github: GitHub, clock: Clock) -> None:
    github.plan("GET", ISSUE, Planned(403, {}, "You have exceeded a secondary rate limit"))
    http_client.get(REPOSITORY, NUMBER)
    assert clock.waits == [60]


@pytest.mark.parametrize(
    "headers",
    [{"Retry-After": "86400"}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"}],
)
def test_a_wait_has_a_bound(http_client: RestClient, github: GitHub, clock: Clock, headers: dict[str, str]) -> None:
    github.plan("GET", ISSUE, Planned(403, headers))
    with pytest.raises(RateLimitError, match="asks to wait"):
        http_client.get(REPOSITORY, NUMBER)
    assert clock.waits == []


def test_waits_together_have_a_bound(http_client: RestClient, github: GitHub, clock: Clock) -> None:
    github.plan("GET", ISSUE, *[Planned(429, {"Retry-After": "50"})] * 9)
    with pytest.raises(RateLimitError):
        http_client.get(REPOSITORY, NUMBER)
    assert sum(clock.waits) <= PATIENCE


@pytest.mark.parametrize("told", ["soon", "-3", "", "Mon, 99 Foo", "9" * 400])
def test_a_time_that_is_none(http_client: RestClient, github: GitHub, clock: Clock, told: str) -> None:
    github.plan("GET", ISSUE, Planned(429, {"Retry-After": told}), Planned(429, {"Retry-After": told}))
    try:
        http_client.get(REPOSITORY, NUMBER)
    except RateLimitError:
        assert told.isdigit()
    assert all(0 < wait <= PATIENCE for wait in clock.waits)


def test_retry_after_may_be_a_date(http_client: RestClient, github: GitHub, clock: Clock) -> None:
    from email.utils import formatdate

    github.plan("GET", ISSUE, Planned(429, {"Retry-After": formatdate(clock.time + 40, usegmt=True)}))
    http_client.get(REPOSITORY, NUMBER)
    assert 38 < clock.waits[0] < 42


def test_nobody_listens(transport: Transport, clock: Clock) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        api = f"http://127.0.0.1:{taken.getsockname()[1]}"
        client = RestClient(Retrying(transport, sleep=clock.sleep, now=clock.now), api)
        with pytest.raises(UnreachableError):
            client.create_comment(REPOSITORY, NUMBER, "text")
    assert clock.waits == [1, 2, 4, 8]


def test_a_report_does_not_follow_a_redirect(client: RestClient, github: GitHub) -> None:
    elsewhere = f"{github.api}/repos/{REPOSITORY}/issues/{NUMBER}/comments?moved"
    github.plan("POST", COMMENTS, Planned(301, {"Location": elsewhere}, "Moved Permanently"))
    with pytest.raises(PostError):
        client.create_comment(REPOSITORY, NUMBER, "text")
    assert github.comments == []


# Logins.


def test_gh_comes_first_and_a_token_second(github: GitHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    as_gh(monkeypatch, tmp_path)
    api = github.api
    if shutil.which("gh"):
        assert logged_in("127.0.0.1")
        with connect(api, print) as client:
            assert client.whoami() == "me"
        assert "GitHub CLI" in github.seen[-1].headers["user-agent"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert logged_in("127.0.0.1") is None
    with connect(api, print) as client:
        assert client.whoami() == "me"
    assert github.seen[-1].headers["user-agent"].startswith("oortriage/")
    monkeypatch.delenv("GH_ENTERPRISE_TOKEN")
    with pytest.raises(PostError, match=r"no login for 127\.0\.0\.1"), connect(api, print):
        pass


@pytest.mark.parametrize(
    ("host", "names", "token"),
    [
        ("github.com", {"GH_TOKEN": "a", "GITHUB_TOKEN": "b", "GH_ENTERPRISE_TOKEN": "c"}, "a"),
        ("github.com", {"GITHUB_TOKEN": "b\n"}, "b"),
        ("github.com", {"GH_ENTERPRISE_TOKEN": "c"}, ""),
        ("git.corp", {"GH_TOKEN": "a", "GH_ENTERPRISE_TOKEN": "c"}, "c"),
        ("git.corp", {"GITHUB_TOKEN": "b"}, "b"),
    ],
)
def test_which_token(host: str, names: dict[str, str], token: str) -> None:
    assert token_for(host, names) == token


@pytest.mark.parametrize("token", ["a b", "a\r\nX-Evil: 1", "ü", ""])
def test_a_token_that_is_none(token: str) -> None:
    pytest.importorskip("httpx")
    with pytest.raises(PostError, match="no token has"):
        HttpTransport(token)


@pytest.mark.parametrize("answer", ["", "not HTTP at all", "HTTP/1.1 2x0 OK\n\n{}"])
def test_a_gh_that_says_something_else(tmp_path: Path, answer: str) -> None:
    script = tmp_path / "gh"
    script.write_text(f"#!/bin/sh\ncat >/dev/null\nprintf '%s' '{answer}'\necho 'went wrong' >&2\nexit 1\n")
    script.chmod(0o755)
    with pytest.raises(UncertainError, match="went wrong"):
        GhTransport(str(script)).send(Request("GET", "https://api.github.com/user"))


def test_a_gh_that_hangs_or_is_gone(tmp_path: Path) -> None:
    script = tmp_path / "gh"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)
    with pytest.raises(UncertainError, match="no answer in"):
        GhTransport(str(script), seconds=0.2).send(Request("GET", "https://api.github.com/user"))
    with pytest.raises(UnreachableError, match="cannot be run"):
        GhTransport(str(tmp_path / "gone")).send(Request("GET", "https://api.github.com/user"))
