"""Where a report goes, read strictly: a slip must not send it to somebody else."""

from __future__ import annotations

import pytest

from oortriage.errors import UsageError
from oortriage.post.target import Target, api_url, host_of, read_issue, read_repository


def test_targets() -> None:
    assert read_issue("octo-org/a.b_c#12") == Target("octo-org/a.b_c", 12)
    assert read_repository("o/r") == Target("o/r")
    assert (Target("o/r", 3).name, Target("o/r").name) == ("o/r#3", "o/r")


@pytest.mark.parametrize(
    "text",
    ["", "o/r", "o/r#", "o/r#0", "o/r#-1", "o/r#1x", "o/r#1#2", "o#1", "o/r/s#1", "o/..#1", "../r#1", "o/r?x#1", "o/r #1",
     "https://github.com/o/r/issues/1", "o/r#١", "o/r#1\n", "-o/r#1", "ö/r#1", "o/r#99999999999"],
)  # fmt: skip
def test_no_issue(text: str) -> None:
    with pytest.raises(UsageError, match="owner/repo#NUMBER"):
        read_issue(text)


@pytest.mark.parametrize("text", ["", "o", "o/", "/r", "o/r#1", "o/.", "o/r/s", "o/r\n"])
def test_no_repository(text: str) -> None:
    with pytest.raises(UsageError, match=r"write owner/repo$"):
        read_repository(text)


@pytest.mark.parametrize(
    ("given", "environment", "url", "host"),
    [
        ("", {}, "https://api.github.com", "github.com"),
        ("", {"GH_HOST": "github.com"}, "https://api.github.com", "github.com"),
        ("", {"GH_HOST": "git.corp"}, "https://git.corp/api/v3", "git.corp"),
        ("", {"GH_HOST": "us.ghe.com"}, "https://api.us.ghe.com", "us.ghe.com"),
        ("https://git.corp:8443/api/v3/", {"GH_HOST": "other"}, "https://git.corp:8443/api/v3", "git.corp"),
        ("http://127.0.0.1:80", {}, "http://127.0.0.1:80", "127.0.0.1"),
        ("http://[::1]:80", {}, "http://[::1]:80", "::1"),
        ("", {"GITHUB_API_URL": "https://x/api/v3"}, "https://api.github.com", "github.com"),
        ("", {"GITHUB_API_URL": "https://x/api/v3", "GITHUB_ACTIONS": "true"}, "https://x/api/v3", "x"),
    ],
)
def test_which_api(given: str, environment: dict[str, str], url: str, host: str) -> None:
    assert api_url(given, environment) == url
    assert host_of(url) == host


@pytest.mark.parametrize(
    "url",
    ["git.corp", "ftp://git.corp", "https://", "https://a@git.corp", "https://git.corp/?x", "https://[", "https://h:x", "http://git.corp",
     "http://127.0.0.1.evil.com"],
)  # fmt: skip
def test_no_api(url: str) -> None:
    with pytest.raises(UsageError):
        api_url(url, {})
