"""GitHub's REST API over any transport."""

from __future__ import annotations

from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from oortriage.post._interface import Comment, Issue, Request, Response, Transport
from oortriage.post.errors import PostError, StatusError

#: Sent with every request; the version that this file speaks.
HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
#: Comments a page, pages that are looked through, and results of a search.
_PAGE, _MOST_PAGES = 100, 50
_FOUND = 10


class _User(msgspec.Struct):
    login: str = ""


class _Comment(msgspec.Struct):
    id: int
    html_url: str
    user: _User | None = None
    body: str | None = None


class _Issue(msgspec.Struct):
    number: int
    html_url: str
    title: str = ""
    user: _User | None = None
    body: str | None = None
    state: str = ""
    locked: bool = False
    repository_url: str = ""


class _Search(msgspec.Struct):
    items: list[_Issue] = []


T = TypeVar("T")


class RestClient:
    """A Client over a transport; see :class:`oortriage.post._interface.Client`."""

    def __init__(self, transport: Transport, api: str) -> None:
        """Keep what sends, and the address of the API without a slash at its end."""
        self._transport, self._api = transport, api

    def whoami(self) -> str:
        """Return the login's name; a workflow's token may ask by GraphQL only."""
        try:
            return self._ask("GET", "/user", _User).login
        except StatusError as problem:
            if problem.status != 403:
                raise
            body = self._raw(Request("POST", self._graphql(), {"query": "query{viewer{login}}"})).body
            try:
                login = body["data"]["viewer"]["login"]
            except (TypeError, KeyError):
                raise problem from None
            return str(login)

    def get(self, repository: str, number: int) -> Issue:
        """Return an issue or pull request."""
        return _issue(self._ask("GET", f"{_repo(repository)}/issues/{number}", _Issue), repository)

    def comments(self, repository: str, number: int) -> list[Comment]:
        """Return the comments of an issue, oldest first.

        Raises:
            PostError: there are more than anybody can look through.
        """
        found: list[Comment] = []
        for page in range(1, _MOST_PAGES + 1):
            query = urlencode({"per_page": _PAGE, "page": page})
            path = f"{_repo(repository)}/issues/{number}/comments?{query}"
            part = [_comment(one) for one in self._ask("GET", path, list[_Comment])]
            found += part
            if len(part) < _PAGE:
                return found
        raise PostError(f"{repository}#{number} has more than {len(found):,} comments: an earlier one cannot be found")

    def opened_by(self, repository: str, author: str) -> list[Issue]:
        """Return the newest issues that somebody opened, open or closed."""
        query = urlencode({"creator": author, "state": "all", "sort": "created", "per_page": _FOUND})
        found = self._ask("GET", f"{_repo(repository)}/issues?{query}", list[_Issue])
        return [_issue(one, repository) for one in found]

    def search(self, query: str) -> list[Issue]:
        """Search issues; at most ten, the best matches first."""
        path = f"/search/issues?{urlencode({'q': query, 'per_page': _FOUND})}"
        return [_issue(one, "") for one in self._ask("GET", path, _Search).items]

    def create_comment(self, repository: str, number: int, body: str) -> Comment:
        """Write a comment."""
        return _comment(self._send(comment_request(self._api, repository, number, body), _Comment))

    def update_comment(self, repository: str, comment: int, body: str) -> Comment:
        """Write a comment anew."""
        return _comment(self._send(update_request(self._api, repository, comment, body), _Comment))

    def create_issue(self, repository: str, title: str, body: str) -> Issue:
        """Open an issue."""
        return _issue(self._send(issue_request(self._api, repository, title, body), _Issue), repository)

    def _graphql(self) -> str:
        base = self._api.removesuffix("/v3")
        return f"{base}/graphql"

    def _ask(self, method: str, path: str, kind: type[T]) -> T:
        return self._send(Request(method, self._api + path), kind)

    def _raw(self, request: Request) -> Response:
        response = self._transport.send(request)
        if not 200 <= response.status < 300:
            asked = f"{request.method} {urlsplit(request.url).path}"
            raise StatusError(response.status, response.message, asked)
        return response

    def _send(self, request: Request, kind: type[T]) -> T:
        body = self._raw(request).body
        try:
            return msgspec.convert(body, kind)
        except msgspec.ValidationError as problem:
            path = urlsplit(request.url).path
            raise PostError(f"{request.method} {path}: that is no answer of GitHub's API: {problem}") from problem


def comment_request(api: str, repository: str, number: int, body: str) -> Request:
    """Return the request that writes a comment."""
    return Request("POST", f"{api}{_repo(repository)}/issues/{number}/comments", {"body": body})


def update_request(api: str, repository: str, comment: int, body: str) -> Request:
    """Return the request that writes a comment anew."""
    return Request("PATCH", f"{api}{_repo(repository)}/issues/comments/{comment}", {"body": body})


def issue_request(api: str, repository: str, title: str, body: str) -> Request:
    """Return the request that opens an issue."""
    return Request("POST", f"{api}{_repo(repository)}/issues", {"title": title, "body": body})


def decoded(data: bytes) -> Any:
    """Decode the body of an answer; None where it is no JSON."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return None


def _repo(repository: str) -> str:
    return f"/repos/{quote(repository)}"


def _comment(one: _Comment) -> Comment:
    return Comment(one.id, one.user.login if one.user else "", one.body or "", one.html_url)


def _issue(one: _Issue, repository: str) -> Issue:
    named = one.repository_url.partition("/repos/")[2] or repository
    author = one.user.login if one.user else ""
    return Issue(named, one.number, one.title, author, one.body or "", one.state, one.locked, one.html_url)
