"""What can go wrong on the way to GitHub, each in one line that says what to do."""

from __future__ import annotations

from oortriage.errors import OortriageError

#: Characters of GitHub's own words that are passed on.
_WORDS = 300


class PostError(OortriageError):
    """Nothing was posted, and the message says why."""


class UncertainError(PostError):
    """A request that changes something got no clear answer: it may have been carried out."""


class StatusError(PostError):
    """GitHub said no. ``status`` is the HTTP status."""

    def __init__(self, status: int, words: str, asked: str) -> None:
        """Put the message together.

        Args:
            status: the HTTP status.
            words: GitHub's own message.
            asked: the request, as method and path.
        """
        self.status = status
        said = " ".join(words.split())[:_WORDS]
        super().__init__(f"GitHub refused: {_meaning(status, said)} ({status}{': ' + said if said else ''}; {asked})")


def _meaning(status: int, words: str) -> str:
    low = words.lower()
    if status == 401:
        return "the login is not valid: `gh auth login`, or a fresh token in GH_TOKEN"
    if "locked" in low:
        return "the conversation is locked"
    if status == 403 and ("saml" in low or "sso" in low):
        return "the organisation wants the token authorised for single sign-on"
    if status == 403:
        return "this login may not do that: the token needs write access to issues"
    if status == 404:
        return "there is no such repository or issue, or this login may not see it"
    if status == 410:
        return "the issue is deleted, or issues are switched off there"
    if status == 422 and "too long" in low:
        return "the text is too long"
    if status == 422:
        return "the request is not valid"
    if 300 <= status < 400:
        return "the repository has moved: name it as it is called now"
    return "an answer that was not expected"
