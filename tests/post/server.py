"""The part of GitHub's REST API that posting needs, on this machine, over real HTTP."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

REPOSITORY, NUMBER = "octo/logs", 7
TOKEN = "a-token-for-tests"


@dataclass
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Planned:
    """An answer instead of the real one. ``after``: the request is carried out all the same."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "planned"
    after: bool = False
    drop: bool = False


class GitHub(ThreadingHTTPServer):
    """One repository with one issue; whoever holds the token is ``me``."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[Seen] = []
        self.comments: list[dict[str, Any]] = []
        self.issues: list[dict[str, Any]] = []
        self.found: list[dict[str, Any]] = []
        self.planned: dict[tuple[str, str], list[Planned]] = {}
        self.moved_to = ""
        self.locked = False
        self.bot = False

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def changes(self) -> list[Seen]:
        return [one for one in self.seen if one.method in ("POST", "PATCH") and one.path != "/graphql"]

    def plan(self, method: str, path: str, *answers: Planned) -> None:
        self.planned[method, path] = list(answers)

    def comment(self, body: str, author: str = "me") -> dict[str, Any]:
        number = 100 + len(self.comments)
        url = f"https://github.com/{REPOSITORY}/issues/{NUMBER}#issuecomment-{number}"
        self.comments.append({"id": number, "html_url": url, "user": {"login": author}, "body": body})
        return self.comments[-1]

    def issue(self, title: str, body: str, author: str = "me", state: str = "open") -> dict[str, Any]:
        number = NUMBER + 1 + len(self.issues)
        self.issues.append(self.described(number, title, body, author, state))
        return self.issues[-1]

    def described(self, number: int, title: str, body: str | None, author: str = "me", state: str = "open") -> Any:
        return {
            "number": number,
            "html_url": f"https://github.com/{REPOSITORY}/issues/{number}",
            "title": title,
            "user": {"login": author},
            "body": body,
            "state": state,
            "locked": self.locked,
            "repository_url": f"{self.api}/repos/{self.moved_to or REPOSITORY}",
        }

    def answer(self, seen: Seen) -> tuple[int, Any]:
        url = urlsplit(seen.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if seen.headers.get("authorization", "").split()[-1:] != [TOKEN]:
            return 401, {"message": "Bad credentials"}
        base = f"/repos/{REPOSITORY}"
        match seen.method, url.path:
            case "GET", "/user":
                if self.bot:
                    return 403, {"message": "Resource not accessible by integration"}
                return 200, {"login": "me"}
            case "POST", "/graphql":
                return 200, {"data": {"viewer": {"login": "me"}}}
            case "GET", "/search/issues":
                return 200, {"total_count": len(self.found), "items": self.found}
            case "GET", path if path == f"{base}/issues/{NUMBER}":
                return 200, self.described(NUMBER, "It crashes", None, "someone")
            case "GET", path if path == f"{base}/issues/{NUMBER}/comments":
                start = (int(query["page"]) - 1) * int(query["per_page"])
                return 200, self.comments[start : start + int(query["per_page"])]
            case "GET", path if path == f"{base}/issues":
                mine = [one for one in self.issues if one["user"]["login"] == query["creator"]]
                return 200, mine[::-1][: int(query["per_page"])]
            case "POST", path if path == f"{base}/issues":
                return self._too_long(seen) or (201, self.issue(seen.body["title"], seen.body["body"]))
            case "POST", path if path == f"{base}/issues/{NUMBER}/comments":
                return self._too_long(seen) or (201, self.comment(seen.body["body"]))
            case "PATCH", path if found := re.fullmatch(f"{base}/issues/comments/(\\d+)", path):
                one = next(one for one in self.comments if one["id"] == int(found[1]))
                one["body"] = seen.body["body"]
                return 200, one
        return 404, {"message": "Not Found"}

    @staticmethod
    def _too_long(seen: Seen) -> tuple[int, Any] | None:
        if len(seen.body["body"]) <= 65_536:
            return None
        single = {"resource": "Issue", "code": "custom", "message": "body is too long (maximum is 65536 characters)"}
        return 422, {"message": "Validation Failed", "errors": [single]}


class _Handler(BaseHTTPRequestHandler):
    server: GitHub
    protocol_version = "HTTP/1.1"

    def _any(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        data = self._chunks() if headers.get("transfer-encoding") == "chunked" else self._plain(headers)
        seen = Seen(self.command, self.path, headers, json.loads(data) if data else None)
        self.server.seen.append(seen)
        planned = self.server.planned.get((self.command, urlsplit(self.path).path))
        if not planned:
            self._reply(*self.server.answer(seen), {})
            return
        now = planned.pop(0)
        if now.after:
            self.server.answer(seen)
        if now.drop:
            self.close_connection = True
            self.connection.close()
            return
        self._reply(now.status, {"message": now.message}, now.headers)

    do_GET = do_POST = do_PATCH = _any  # noqa: N815

    def _plain(self, headers: dict[str, str]) -> bytes:
        return self.rfile.read(int(headers.get("content-length") or 0))

    def _chunks(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline().strip() or b"0", 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _reply(self, status: int, body: Any, headers: dict[str, str]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json; charset=utf-8", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@contextmanager
def serving() -> Iterator[GitHub]:
    with GitHub() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class Clock:
    """Time that passes only where somebody waits."""

    def __init__(self) -> None:
        self.start = self.time = time.time()
        self.waits: list[float] = []
        self.told: list[str] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds

    def now(self) -> float:
        return self.time
