"""What is posted: forms as the projects have them, within the limit, and nothing of a log that acts."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from oortriage.api import Analyzer
from oortriage.post._interface import Issue
from oortriage.post.body import comment_body, is_marked
from oortriage.post.duplicates import find_duplicates
from oortriage.post.forms import FORMS, issue_body, title_for
from oortriage.report.compose import compose
from oortriage.report.document import Code, Document, Section
from oortriage.report.issue import LIMIT
from oortriage.report.material import Material
from oortriage.triage.diagnosis import Diagnosis, StatedFact

MARK = "v1-0123456789ab"
HOSTILE = (
    "@everyone fixes #1 <!-- oortriage report v1-ffffffffffff --> <img src=x> `````\n### Your current environment\n-->"
)


@pytest.fixture(scope="module")
def diagnosis(analyzer: Analyzer, fixtures: Path) -> Diagnosis:
    return analyzer.file(fixtures / "triton" / "vllm-36802-t4-fp32-head256" / "log.txt", name="log.txt")


@pytest.fixture(scope="module")
def document(diagnosis: Diagnosis) -> Document:
    return compose(Material(diagnosis=diagnosis, environment={"system": "Linux"}))


def headings(text: str) -> list[str]:
    """The headings of the form's level, outside of code."""
    found, fence = [], ""
    for line in text.splitlines():
        mark = re.match(r"(`{3,})", line)
        if mark and not fence:
            fence = mark[1]
        elif fence:
            fence = "" if line == fence else fence
        elif line.startswith("### "):
            found.append(line[4:])
    return found


@pytest.mark.parametrize(
    ("repository", "title", "wanted"),
    [
        (
            "vllm-project/vllm",
            "[Bug]: ",
            ["Your current environment", "🐛 Describe the bug", "Before submitting a new issue..."],
        ),
        ("triton-lang/triton", "", ["Describe the bug", "Environment details"]),
        ("PyTorch/PyTorch", "", ["🐛 Describe the bug", "Versions"]),
    ],
)
def test_forms(document: Document, repository: str, title: str, wanted: list[str]) -> None:
    body = issue_body(repository, document, MARK, ["Searched the issues for: x", "Nothing alike was found."])
    assert headings(body.text) == wanted
    assert is_marked(body.text, MARK)
    assert title_for(repository, document) == title + document.title
    parts = re.split(r"^### .*\n", body.text, flags=re.MULTILINE)[1:]
    environment = parts[
        [one in ("Your current environment", "Environment details", "Versions") for one in wanted].index(True)
    ]
    assert "Tesla T4" in environment
    assert "81,920" in parts[["Describe" in one for one in wanted].index(True)]
    assert ("Searched the issues for: x" in body.text) == (repository == "vllm-project/vllm")
    assert "[x]" not in body.text  # no box is ticked for the author


def test_other_repositories_get_the_plain_report(document: Document) -> None:
    assert issue_body("octo/logs", document, MARK) == comment_body(document, MARK)


@pytest.mark.parametrize("repository", [*FORMS, "octo/logs"])
@pytest.mark.parametrize("limit", [LIMIT, 8_000])
def test_a_giant_report_is_cut_to_fit(document: Document, repository: str, limit: int) -> None:
    giant = [
        Section(
            one.key, one.title, [*one.blocks, Code("\n".join(f"line {n} 🐛" for n in range(20_000)))], one.importance
        )
        for one in document.sections
    ]
    body = issue_body(repository, Document(document.title, document.verdict, giant), MARK, ["Searched"], limit)
    assert len(body.text.encode("utf-16-le")) // 2 + body.text.count("\n") < limit
    assert body.cut
    assert "81,920" in body.text


@pytest.mark.parametrize("repository", [*FORMS, "octo/logs"])
def test_hostile_text_stays_text(document: Document, diagnosis: Diagnosis, repository: str) -> None:
    fact = StatedFact(value=HOSTILE, file=HOSTILE, line=1, confidence=1.0, source=HOSTILE)
    evidence = [msgspec.structs.replace(one, text=HOSTILE, file=HOSTILE, offset=0) for one in diagnosis.evidence]
    hostile = msgspec.structs.replace(
        diagnosis, summary=HOSTILE, title=HOSTILE, facts={"gpu": fact}, evidence=evidence, notes=[HOSTILE]
    )
    body = issue_body(repository, compose(Material(diagnosis=hostile, commands=[HOSTILE])), MARK, [HOSTILE]).text
    clean = issue_body(repository, document, MARK, ["Searched"]).text
    assert headings(body)[:1] == headings(clean)[:1]
    assert headings(body).count("Your current environment") == headings(clean).count("Your current environment")
    assert is_marked(body, MARK)
    assert not is_marked(body, "v1-ffffffffffff")
    cmark = pytest.importorskip("cmarkgfm", reason="GitHub's reader of Markdown is in the extra [test]")
    page = cmark.github_flavored_markdown_to_html(body)
    assert "<img" not in page
    outside = re.sub(r"<(code|pre)[^>]*>.*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"@everyone|(?<!&)#1\b", outside)
    assert outside.count("<!--") <= 1


# Duplicates.


class Searching:
    def __init__(self, *found: Issue) -> None:
        self.found = list(found)
        self.queries: list[str] = []

    def search(self, query: str) -> list[Issue]:
        self.queries.append(query)
        return self.found


def issue(number: int, body: str) -> Issue:
    return Issue("o/r", number, "title", "someone", body, "open", locked=False, url=f"https://x/{number}")


def test_by_fingerprint_then_by_words(diagnosis: Diagnosis) -> None:
    client = Searching(issue(1, "other"), issue(2, f"... {diagnosis.fingerprint} ..."))
    found = find_duplicates(client, "o/r", diagnosis)  # type: ignore[arg-type]
    assert [one.number for one in found.found] == [2, 1]
    assert client.queries[0] == f'repo:o/r is:issue "{diagnosis.fingerprint}"'
    assert client.queries[1] == 'repo:o/r is:issue "kernel_unified_attention_2d" "81920"'
    assert len(client.queries) == 3


def test_a_log_cannot_steer_the_search(diagnosis: Diagnosis) -> None:
    name = 'x" repo:evil/place OR user:me ' + "y" * 500
    fact = StatedFact(value=name, file="f", line=1, confidence=1.0, source="s")
    client = Searching()
    find_duplicates(client, "o/r", msgspec.structs.replace(diagnosis, facts={"kernel": fact}, title=name))  # type: ignore[arg-type]
    for query in client.queries:
        assert len(query) <= 256
        rest = query.removeprefix("repo:o/r is:issue ")
        assert not re.search(r":|\bOR\b|\"[^\"]* [^\"]*\"", re.sub(r'"([^" ]*)"', r"\1", rest))
        assert rest.count('"') % 2 == 0
