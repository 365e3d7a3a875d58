"""A GitHub on this machine, and both ways to it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from oortriage.post._interface import Transport
from oortriage.post.gh import GhTransport
from oortriage.post.http import HttpTransport
from oortriage.post.rest import RestClient
from oortriage.post.retry import Retrying
from tests.post.server import TOKEN, Clock, GitHub, serving


@pytest.fixture
def github() -> Iterator[GitHub]:
    with serving() as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["httpx", "gh"])
def transport(request: pytest.FixtureRequest) -> Transport:
    """Either way, really talking."""
    return request.getfixturevalue("open_gh" if request.param == "gh" else "open_http")[0]


@pytest.fixture
def open_http() -> Iterator[list[Transport]]:
    pytest.importorskip("httpx", reason="posting with a token needs httpx (the extra [post])")
    made = HttpTransport(TOKEN)
    yield [made]
    made.close()


@pytest.fixture
def open_gh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Transport]:
    path = shutil.which("gh")
    if path is None:
        pytest.skip("gh is not installed")
    as_gh(monkeypatch, tmp_path)
    return [GhTransport(path)]


def as_gh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Log gh in to the server of the test, with nothing of the machine's own login."""
    for name in ("GH_TOKEN", "GITHUB_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GH_CONFIG_DIR", str(tmp_path / "gh"))
    monkeypatch.setenv("GH_HOST", "127.0.0.1")
    monkeypatch.setenv("GH_ENTERPRISE_TOKEN", TOKEN)


@pytest.fixture
def client(transport: Transport, github: GitHub, clock: Clock) -> RestClient:
    retrying = Retrying(transport, sleep=clock.sleep, now=clock.now, tell=clock.told.append)
    return RestClient(retrying, github.api)


@pytest.fixture
def http_client(open_http: list[Transport], github: GitHub, clock: Clock) -> RestClient:
    return RestClient(Retrying(open_http[0], sleep=clock.sleep, now=clock.now, tell=clock.told.append), github.api)
