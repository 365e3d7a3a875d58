"""What a way to GitHub can do, whatever it sends its requests through."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec


class Request(msgspec.Struct, frozen=True):
    """One request. ``url`` is whole; ``body`` is JSON to be."""

    method: str
    url: str
    body: dict[str, Any] | None = None

    @property
    def changes(self) -> bool:
        """Whether it changes something there."""
        return self.method not in ("GET", "HEAD") and not self.url.endswith("/graphql")


class Response(msgspec.Struct, frozen=True):
    """One answer. Names of ``headers`` are in lower case; ``body`` is decoded JSON, or None."""

    status: int
    headers: dict[str, str] = {}
    body: Any = None

    @property
    def message(self) -> str:
        """GitHub's own words, with those of single errors."""
        if not isinstance(self.body, dict):
            return ""
        errors = self.body.get("errors")
        single = errors if isinstance(errors, list) else []
        words = [one.get("message") or one.get("code") if isinstance(one, dict) else one for one in single]
        return "; ".join(str(one) for one in [self.body.get("message"), *words] if one)


class Transport(Protocol):
    """Sends one request and returns what came back, whatever its status."""

    def send(self, request: Request) -> Response:
        """Send a request.

        Raises:
            UnreachableError: it did not get there.
            UncertainError: it got there, and no answer came back.
        """


class Comment(msgspec.Struct, frozen=True):
    """A comment under an issue."""

    id: int
    author: str
    body: str
    url: str


class Issue(msgspec.Struct, frozen=True):
    """An issue or pull request. ``repository`` is owner/name as it is called there."""

    repository: str
    number: int
    title: str
    author: str
    body: str
    state: str
    locked: bool
    url: str


class Client(Protocol):
    """What posting needs. Every method raises a PostError that says what went wrong."""

    def whoami(self) -> str:
        """Return the login's name."""

    def get(self, repository: str, number: int) -> Issue:
        """Return an issue."""

    def comments(self, repository: str, number: int) -> list[Comment]:
        """Return the comments of an issue, oldest first."""

    def opened_by(self, repository: str, author: str) -> list[Issue]:
        """Return the newest issues that somebody opened."""

    def search(self, query: str) -> list[Issue]:
        """Search issues; the best matches come first."""

    def create_comment(self, repository: str, number: int, body: str) -> Comment:
        """Write a comment."""

    def update_comment(self, repository: str, comment: int, body: str) -> Comment:
        """Write a comment anew."""

    def create_issue(self, repository: str, title: str, body: str) -> Issue:
        """Open an issue."""
