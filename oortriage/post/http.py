"""Requests through httpx, with a token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oortriage.post._interface import Request, Response
from oortriage.post.errors import PostError, UncertainError
from oortriage.post.rest import HEADERS, decoded
from oortriage.post.retry import UnreachableError
from oortriage.version import __version__

_SECONDS = 30.0


class HttpTransport:
    """Sends requests itself. Redirects are followed for questions only: a report goes where it was meant to."""

    def __init__(self, token: str, *, seconds: float = _SECONDS) -> None:
        """Open a connection pool.

        Args:
            token: what the login is; it is sent to the API alone.
            seconds: how long one answer may take.

        Raises:
            PostError: httpx is not installed, or the token is none.
        """
        try:
            import httpx
        except ImportError as problem:
            raise PostError(
                "posting with a token needs httpx: pip install 'oortriage[post]' (or log in with gh)"
            ) from problem
        if not (token.isascii() and token.isprintable() and token.split() == [token]):
            raise PostError("the token holds characters that no token has")
        self._httpx: Any = httpx
        self._client = httpx.Client(
            headers={**HEADERS, "Authorization": f"Bearer {token}", "User-Agent": f"oortriage/{__version__}"},
            timeout=seconds,
            max_redirects=3,
        )

    def send(self, request: Request) -> Response:
        """Send one request.

        Raises:
            UnreachableError: there was no connection.
            UncertainError: the connection ended before the answer did.
        """
        try:
            got = self._client.request(
                request.method, request.url, json=request.body, follow_redirects=request.method == "GET"
            )
        except (self._httpx.ConnectError, self._httpx.ConnectTimeout, self._httpx.ProxyError) as problem:
            raise UnreachableError(f"{_host(request)} cannot be reached: {problem}") from problem
        except (self._httpx.HTTPError, self._httpx.InvalidURL) as problem:
            raise UncertainError(
                f"{_host(request)} gave no whole answer: {problem or type(problem).__name__}"
            ) from problem
        return Response(
            got.status_code, {name.lower(): value for name, value in got.headers.items()}, decoded(got.content)
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def token_for(host: str, environment: Mapping[str, str]) -> str:
    """Return the token of the environment for a host; empty where there is none.

    A host other than github.com has tokens of its own; where none is set, the common ones count, because the user
    named that host.
    """
    common = ("GH_TOKEN", "GITHUB_TOKEN")
    own = ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN")
    names = common if host == "github.com" or host.endswith(".ghe.com") else (*own, *common)
    return next((token for name in names if (token := environment.get(name, "").strip())), "")


def _host(request: Request) -> str:
    return request.url.split("/")[2]
