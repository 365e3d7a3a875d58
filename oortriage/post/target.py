"""Where a report goes: an issue, a repository, and the API of the GitHub it is on."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from oortriage.errors import UsageError

_REPOSITORY = re.compile(
    r"(?P<repository>[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!$)){0,38}/(?!\.{1,2}(?:#|$))[A-Za-z0-9._-]{1,100})"
)
_ISSUE = re.compile(_REPOSITORY.pattern + r"#(?P<number>[1-9][0-9]{0,9})")
_PUBLIC_API = "https://api.github.com"


class Target(msgspec.Struct, frozen=True):
    """An issue, or with ``number`` 0 a repository."""

    repository: str
    number: int = 0

    @property
    def name(self) -> str:
        """As people write it."""
        return f"{self.repository}#{self.number}" if self.number else self.repository


def read_issue(text: str) -> Target:
    """Read ``owner/repo#N``.

    Raises:
        UsageError: it is something else.
    """
    found = _ISSUE.fullmatch(text)
    if not found:
        raise UsageError(f"--post {text}: write owner/repo#NUMBER")
    return Target(found["repository"], int(found["number"]))


def read_repository(text: str) -> Target:
    """Read ``owner/repo``.

    Raises:
        UsageError: it is something else.
    """
    found = _REPOSITORY.fullmatch(text)
    if not found:
        raise UsageError(f"--new {text}: write owner/repo")
    return Target(found["repository"])


def api_url(given: str, environment: Mapping[str, str]) -> str:
    """Return the address of the API, without a slash at its end.

    Args:
        given: what ``--api-url`` says; it wins.
        environment: GH_HOST names a GitHub Enterprise; GITHUB_API_URL counts in a workflow.

    Raises:
        UsageError: no such address, or one to which a token would travel in the clear.
    """
    host = environment.get("GH_HOST", "").strip()
    if given:
        url = given
    elif host:
        url = _api_of(host)
    elif environment.get("GITHUB_ACTIONS") == "true" and environment.get("GITHUB_API_URL"):
        url = environment["GITHUB_API_URL"]
    else:
        url = _PUBLIC_API
    return _checked(url)


def host_of(api: str) -> str:
    """Return the host that a login belongs to, as ``gh`` names it."""
    host = urlsplit(api).hostname or ""
    if host == "api.github.com":
        return "github.com"
    return host.removeprefix("api.") if host.endswith(".ghe.com") else host


def _api_of(host: str) -> str:
    if host.lower() in ("github.com", "api.github.com"):
        return _PUBLIC_API
    return f"https://api.{host}" if host.lower().endswith(".ghe.com") else f"https://{host}/api/v3"


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment or parts.username is not None:
        raise UsageError(f"{url}: no address of an API; write https://HOST/api/v3")
    if parts.scheme == "http" and not _is_here(host):
        raise UsageError(f"{url}: a token would travel in the clear; write https://")
    return url.rstrip("/")


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
