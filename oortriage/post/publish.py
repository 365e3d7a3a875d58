"""Posts a report: one comment for one failure, written anew when there is more to say; or a new issue, once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from oortriage.post._interface import Client, Comment, Issue
from oortriage.post.body import is_marked
from oortriage.post.errors import PostError, UncertainError
from oortriage.post.target import Target

#: Seconds between a request without a clear answer and the look whether it was carried out; one try each.
_WAITS = (2.0, 8.0)
T = TypeVar("T")


def look_up(client: Client, target: Target) -> Issue:
    """Return the issue a comment is for.

    Raises:
        PostError: there is none, or it has gone to another place since.
    """
    issue = client.get(target.repository, target.number)
    there = Target(issue.repository, issue.number)
    if there.name.lower() != target.name.lower():
        raise PostError(f"{target.name} is now {there.name}: give that, if it is the one you mean")
    return issue


def own_comment(client: Client, target: Target, fingerprint: str, me: str) -> Comment | None:
    """Return the newest comment of this login on this failure; those of others are never touched."""
    found = [one for one in client.comments(target.repository, target.number) if one.author.lower() == me.lower()]
    return next((one for one in reversed(found) if is_marked(one.body, fingerprint)), None)


def own_issue(client: Client, target: Target, fingerprint: str, me: str) -> Issue | None:
    """Return the newest issue of this login on this failure among its latest ones in that repository."""
    return next((one for one in client.opened_by(target.repository, me) if is_marked(one.body, fingerprint)), None)


def put_comment(
    client: Client,
    target: Target,
    body: str,
    earlier: Comment | None,
    find: Callable[[], Comment | None],
    sleep: Callable[[float], object] = time.sleep,
) -> Comment:
    """Write a comment, or the earlier one anew; one that says the same already is left alone.

    Args:
        client: where.
        target: the issue.
        body: the text.
        earlier: this login's comment on the same failure.
        find: looks for that comment again, after a request without a clear answer.
        sleep: waits some seconds.

    Raises:
        PostError: it did not work; the message says whether it may be there all the same.
    """
    if earlier is not None:
        if _same(earlier.body, body):
            return earlier
        comment = earlier.id
        return _surely(
            lambda: client.update_comment(target.repository, comment, body),
            lambda: next((one for one in [find()] if one is not None and _same(one.body, body)), None),
            sleep,
        )
    return _surely(lambda: client.create_comment(target.repository, target.number, body), find, sleep)


def put_issue(
    client: Client,
    target: Target,
    title: str,
    body: str,
    find: Callable[[], Issue | None],
    sleep: Callable[[float], object] = time.sleep,
) -> Issue:
    """Open an issue; the arguments and errors are those of :func:`put_comment`."""
    return _surely(lambda: client.create_issue(target.repository, title, body), find, sleep)


def _surely(write: Callable[[], T], find: Callable[[], T | None], sleep: Callable[[float], object]) -> T:
    """Write, and where no clear answer comes, look whether it is there before writing again."""
    for wait in (*_WAITS, None):
        try:
            return write()
        except UncertainError as problem:
            if wait is None:
                raise PostError(f"{problem}; it may have been written all the same: look there first") from problem
            sleep(wait)
            found = find()
            if found is not None:
                return found
    raise AssertionError  # the last try returns or raises


def _same(one: str, other: str) -> bool:
    """Compare texts as GitHub keeps them: with its own line breaks, and no blanks at the end."""
    return one.replace("\r\n", "\n").rstrip() == other.replace("\r\n", "\n").rstrip()
