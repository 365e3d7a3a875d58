"""Which way to GitHub there is: ``gh`` with its login first, else a token of the environment."""

from __future__ import annotations

import os
from collections.abc import Callable

from oortriage.post._interface import Client, Transport
from oortriage.post.errors import PostError
from oortriage.post.gh import GhTransport, logged_in
from oortriage.post.http import HttpTransport, token_for
from oortriage.post.rest import RestClient
from oortriage.post.retry import Retrying
from oortriage.post.target import host_of


def connect(api: str, tell: Callable[[str], object]) -> Client:
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
        transport: Transport = GhTransport(path)
    elif token := token_for(host, os.environ):
        transport = HttpTransport(token)
    else:
        raise PostError(f"no login for {host}: run `gh auth login`, or set GH_TOKEN to a token that may write issues")
    return RestClient(Retrying(transport, tell=tell), api)
