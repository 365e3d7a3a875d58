"""Markdown for an issue: whatever the log says, the page keeps its shape and acts on nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from markdown_it import MarkdownIt
from markdown_it.token import Token
from syrupy.assertion import SnapshotAssertion

from oortriage.api import Analyzer
from oortriage.triage.diagnosis import BillTerm, BillView, Diagnosis, Prescription
from tests.report._made import filled, hostile, made, rendered
from tests.report.conftest import CHOSEN

parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
#: What GitHub would follow, fetch or run.
ACTIVE = {"html_inline", "html_block", "link_open", "link_close", "image"}

MESSAGE = (
    "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 81920, "
    "Hardware limit: 65536. Reducing block sizes or `num_stages` may help."
)


def flat(source: str) -> list[Token]:
    return [child for token in parser.parse(source) for child in (token, *(token.children or []))]


def shape(source: str) -> list[tuple[str, str]]:
    """The page's structure: block tokens and marks, without the words."""
    return [(one.type, one.tag) for one in flat(source) if one.type not in ("text", "softbreak", "code_inline")]


def mentions(source: str) -> list[str]:
    """Names that GitHub would notify: in text, not in code."""
    found: list[str] = []
    for token in parser.parse(source):
        shown = "".join(one.content if one.type == "text" else " " for one in token.children or [])
        found += re.findall(r"(?<![\w`])@\w+", shown)
    return found


def rows(source: str) -> list[list[str]]:
    """The cells of every table row."""
    cells: list[list[str]] = []
    inside = False
    for token in parser.parse(source):
        if token.type == "tr_open":
            cells.append([])
        elif token.type in ("td_open", "th_open", "td_close", "th_close"):
            inside = token.type.endswith("open")
        elif token.type == "inline" and inside:
            cells[-1].append("".join(child.content for child in token.children or []))
    return cells


@pytest.mark.parametrize("name", sorted(CHOSEN))
def test_report_is_as_reviewed(name: str, chosen: dict[str, Diagnosis], snapshot: SnapshotAssertion) -> None:
    assert rendered("markdown", chosen[name]) == snapshot


@given(hostile)
@settings(deadline=None, max_examples=80)
def test_a_log_s_words_change_nothing_of_the_page_s_shape(text: str) -> None:
    assert shape(rendered("markdown", filled(text))) == shape(rendered("markdown", filled("b")))


@given(hostile)
@settings(deadline=None, max_examples=40)
def test_a_log_s_words_are_never_html_link_or_image(text: str) -> None:
    found = {token.type for token in flat(rendered("markdown", filled(text), filled(text)))}
    assert found & ACTIVE == set()


@pytest.mark.parametrize("words", ["@octocat", "by @octocat", "@org/team", "&commat;octocat"])
def test_a_log_s_words_mention_nobody(words: str) -> None:
    """https://github.com/github/cmark-gfm/issues/389: a backslash does not stop a mention."""
    page = rendered("markdown", filled(f" {words} "))
    assert "octocat" in page or "team" in page
    assert mentions(page) == []


def test_a_model_s_name_mentions_nobody(analyzer: Analyzer) -> None:
    start = (
        "INFO 03-11 09:17:03 [core.py:112] Initializing a V1 LLM engine (v0.17.1) with config: model='@octocat/tiny', "
        "speculative_config=None, tokenizer='@octocat/tiny', dtype=torch.float16, max_seq_len=4096"
    )
    diagnosis = analyzer.text(f"{start}\n{MESSAGE}\n")
    assert diagnosis.facts["model"].value == "@octocat/tiny"
    assert mentions(rendered("markdown", diagnosis)) == []


def test_no_labelled_log_makes_anything_active(every: list[Diagnosis]) -> None:
    for diagnosis in every:
        page = rendered("markdown", diagnosis)
        assert {token.type for token in flat(page)} & ACTIVE == set(), diagnosis.file
        assert mentions(page) == [], diagnosis.file


HOSTILE_LINE = (
    "\x1b[31m\x1b]8;;https://evil.example\x1b\\x\x1b]8;;\x1b\\ \u202e <script>alert(1)</script> <img src=x onerror=y> "
    "[a](https://evil.example) ![b](https://evil.example/x.png) </details> <!-- | || ``` ```` ~~~ @octocat #1 &lt;b&gt; "
)


