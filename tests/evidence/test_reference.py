"""A rule as a page, and all rules as tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from oortriage.evidence.reference import describe, reference
from oortriage.evidence.rule import BadAdvice, Remedy, Sample
from tests.evidence._rules import rule

FULL = rule(
    "gizmo",
    anchors=["gizmo"],
    cause="capacity",
    since="1.0",
    until="2.5",
    meaning="It is\nfull.",
    why="Too   much.",
    sample=[Sample("\ngizmo full\nsecond line\n"), Sample("never shown")],
    remedy=[
        Remedy("gizmo --small", effect="asks\nfor less", cost="speed", causes=["capacity", "leak"], since="1.2"),
        Remedy("gizmo --off"),
    ],
    will_not_help=[BadAdvice("more RAM", "it is\nnot RAM")],
    sources=["https://example.com/1"],
)


def test_a_page_tells_all_the_rule_knows() -> None:
    assert describe(FULL) == (
        "# ZZ900: The gizmo is full\n"
        "\n"
        "role failure, resource device_memory, cause capacity, printed by gizmo 1.0 to 2.5.\n"
        "\n"
        "It is full.\n"
        "\n"
        "Why: Too much.\n"
        "\n"
        "Looks like:\n"
        "\n"
        "    gizmo full\n"
        "    second line\n"
        "\n"
        "What helps:\n"
        "\n"
        "- gizmo --small from 1.2 (for capacity, leak): asks for less Cost: speed.\n"
        "- gizmo --off\n"
        "\n"
        "What does not help:\n"
        "\n"
        "- more RAM: it is not RAM\n"
        "\n"
        "Sources:\n"
        "\n"
        "- https://example.com/1\n"
    )


def test_a_page_leaves_out_what_the_rule_does_not_say() -> None:
    page = describe(rule("gizmo", anchors=["gizmo"], role="wrapper", resource="none"))
    assert page == (
        "# ZZ900: The gizmo is full\n\nrole wrapper, resource none, printed by gizmo.\n\nThe gizmo is full.\n"
    )


@pytest.mark.parametrize(
    ("since", "until", "words"),
    [
        ("", "", "printed by gizmo."),
        ("1.0", "", "printed by gizmo from 1.0."),
        ("", "2.0", "printed by gizmo up to 2.0."),
        ("1.0", "2.0", "printed by gizmo 1.0 to 2.0."),
    ],
)
def test_releases_are_told_as_far_as_known(since: str, until: str, words: str) -> None:
    assert words in describe(rule("gizmo", anchors=["gizmo"], since=since, until=until))


def test_a_long_sample_is_cut_to_eight_lines() -> None:
    sample = Sample("\n".join(f"line {number}" for number in range(1, 20)))
    page = describe(rule("gizmo", anchors=["gizmo"], sample=[sample]))
    assert [line for line in page.splitlines() if line.startswith("    ")] == [
        f"    line {number}" for number in range(1, 9)
    ]


def rows(page: str) -> list[list[str]]:
    """Read the cells of every table row, the way a renderer does."""
    cells: list[list[str]] = []
    for token in MarkdownIt("commonmark").enable("table").parse(page):
        if token.type == "tr_open":
            cells.append([])
        elif token.type == "inline" and cells and token.level >= 3:
            cells[-1].append("".join(child.content for child in token.children or []))
    return [row for row in cells if row and row[0] != "code"]


def test_the_reference_lists_rules_by_family_and_code() -> None:
    rules = [
        rule("x", anchors=["xxxx"], code=code, family=family)
        for code, family in (("ZZ902", "b"), ("ZZ901", "b"), ("ZZ903", "a"))
    ]
    page = reference(rules)
    assert [line for line in page.splitlines() if line.startswith("## ")] == ["## a", "## b"]
    assert [row[0] for row in rows(page)] == ["ZZ903", "ZZ901", "ZZ902"]


@given(st.text("ab |<>\\\\", min_size=1, max_size=12))
def test_no_title_breaks_its_row(noise: str) -> None:
    """Every row has four cells, and no title becomes HTML."""
    page = reference([rule("x", anchors=["xxxx"], family="a", title=f"t{noise}t")])
    assert [len(row) for row in rows(page)] == [4]
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    inner = [child.type for token in tokens for child in token.children or []]
    assert "html_inline" not in inner


def test_a_pipe_in_a_title_reads_as_a_pipe() -> None:
    page = reference([rule("x", anchors=["xxxx"], family="a", title="a | b <c>")])
    assert rows(page) == [["ZZ900", "failure", "device_memory", "a | b <c>"]]
