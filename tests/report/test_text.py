"""Text for a terminal: one screen, no more than JSON says, and nothing a terminal would act on."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from oortriage.api import Analyzer
from oortriage.report.json import encode
from oortriage.triage.diagnosis import Diagnosis, Prescription, WillNotHelp
from tests.report._made import filled, hostile, made, rendered
from tests.report.conftest import CHOSEN

#: Unicode's Bidi_Control characters, line separators, and invisible ones.
ACTIVE = set(
    "\u061c\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2028\u2029\u2066\u2067\u2068\u2069\ufeff"
)

MESSAGE = (
    "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 81920, "
    "Hardware limit: 65536. Reducing block sizes or `num_stages` may help."
)


def active(text: str) -> set[str]:
    """Characters of a text that a terminal could act on."""
    return {one for one in text if one != "\n" and (unicodedata.category(one) == "Cc" or one in ACTIVE)}


def unwrapped(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", sorted(CHOSEN))
def test_report_is_as_reviewed(name: str, chosen: dict[str, Diagnosis], snapshot: SnapshotAssertion) -> None:
    assert rendered("text", chosen[name]) == snapshot


@pytest.mark.parametrize(
    ("name", "verdict", "figures"),
    [
        ("shared_memory", "Shared memory of one block (on the chip)", ["81,920", "65,536", "16,384"]),
        ("tensor_memory", "Tensor memory of one block (on the chip)", ["544", "512"]),
        ("registers", "Registers", ["255"]),
        ("threads", "Threads of one block (launch configuration)", ["384", "256"]),
        ("device_memory", "Device memory (the card's VRAM)", ["10.84 GiB", "23.65 GiB", "10.26 GiB"]),
        ("kv_cache", "The engine's KV cache", ["4,096", "3,664"]),
        ("host_shm", "Host shared memory (/dev/shm)", []),
        ("none", "No resource ran out", []),
        ("undetermined", "Undetermined", []),
    ],
)
def test_the_verdict_stands_first_and_the_label_s_figures_are_told(
    name: str, verdict: str, figures: list[str], chosen: dict[str, Diagnosis]
) -> None:
    text = rendered("text", chosen[name])
    assert text.startswith(verdict)
    assert [figure for figure in figures if figure not in unwrapped(text)] == []


def test_proof_comes_before_change_and_change_before_what_will_not_help(
    chosen: dict[str, Diagnosis],
) -> None:
    text = rendered("text", chosen["shared_memory"])
    places = [text.index(part) for part in ("log.txt:97:", "\nChange\n", "\nWill not help\n", "SM101  confidence")]
    assert places == sorted(places)


def test_only_the_first_changes_are_shown_and_in_their_order() -> None:
    changes = [Prescription(f"change-{number}", f"effect-{number}") for number in range(1, 6)]
    advice = [WillNotHelp(f"advice-{number}", "why") for number in range(1, 6)]
    text = rendered("text", made(prescriptions=changes, will_not_help=advice))
    assert re.findall(r"(\d)\. (change-\d)", text) == [("1", "change-1"), ("2", "change-2"), ("3", "change-3")]
    assert re.findall(r"advice-\d", text) == ["advice-1", "advice-2"]


def test_reports_of_several_logs_are_set_apart_by_an_empty_line() -> None:
    one, two = made(summary="first"), made(summary="second")
    assert rendered("text", one, two) == rendered("text", one) + "\n" + rendered("text", two)


# What the text may say.

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_WRITTEN_OUT = re.compile(r"\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
_BINARY = {"MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def figures(text: str) -> set[str]:
    found = _NUMBER.findall(_WRITTEN_OUT.sub(" ", text))
    return {one.rstrip(",").replace(",", "") for one in found}


def leaves(value: Any) -> Iterator[Any]:
    """Every scalar of a JSON value, and how long its lists are."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield name
            yield from leaves(one)
    elif isinstance(value, list):
        yield len(value)
        for one in value:
            yield from leaves(one)
    else:
        yield value


def known(diagnosis: Diagnosis) -> set[str]:
    """Every figure JSON holds, in each way a person may be told it."""
    said: set[str] = set()
    for leaf in leaves(json.loads(encode(diagnosis))):
        if isinstance(leaf, str):
            said |= figures(leaf)
        elif isinstance(leaf, int | float):
            said |= figures(f"{leaf:,}") | figures(f"{leaf:g}") | figures(f"{leaf:.2f}")
            said |= {figure for unit in _BINARY.values() for figure in figures(f"{leaf / unit:.2f}")}
    return said


