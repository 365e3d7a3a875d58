"""A report in an issue: under the limit whatever it is made of, and nothing in it acts on a reader."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from oortriage.report.compose import compose
from oortriage.report.document import Code, Document, Items, Paragraph, Section, Table
from oortriage.report.issue import LIMIT, issue_markdown
from oortriage.report.issue_parts import length
from oortriage.report.material import Material
from oortriage.triage.diagnosis import Diagnosis
from tests.report._composed import document, everything, verification
from tests.report._github import acting, page
from tests.report._made import PIECES, made
from tests.report.test_replay import experiment, reproduction

#: Beside what the other formats are tried with, what GitHub alone acts on.
GITHUB = (
    "#123", "GH-12", "gh-7", "owner/repo#1", "owner/repo@abcdef1", "4179a256e6a5", "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
    "www.evil.example", "WWW.evil.example", "ftp://evil.example", "mailto:a@evil.example", "xmpp:a@evil.example/x", "GHSA-abcd-efgh-ijkl",
    "CVE-2024-1234", ":shipit:", ":+1:", "$$", "$`x`$", "- [ ] x", "[^1]", "[^1]: x", "[!NOTE]", "+ ", "= ", "===", "---", "    ",
    "\n", "\n\n", "\r\n", "\n```\n", "\n</details>\n", "\n# x", "\n| a | b |\n|---|---|", "1) ", "12. ", "\U000e0041", "\ud800", "\xad",
    "</summary>", "<details>", "<?php ?>", "<![CDATA[x]]>", "<!DOCTYPE html>", "&#x40;octocat", "```mermaid", "\\@octocat", "\\\\|", "_@octocat_",
)  # fmt: skip
hostile = st.lists(st.sampled_from((*PIECES, *GITHUB)), max_size=10).map("".join)
anything = hostile | st.text(max_size=60)


@given(anything)
@settings(deadline=None, max_examples=150)
def test_no_text_in_any_field_of_a_document_acts(text: str) -> None:
    assert acting(issue_markdown(document(text)).text) == []


@given(hostile)
@settings(deadline=None, max_examples=25)
def test_no_text_in_any_field_of_a_material_acts(text: str) -> None:
    assert acting(issue_markdown(compose(everything(text))).text) == []


@pytest.mark.parametrize("piece", [*PIECES, *GITHUB], ids=ascii)
def test_no_piece_acts_alone(piece: str) -> None:
    for text in (piece, f"{piece}a", f"a {piece} z", piece * 3):
        assert acting(issue_markdown(document(text)).text) == []


@given(anything)
@settings(deadline=None, max_examples=60)
def test_a_text_changes_nothing_of_the_page_s_shape(text: str) -> None:
    shapes = [
        # How much is folded depends on the length alone.
        [tag for tag in page(issue_markdown(document(one)).text).tags if tag not in {"details", "summary"}]
        for one in (f"a{text}z", "ab")
    ]
    assert shapes[0] == shapes[1]


@given(anything, st.integers(-5, 3_000))
@settings(deadline=None, max_examples=150)
def test_any_limit_holds_and_what_is_cut_acts_no_more_than_the_whole(text: str, limit: int) -> None:
    result = issue_markdown(document(text), limit)
    assert length(result.text) < max(1, limit)
    assert acting(result.text) == []


def test_what_fits_is_there_whole() -> None:
    result = issue_markdown(compose(everything("x")))
    assert result.cut == []
    assert "cut" not in result.text.lower().replace("cutlass", "")


GIANTS = {
    "line": [Code("`@octocat " * 1_000_000)],
    "backticks": [Code("`" * 10_000_000)],
    "lines": [Code("OutOfResources\n" * 300_000)],
    "paragraph": [Paragraph("\x1b" * 10_000_000)],
    "items": [Items(["@octocat"] * 200_000)],
    "rows": [Table(["a", "b"], [["|" * 50, "2"]] * 100_000)],
    "columns": [Table(["a"] * 50_000, [["1"] * 50_000])],
    "words": [Items(["deadbeef" * 1_000_000])],
    "blocks": [Paragraph("x" * 900)] * 2_000,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(GIANTS))
@pytest.mark.parametrize("importance", [0, 2])
def test_a_giant_is_cut_and_leaves_the_others_theirs(name: str, importance: int) -> None:
    change = Section("change", "What to do", [Code("--max-model-len 3664")], 1)
    giant = Section("evidence", "Evidence", GIANTS[name], importance)
    began = time.process_time()
    result = issue_markdown(Document("title", "verdict", [giant, change]))
    assert time.process_time() - began < 5
    assert length(result.text) < LIMIT
    assert result.cut
    assert acting(result.text) == []
    assert importance == 0 or "--max-model-len 3664" in result.text


@pytest.mark.parametrize("limit", [65_536, 20_000, 8_000, 3_000, 1_200])
def test_the_least_important_goes_first(limit: int) -> None:
    sections = [
        Section(key, key, [Items([f"{key} {number} of the items" for number in range(200)])], importance)
        for key, importance in (("experiment", 3), ("figures", 0), ("ledger", 2), ("change", 1))
    ]  # fmt: skip
    text = issue_markdown(Document("t", "v", sections), limit).text
    shown = [
        sum(f"{key} {number} of" in text for number in range(200))
        for key in ("figures", "change", "ledger", "experiment")
    ]
    assert shown == sorted(shown, reverse=True)
    assert shown[0] > 0
    assert length(text) > limit // 2 or shown == [200] * 4


def test_the_note_says_what_was_cut() -> None:
    rows = Table(["a"], [[f"row {number}"] for number in range(100)])
    sections = [Section("ledger", "Bytes", [rows], 1), Section("experiment", "Grid", [Paragraph("x"), rows], 2)]
    result = issue_markdown(Document("t", "v", sections), 1_500)
    bytes_gone, grid_gone = result.cut
    assert re.fullmatch(r"Bytes: \d\d rows", bytes_gone)
    assert grid_gone == "Grid: 99 rows"  # of its share one row is left
    assert f"*{bytes_gone.split()[1]} more rows are cut.*" in result.text
    assert result.text.count("| row ") == 100 - int(bytes_gone.split()[1]) + 1
    assert result.text.endswith(f"*Cut to fit: {bytes_gone}; {grid_gone}.*\n")


def test_a_long_field_is_shortened_and_told() -> None:
    result = issue_markdown(Document("t", "v", [Section("evidence", "Evidence", [Code("x" * 5_000)], 1)]))
    assert result.cut == ["Evidence: what is longer than 2,000 characters"]
    assert "x" * 1_998 + "…\n" in result.text


def test_long_sections_are_folded_after_their_first_blocks_and_the_change_never() -> None:
    blocks = [Paragraph("y" * 1_000), Paragraph("z" * 1_000)]
    text = issue_markdown(
        Document("t", "v", [Section("environment", "Env", blocks, 1), Section("change", "Do", blocks, 1)])
    ).text
    assert text.count("<details>") == text.count("</details>") == 1
    assert (
        text.index("y" * 1_000)
        < text.index("<details>")
        < text.index("z" * 1_000)
        < text.index("</details>")
        < text.index("### Do")
    )


def test_code_is_held_as_it_was_said() -> None:
    lines = "```\n@octocat ``` #1\n</details>\n  \x1b[31m indented"
    (block,) = page(issue_markdown(Document("t", "v", [Section("evidence", "E", [Code(lines)])])).text).blocks
    assert block == lines.replace("\x1b", "\\x1b") + "\n"


def test_a_change_is_copied_without_anything_in_it() -> None:
    text = issue_markdown(
        compose(Material(made(prescriptions=[]), commands=["oortriage analyze 'https://x/@y#1'"]))
    ).text
    assert "oortriage analyze 'https://x/@y#1'\n" in page(text).blocks


def test_every_labelled_log_makes_a_harmless_issue(every: list[Diagnosis]) -> None:
    for diagnosis in every:
        result = issue_markdown(compose(Material(diagnosis)))
        assert acting(result.text) == [], diagnosis.file
        assert length(result.text) < LIMIT


@pytest.mark.parametrize(
    "name",
    ["shared_memory", "tensor_memory", "registers", "threads", "device_memory", "kv_cache", "host_shm", "host_memory", "device_context",
     "compile_time", "none", "undetermined"],
)  # fmt: skip
def test_issue_is_as_reviewed(name: str, reported: dict[str, Diagnosis], snapshot: SnapshotAssertion) -> None:
    assert issue_markdown(compose(Material(reported[name]))).text.replace("\u200b", "·") == snapshot


def test_issue_of_everything_run_is_as_reviewed(reported: dict[str, Diagnosis], snapshot: SnapshotAssertion) -> None:
    material = Material(
        reported["shared_memory"], reproduction(), experiment(), verification(), ["oortriage reproduce log.txt"], {"python": "3.12.1"}
    )  # fmt: skip
    assert issue_markdown(compose(material)).text.replace("\u200b", "·") == snapshot
