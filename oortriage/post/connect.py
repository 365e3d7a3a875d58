"""Which way to GitHub there is: ``gh`` with its login first, else a token of the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from oortriage.post._interface import Client
from oortriage.post.errors import PostError
from oortriage.post.gh import GhTransport, logged_in
from oortriage.post.http import HttpTransport, token_for
from oortriage.post.rest import RestClient
from oortriage.post.retry import Retrying
from oortriage.post.target import host_of


@contextmanager
def connect(api: str, tell: Callable[[str], object]) -> Iterator[Client]:
    """Open a client for an API; nothing is sent yet.

    Args:
        api: its address.
        tell: hears of waits.

    Raises:
        PostError: there is no login, or httpx is not installed.
    """
    host = host_of(api)
    path = logged_in(host)
    if path is not None:
        yield RestClient(Retrying(GhTransport(path), tell=tell), api)
        return
    token = token_for(host, os.environ)
    if not token:
        raise PostError(f"no login for {host}: run `gh auth login`, or set GH_TOKEN to a token that may write issues")
    transport = HttpTransport(token)
    try:
        yield RestClient(Retrying(transport, tell=tell), api)
    finally:
        transport.close()
