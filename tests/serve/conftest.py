"""A client of the page that acts like the page itself, and a small log."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer releases would rather have httpx2
    from starlette.testclient import TestClient

from oortriage.api import Analyzer
from oortriage.serve.app import build
from oortriage.serve.guard import Guard
from oortriage.serve.limits import Limits

TOKEN = "a-token-of-the-tests"
SMALL = Limits(upload_bytes=200_000, expanded_bytes=400_000, uploads=2, results=3, age_seconds=60)
RAW = {"content-type": "application/octet-stream"}


class Page:
    """The client with the token in front of every path."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def __call__(self, method: str, path: str, **more):
        headers = {"origin": "http://127.0.0.1:8765", "sec-fetch-site": "same-origin", **more.pop("headers", {})}
        return self.client.request(method, f"/{TOKEN}/{path}", headers=headers, **more)

    def add(self, data: bytes, name: str = "crash.log", **headers: str):
        return self("POST", "logs", params={"name": name}, content=data, headers={**RAW, **headers})


@pytest.fixture
def guard(analyzer: Analyzer) -> Guard:
    return build(analyzer, SMALL, token=TOKEN)


@pytest.fixture
def open_page() -> Iterator[Callable[[Guard], Page]]:
    opened: list[TestClient] = []

    def start(guard: Guard) -> Page:
        client = TestClient(guard, base_url="http://127.0.0.1:8765", follow_redirects=False)
        client.__enter__()
        opened.append(client)
        return Page(client)

    yield start
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def page(guard: Guard, open_page: Callable[[Guard], Page]) -> Page:
    return open_page(guard)


@pytest.fixture(scope="session")
def crash(fixtures: Path) -> bytes:
    return (fixtures / "triton" / "vllm-36802-t4-fp32-head256" / "log.txt").read_bytes()
