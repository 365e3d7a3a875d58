"""``oortriage report --post`` and ``--new``: announce, ask, and send."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from oortriage.cli.output import ask, complain
from oortriage.errors import UsageError
from oortriage.post._interface import Client, Comment, Issue, Request
from oortriage.post.body import Body, comment_body
from oortriage.post.connect import connect
from oortriage.post.duplicates import Searched, find_duplicates
from oortriage.post.errors import PostError
from oortriage.post.forms import FORMS, issue_body, title_for
from oortriage.post.publish import look_up, own_comment, own_issue, put_comment, put_issue
from oortriage.post.rest import comment_request, issue_request, update_request
from oortriage.post.target import Target, api_url, read_issue, read_repository
from oortriage.report.escape import visible
from oortriage.triage.diagnosis import Diagnosis

if TYPE_CHECKING:
    from oortriage.report.document import Document
    from oortriage.report.redaction import Replacement


class PostJob(msgspec.Struct, frozen=True):
    """Where a report is to go, and how much has to be asked."""

    target: Target
    api: str
    yes: bool
    dry_run: bool

    @classmethod
    def of(cls, post: str, new: str, api: str, *, yes: bool, dry_run: bool) -> PostJob:
        """Read the options; nothing is sent, and nothing was analyzed yet.

        Raises:
            UsageError: one is not what it has to be, or nobody is there to ask.
        """
        target = read_issue(post) if post else read_repository(new)
        if not (yes or dry_run or sys.stdin.isatty()):
            raise UsageError("nobody is there to be asked before it is posted: --yes posts, --dry-run only shows")
        return cls(target, api_url(api, os.environ), yes, dry_run)

    def run(
        self,
        document: Document,
        diagnosis: Diagnosis,
        fingerprint: str,
        replaced: Sequence[Replacement],
        *,
        redacted: bool,
    ) -> str:
        """Post, or show what would be posted; return what goes to standard output.

        Args:
            document: the report.
            diagnosis: redacted like the report, for the search.
            fingerprint: of the failure.
            replaced: what was redacted.
            redacted: whether it was.

        Raises:
            PostError: it did not work.
            UsageError: the answer was no.
        """
        if not self.target.number and diagnosis.resource == "none":
            raise UsageError("the log holds no failure for lack of a resource: there is nothing to open an issue for")
        head = _Preview(replaced, redacted=redacted)
        with contextlib.ExitStack() as stack:
            try:
                client: Client | None = stack.enter_context(connect(self.api, complain))
            except PostError as problem:
                if not self.dry_run:
                    raise
                client = None
                complain(f"nothing was looked up: {problem}")
            if self.target.number:
                return self._comment(client, document, fingerprint, head)
            return self._issue(client, document, diagnosis, fingerprint, head)

    def _comment(self, client: Client | None, document: Document, fingerprint: str, preview: _Preview) -> str:
        body = comment_body(document, fingerprint)
        earlier: Comment | None = None
        me = ""
        if client is not None:
            issue = look_up(client, self.target)
            me = client.whoami()
            earlier = own_comment(client, self.target, fingerprint, me)
            locked = " (locked: only who may write there can comment)" if issue.locked else ""
            preview.add(f"where: {self.target.name}, {issue.title}{locked}", f"as: {me}")
            preview.add(f"updates: {earlier.url}" if earlier else "a new comment")
        preview.show(body)
        if self.dry_run or client is None:
            repository = self.target.repository
            if earlier:
                return _shown(update_request(self.api, repository, earlier.id, body.text))
            return _shown(comment_request(self.api, repository, self.target.number, body.text))
        self._ask(f"Post this to {self.target.name}?")

        def find() -> Comment | None:
            return own_comment(client, self.target, fingerprint, me)

        return put_comment(client, self.target, body.text, earlier, find).url

    def _issue(
        self, client: Client | None, document: Document, diagnosis: Diagnosis, fingerprint: str, preview: _Preview
    ) -> str:
        repository = self.target.repository
        title = title_for(repository, document)
        searched = Searched([], [], [])
        me = ""
        if client is not None:
            me = client.whoami()
            mine = own_issue(client, self.target, fingerprint, me)
            if mine is not None and mine.state != "closed":
                complain(f"this failure is reported there already, by {me}; nothing was opened")
                return mine.url
            named = msgspec.structs.replace(diagnosis, fingerprint=fingerprint)
            searched = find_duplicates(client, repository, named)
        body = issue_body(repository, document, fingerprint, _searches(searched))
        form = "the project's bug form" if repository.lower() in FORMS else "the plain report"
        preview.add(f"where: {repository}, a new issue in {form}", f"title: {title}", *([f"as: {me}"] if me else []))
        preview.add(*_listed(searched))
        preview.show(body)
        if self.dry_run or client is None:
            return _shown(issue_request(self.api, repository, title, body.text))
        if searched.found and not self.yes:
            raise UsageError(
                f"nothing was opened: {len(searched.found)} issue(s) may be about the same failure (above). "
                "Comment there with --post, or open one all the same with --yes"
            )
        self._ask(f"Open this issue in {repository}?")

        def find() -> Issue | None:
            found = own_issue(client, self.target, fingerprint, me)
            return found if found is not None and found.state != "closed" else None

        return put_issue(client, self.target, title, body.text, find).url

    def _ask(self, question: str) -> None:
        if not self.yes and ask(f"{question} [y/N]: ").lower() not in ("y", "yes"):
            raise UsageError("nothing was posted")


class _Preview:
    """What is told on stderr before anything is sent."""

    def __init__(self, replaced: Sequence[Replacement], *, redacted: bool) -> None:
        self._lines: list[str] = []
        kinds: dict[str, list[int]] = {}
        for one in replaced:
            kinds.setdefault(one.kind, []).append(one.count)
        said = [f"{kind} {len(counts)} ({sum(counts)} times)" for kind, counts in kinds.items()]
        self._redacted = ", ".join(said) or "nothing had to be replaced"
        if not redacted:
            self._redacted = "NO: the text goes as the log has it"

    def add(self, *lines: str) -> None:
        """Add lines that depend on where it goes."""
        self._lines += lines

    def show(self, body: Body) -> None:
        """Print all of it; texts of others cannot act on the terminal."""
        lines = [*self._lines, f"size: {len(body.text):,} characters of 65,536", f"redacted: {self._redacted}"]
        lines += [f"cut: {'; '.join(body.cut)}" if body.cut else "cut: nothing"]
        for line in lines:
            print(f"  {visible(line)}".replace("\n", "\\n"), file=sys.stderr)


def _listed(searched: Searched) -> list[str]:
    if not searched.queries:
        return []
    if not searched.found:
        return [f"duplicates: none found by {len(searched.queries)} searches"]
    lines = [f"may be the same ({one.state}): {one.url} {one.title}" for one in searched.alike]
    return [f"has this fingerprint ({one.state}): {one.url} {one.title}" for one in searched.same] + lines


def _searches(searched: Searched) -> list[str]:
    """Say what was searched for, for the form that asks."""
    if not searched.queries:
        return []
    said = [f"Searched the issues for: {query.partition('is:issue ')[2]}" for query in searched.queries]
    found = [f"May be related: number {one.number}, {one.title}" for one in searched.found[:5]]
    return [*said, *(found or ["Nothing alike was found."])]


def _shown(request: Request) -> str:
    body = msgspec.json.format(msgspec.json.encode(request.body), indent=2).decode()
    return f"{request.method} {request.url}\n\n{body}"
