"""Stands before every route: whom the server answers, and the headers that every answer has."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from oortriage.report.escape import visible

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_SAFE = ("GET", "HEAD")
#: Of the page itself: our own files and nothing else; no inline script, no form, no frame round it.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), usb=()",
    "cache-control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Say whether a name or address is this machine only: localhost, 127.0.0.0/8 or ::1, without a port."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Lets through what comes from this machine's own page and knows the token.

    A page on the web can make a browser send requests here, under its own name when that name is made to
    resolve to 127.0.0.1. So ``Host`` must be a loopback name (any port: it may come through a tunnel), the
    origin must be our own, and the path begins with a token that nobody else knows.
    """

    def __init__(self, app: App, token: str = "") -> None:
        """Guard an application; a new token is made where none is given."""
        self._app = app
        self.token = token or secrets.token_urlsafe(24)
        self._tickets: set[str] = set()

    def ticket(self) -> str:
        """Return a path that leads to the page once: a browser's command line is read by every user of a machine."""
        made = secrets.token_urlsafe(24)
        self._tickets.add(made)
        return f"/open/{made}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on with the token taken off its path."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        answer = _Answer(send)
        headers = _headers(scope)
        if refusal := _refusal(scope["method"], headers):
            await answer.text(403, refusal)
            return
        first, _, rest = scope["path"].removeprefix("/").partition("/")
        if first == "open" and scope["method"] == "GET" and rest in self._tickets:
            self._tickets.discard(rest)
            await answer.text(303, "", location=f"/{self.token}/")
            return
        if not hmac.compare_digest(first.encode("utf-8", "replace"), self.token.encode()):
            await answer.text(404, "Not found. Open the address that oortriage serve printed, with its token.")
            return
        if "/" not in scope["path"][1:]:
            await answer.text(307, "", location=f"/{self.token}/")
            return
        inner = {**scope, "path": f"/{rest}", "root_path": "", "raw_path": f"/{rest}".encode("utf-8", "replace")}
        try:
            await self._app(inner, receive, answer.send)
        except Exception as problem:  # noqa: BLE001 (one bad request must not print a traceback, nor end the server)
            said = visible(f"{type(problem).__name__}: {problem}").replace("\n", " ")
            sys.stderr.write(f"oortriage: a request failed: {said[:300]}\n")
            if not answer.begun:
                await answer.text(500, "The server failed on this request.")


class _Answer:
    """Puts our headers on whatever is answered."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            own = [(bytes(name).lower(), value) for name, value in message.get("headers", [])]
            has = {name for name, _ in own}
            more = [(name.encode(), value.encode()) for name, value in _HEADERS.items() if name.encode() not in has]
            message = {**message, "headers": [*own, *more]}
        await self._send(message)

    async def text(self, status: int, text: str, **headers: str) -> None:
        body = text.encode()
        fields = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(body)), **headers}
        listed = [(name.encode(), value.encode()) for name, value in fields.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": listed})
        await self.send({"type": "http.response.body", "body": body})


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(bytes(name).decode("latin-1").lower(), []).append(bytes(value).decode("latin-1"))
    return found


def _refusal(method: str, headers: dict[str, list[str]]) -> str:
    """Say why a request is not from our own page; empty when it may be."""
    hosts = headers.get("host", [])
    if len(hosts) != 1 or not is_loopback(_name_of(hosts[0])):
        return "This server answers to localhost only."
    origins = headers.get("origin", [])
    if origins and origins != [f"http://{hosts[0]}"]:
        return "This request comes from another site."
    site = headers.get("sec-fetch-site", [])
    fetched = site[0] if site else ""
    if fetched in ("", "same-origin"):
        return ""
    # A person may follow a link to the page itself, or type its address; nothing else comes from outside.
    navigates = headers.get("sec-fetch-mode") == ["navigate"] and headers.get("sec-fetch-dest") == ["document"]
    if method in _SAFE and (fetched == "none" or navigates):
        return ""
    return "This request comes from another site."


def _name_of(host: str) -> str:
    """Return the name in a ``Host`` header; empty when it is none."""
    try:
        parts = urlsplit(f"//{host}")
        parts.port  # noqa: B018 (raises where it is no port)
    except ValueError:
        return ""
    if parts.netloc != host or "@" in host or parts.path or parts.query or parts.fragment:
        return ""
    return parts.hostname or ""
