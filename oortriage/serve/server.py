"""The socket, and the server on it until Ctrl-C."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import socket
import threading
import webbrowser
from collections.abc import Callable

from oortriage.errors import UsageError
from oortriage.serve.guard import Guard, is_loopback

#: Seconds that requests get to end after Ctrl-C.
_GRACE_SECONDS = 3


def bind(host: str, port: int) -> socket.socket:
    """Open the socket; port 0 is any free one.

    Raises:
        UsageError: the host is not this machine only, or the port is taken.
    """
    name = host.strip("[]")
    if not is_loopback(name):
        raise UsageError(
            f"--host {host}: this page is for this machine only (localhost, 127.0.0.1 or ::1). "
            "From another one, use a tunnel: ssh -L 8765:localhost:8765 THIS_MACHINE"
        )
    address = "127.0.0.1" if name.lower() == "localhost" else name
    family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    try:
        opened = socket.socket(family, socket.SOCK_STREAM)
    except OSError as problem:
        raise UsageError(f"--host {host}: {problem.strerror or problem}") from problem
    try:
        if os.name == "posix":  # else the port stays taken for a minute after the last server on it
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((address, port))
        opened.listen(128)
    except OSError as problem:
        opened.close()
        if problem.errno == errno.EADDRINUSE:
            raise UsageError(f"port {port} is in use; --port 0 takes a free one") from problem
        if problem.errno == errno.EACCES:
            raise UsageError(f"port {port} may not be used; --port 0 takes a free one") from problem
        raise UsageError(f"{host}, port {port}: {problem.strerror or problem}") from problem
    return opened


def address_of(opened: socket.socket, token: str) -> str:
    """Return the page's address."""
    host, port = opened.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/{token}/"


def run(
    guard: Guard,
    opened: socket.socket,
    *,
    open_page: bool = False,
    browser: Callable[[str], object] = webbrowser.open,
) -> None:
    """Serve until SIGINT or SIGTERM; returns after an interrupt.

    Args:
        guard: the application.
        opened: listens already, so a browser that is early waits.
        open_page: open the page in a browser, by an address that works once.
        browser: opens an address.
    """
    import uvicorn

    config = uvicorn.Config(
        guard,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="on",
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=64,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    if open_page:
        once = address_of(opened, "").removesuffix("//") + guard.ticket()
        threading.Thread(target=browser, args=(once,), daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[opened])