def test_the_text_has_no_figure_that_json_has_not(every: list[Diagnosis]) -> None:
    unknown = {}
    for diagnosis in every:
        text = rendered("text", diagnosis, width=8000)
        text = re.sub(r"(?m)^  \d\. ", "", text)  # the numbers of the list of changes
        if left := figures(text) - known(diagnosis):
            unknown[diagnosis.file, diagnosis.fingerprint] = left
    assert unknown == {}


def test_a_figure_from_nowhere_would_be_seen() -> None:
    """The test above can fail."""
    assert figures("needs 81,920 of 65,536 (v1.25), 7") == {"81920", "65536", "1.25", "7"}
    assert "81920" not in known(made())
    assert "81920" in known(made(numbers={"required_bytes": 81920}))


# What a terminal sees.


@given(hostile)
@settings(deadline=None, max_examples=60)
def test_no_text_of_a_log_reaches_the_terminal_active(text: str) -> None:
    assert active(rendered("text", filled(text), filled(text))) == set()


@given(hostile)
@settings(deadline=None, max_examples=40)
def test_colours_are_the_only_escapes(text: str) -> None:
    colored = rendered("text", filled(text), color=True)
    assert "\x1b[" in colored
    plain = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert active(plain) == set()


def test_without_its_colours_a_report_is_the_plain_one(chosen: dict[str, Diagnosis]) -> None:
    for diagnosis in chosen.values():
        colored = rendered("text", diagnosis, color=True)
        assert re.sub(r"\x1b\[[0-9;]*m", "", colored).split() == rendered("text", diagnosis).split()


def test_plain_text_has_no_escape_at_all(every: list[Diagnosis]) -> None:
    assert [one.file for one in every[::4] if active(rendered("text", one))] == []


def test_words_in_brackets_are_not_taken_for_styles() -> None:
    text = rendered("text", made(summary="[bold red]loud[/] :warning: [link=https://evil.example]x[/link]"))
    assert "[bold red]loud[/] :warning: [link=https://evil.example]x[/link]" in text


@pytest.mark.parametrize("width", [40, 61, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int, every: list[Diagnosis]) -> None:
    for diagnosis in every[::10]:
        lines = rendered("text", diagnosis, width=width).splitlines()
        assert max(map(cell_len, lines)) <= width
        assert [line for line in lines if line != line.rstrip()] == []


@given(text=hostile, width=st.integers(1, 100))
@settings(deadline=None, max_examples=40)
def test_any_width_can_be_written(text: str, width: int) -> None:
    assert "v1-0123456789ab" in rendered("text", filled(text), width=width).replace("\n", "")


HOSTILE_LINE = (
    "\x1b[2J\x1b[1;31mred\x1b[0m \x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\ \x1b]0;title\x07 \x9b31m "
    "\u202etxet\u202c \u2066x\u2069 \u061c \u200b \x00 \x08\x08\x08 "
)


@pytest.mark.parametrize("color", [False, True])
def test_a_hostile_log_is_diagnosed_and_shown_harmless(analyzer: Analyzer, color: bool) -> None:
    diagnosis = analyzer.text(f"{HOSTILE_LINE}\n{HOSTILE_LINE}{MESSAGE}{HOSTILE_LINE}\n", name=f"{HOSTILE_LINE}.log")
    assert diagnosis.resource == "shared_memory"
    text = rendered("text", diagnosis, color=color)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert active(plain) == set()
    assert "\\x1b[2J" in plain
    assert ("\x1b[2J" in text, "\x1b]" in text) == (False, False)


@pytest.mark.parametrize("lead", [0, 1000, 2500, 9000, 50_000, 99_000])
def test_the_proof_is_shown_also_from_deep_within_a_giant_line(analyzer: Analyzer, lead: int) -> None:
    words = "progress 17 " * 9000
    line = words[:lead] + MESSAGE + " " + words[: 100_000 - lead]
    text = rendered("text", analyzer.text(f"start\n{line}\nend\n"))
    assert "Required: 81920, Hardware limit: 65536" in unwrapped(text)


def test_a_giant_line_does_not_flood_the_screen(analyzer: Analyzer) -> None:
    text = rendered("text", analyzer.text(MESSAGE + " x" * 50_000))
    assert len(text) < 6000
