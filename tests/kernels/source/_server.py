"""A package index of one wheel on this machine: it can serve ranges, refuse them, cut answers short, and count."""

from __future__ import annotations

import base64
import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FILES = {
    "gizmo/__init__.py": b"",
    "gizmo/ops/kernel.py": b"BLOCK = 64\n" + b"# filler\n" * 5000,
    "gizmo/ops/table.json": b"{}",
    "gizmo/ops/deeper/other.py": b"OTHER = 1\n",
}


def digest(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def wheel(files: dict[str, bytes] = FILES, record: str | None = None) -> bytes:
    """Make a wheel; ``record`` replaces the true RECORD ("" leaves it out)."""
    lines = "".join(f"{path},{digest(data)},{len(data)}\n" for path, data in FILES.items())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as opened:
        for path, data in files.items():
            opened.writestr(path, data)
        if record != "":
            opened.writestr("gizmo-1.2.0.dist-info/RECORD", lines if record is None else record)
    return out.getvalue()


class Index:
    """What is served, and what was asked for. ``mode``: ranges, whole, gone, cut, silent."""

    def __init__(self) -> None:
        self.mode = "ranges"
        self.wheel = wheel()
        self.versions = ["1.0.0", "1.1.0", "1.2.0", "1.2.1rc1", "2.0.0", "2.0.1"]
        self.asked: list[str] = []
        self.sent = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/simple/"

    def page(self) -> bytes:
        names = [f"gizmo-{one}-py3-none-any.whl" for one in self.versions] + ["gizmo-0.9.0.tar.gz"]
        return "".join(f'<a href="../../files/{one}">{one}</a>\n' for one in names).encode()


class _Handler(BaseHTTPRequestHandler):
    index: Index
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.do_GET(body=False)

    def do_GET(self, *, body: bool = True) -> None:
        index = self.index
        index.asked.append(f"{self.command} {self.path} {self.headers.get('Range', '')}".strip())
        if self.path == "/simple/gizmo/":
            self._send(200, index.page(), {"Content-Type": "text/html"}, body=body)
        elif self.path.startswith("/files/") and index.mode != "gone":
            self._file(body=body)
        else:
            self._send(404, b"not here", {}, body=body)

    def _file(self, *, body: bool) -> None:
        data, asked = self.index.wheel, self.headers.get("Range")
        if self.index.mode == "whole" or not asked:
            self._send(200, data, {}, body=body)
            return
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last), len(data) - 1) if first and last else len(data) - 1
        piece = data[start : end + 1]
        headers = {"Content-Range": f"bytes {start}-{end}/{len(data)}", "Accept-Ranges": "bytes"}
        self._send(206, piece[: len(piece) // 2] if self.index.mode == "cut" else piece, headers, body=body)

    def _send(self, code: int, data: bytes, headers: dict[str, str], *, body: bool) -> None:
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data)
            self.index.sent += len(data)


@contextmanager
def serving() -> Iterator[Index]:
    """Serve an index until the block ends."""
    index = Index()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"index": index}))
    server.daemon_threads = True
    index.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
