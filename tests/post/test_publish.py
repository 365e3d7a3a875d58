"""One comment for one failure, one issue, and never a second one by mistake."""

from __future__ import annotations

import pytest

from oortriage.post._interface import Comment, Issue
from oortriage.post.body import is_marked, marker
from oortriage.post.errors import PostError
from oortriage.post.publish import look_up, own_comment, own_issue, put_comment, put_issue
from oortriage.post.rest import RestClient
from oortriage.post.target import Target
from tests.post.server import NUMBER, REPOSITORY, Clock, GitHub, Planned

MARK = "v1-0123456789ab"
BODY = f"{marker(MARK)}\n\nthe report\n"
TARGET = Target(REPOSITORY, NUMBER)
COMMENTS = f"/repos/{REPOSITORY}/issues/{NUMBER}/comments"


def put(client: RestClient, clock: Clock, body: str = BODY) -> Comment:
    def find() -> Comment | None:
        return own_comment(client, TARGET, MARK, "me")

    return put_comment(client, TARGET, body, find(), find, clock.sleep)


def test_a_comment_is_written_once_and_then_anew(client: RestClient, github: GitHub, clock: Clock) -> None:
    first = put(client, clock)
    second = put(client, clock, BODY + "more\n")
    assert (first.id, first.url) == (second.id, second.url)
    assert [one["body"] for one in github.comments] == [BODY + "more\n"]
    assert [one.method for one in github.changes] == ["POST", "PATCH"]


def test_the_same_text_is_left_alone(http_client: RestClient, github: GitHub, clock: Clock) -> None:
    github.comment(BODY.replace("\n", "\r\n").strip())  # as GitHub may keep it
    put(http_client, clock)
    assert github.changes == []


@pytest.mark.parametrize(
    ("author", "body"),
    [
        ("someone", BODY),
        ("me", BODY.replace(MARK, "v1-ffffffffffff")),
        ("me", f"> {BODY}"),
        ("me", f"look at this log:\n```\n{BODY}\n```"),
        ("me", f"{marker('v1-ffffffffffff')}\n\n{BODY}"),
    ],
)
def test_other_comments_are_never_touched(
    http_client: RestClient, github: GitHub, clock: Clock, author: str, body: str
) -> None:
    github.comment(body, author)
    put(http_client, clock)
    assert [one["body"] for one in github.comments] == [body, BODY]


def test_the_login_is_the_same_in_any_case(http_client: RestClient, github: GitHub, clock: Clock) -> None:
    github.comment(f"{marker(MARK)}\nold", "Me")
    put(http_client, clock)
    assert [one["body"] for one in github.comments] == [BODY]


def test_a_comment_without_an_author(http_client: RestClient, github: GitHub, clock: Clock) -> None:
    github.comment(BODY)["user"] = None  # a ghost
    put(http_client, clock)
    assert len(github.comments) == 2


def test_after_a_fault_it_looks_before_it_writes_again(client: RestClient, github: GitHub, clock: Clock) -> None:
    github.plan("POST", COMMENTS, Planned(502, after=True))
    assert put(client, clock).url == github.comments[0]["html_url"]
    assert (len(github.comments), len(github.changes)) == (1, 1)


def test_after_a_fault_that_did_nothing_it_writes_again(http_client: RestClient, github: GitHub, clock: Clock) -> None:
    github.plan("POST", COMMENTS, Planned(502), Planned(0, drop=True))
    put(http_client, clock)
    assert (len(github.comments), len(github.changes)) == (1, 3)


def test_faults_without_end_say_to_look(http_client: RestClient, github: GitHub, clock: Clock) -> None:
    github.plan("POST", COMMENTS, *[Planned(502)] * 9)
    with pytest.raises(PostError, match="it may have been written all the same"):
        put(http_client, clock)


def test_a_fault_while_writing_anew(http_client: RestClient, github: GitHub, clock: Clock) -> None:
    made = github.comment(f"{marker(MARK)}\nold")
    github.plan("PATCH", f"/repos/{REPOSITORY}/issues/comments/{made['id']}", Planned(503))
    put(http_client, clock)
    assert [one["body"] for one in github.comments] == [BODY]


def test_an_issue_is_opened_once(client: RestClient, github: GitHub, clock: Clock) -> None:
    def find() -> Issue | None:
        return own_issue(client, Target(REPOSITORY), MARK, "me")

    github.plan("POST", f"/repos/{REPOSITORY}/issues", Planned(504, after=True))
    issue = put_issue(client, Target(REPOSITORY), "title", BODY, find, clock.sleep)
    assert issue.title == "title"
    assert (len(github.issues), len(github.changes)) == (1, 1)


def test_an_issue_that_has_moved_is_not_commented_on(http_client: RestClient, github: GitHub) -> None:
    github.moved_to = "other/place"
    with pytest.raises(PostError, match=f"{REPOSITORY}#{NUMBER} is now other/place#{NUMBER}"):
        look_up(http_client, TARGET)


@pytest.mark.parametrize("text", ["", "v1--->", "a b", "v1-x --> <img>", "x" * 81, "a--b"])
def test_a_mark_holds_a_fingerprint_only(text: str) -> None:
    with pytest.raises(ValueError, match="no fingerprint"):
        marker(text)


def test_an_empty_text_is_not_marked() -> None:
    assert not is_marked("", MARK)
    assert is_marked("\ufeff" + BODY, MARK)