def test_a_hostile_log_is_quoted_whole_and_harmless(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(f"{HOSTILE_LINE}{MESSAGE} {HOSTILE_LINE}\n", name="`a`|<b>@octocat.log")
    assert diagnosis.resource == "shared_memory"
    page = rendered("markdown", diagnosis)
    assert {token.type for token in flat(page)} & ACTIVE == set()
    assert mentions(page) == []
    (fence,) = [token for token in flat(page) if token.type == "fence"]
    assert MESSAGE in fence.content
    assert "<script>alert(1)</script>" in fence.content
    assert "\\x1b[31m" in fence.content
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)


@pytest.mark.parametrize("run", [1, 3, 4, 5, 17, 400])
def test_runs_of_backticks_do_not_end_the_quotation(run: int, analyzer: Analyzer) -> None:
    page = rendered("markdown", analyzer.text(f"{'`' * run} {MESSAGE} {'`' * run}\n"))
    (fence,) = [token for token in flat(page) if token.type == "fence"]
    assert MESSAGE in fence.content
    assert shape(page) == shape(rendered("markdown", analyzer.text(f"x {MESSAGE}\n")))


@pytest.mark.parametrize("lead", [0, 1000, 2500, 9000, 50_000, 99_000])
def test_the_proof_is_quoted_also_from_deep_within_a_giant_line(analyzer: Analyzer, lead: int) -> None:
    words = "progress 17 " * 9000
    line = words[:lead] + MESSAGE + " " + words[: 100_000 - lead]
    page = rendered("markdown", analyzer.text(f"start\n{line}\nend\n"))
    (fence,) = [token for token in flat(page) if token.type == "fence"]
    assert "Required: 81920, Hardware limit: 65536" in fence.content
    assert len(page) < 12_000


def test_the_page_begins_with_the_verdict(chosen: dict[str, Diagnosis]) -> None:
    assert rendered("markdown", chosen["shared_memory"]).startswith(
        "## Shared memory of one block (on the chip): dtype width\n"
    )


def test_the_table_tells_code_resource_and_figures(chosen: dict[str, Diagnosis]) -> None:
    table = dict(row for row in rows(rendered("markdown", chosen["shared_memory"])) if row[0])
    assert table["code"] == "SM101"
    assert table["resource"] == "shared_memory (shared memory of one block (on the chip))"
    assert table["figures"] == "required 81,920 B, limit 65,536 B"
    assert table["status"] == "fatal"


def test_a_bill_is_a_table_with_its_sum() -> None:
    terms = [BillTerm("Q", "Q 16x256x4", 16384), BillTerm("K", "K 256x32x4", 32768), BillTerm("V", "V 32x256x4", 32768)]
    page = rendered("markdown", made(bill=BillView("arithmetic", 81920, terms, {}, "arithmetic")))
    assert rows(page)[-5:] == [
        ["buffer", "bytes"],
        ["Q 16x256x4", "16,384"],
        ["K 256x32x4", "32,768"],
        ["V 32x256x4", "32,768"],
        ["sum", "81,920"],
    ]


def test_every_change_is_listed_to_be_copied() -> None:
    changes = [Prescription(f"--flag-{number} `x`", "effect", "cost", "safe", "look") for number in range(1, 6)]
    page = rendered("markdown", made(prescriptions=changes))
    spans = [one.content for one in flat(page) if one.type == "code_inline" and not one.content.startswith("v1-")]
    assert spans == [f"--flag-{number} `x`" for number in range(1, 6)]
    assert [token.type for token in flat(page)].count("list_item_open") == 5


def test_a_cost_s_full_stop_does_not_meet_the_semicolon() -> None:
    page = rendered("markdown", made(prescriptions=[Prescription("x", "effect.", "some speed.", "safe", "look.")]))
    assert "   cost: some speed; verify: look.\n" in page


def test_several_logs_are_divided_by_rules() -> None:
    page = rendered("markdown", made(), made(), made())
    assert [token.type for token in flat(page)].count("hr") == 2
    assert [token.type for token in flat(page)].count("heading_open") == 3
