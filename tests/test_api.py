"""The Python interface: paths, texts, bytes; one analyzer for many logs."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import oortriage
from oortriage.api import (
    Analyzer,
    analyze,
    configured_rules,
    default_analyzer,
    expand,
    find_rule,
)
from oortriage.errors import InputError, RuleError
from oortriage.triage.diagnosis import Diagnosis
from tests.conftest import ROOT
from tests.evidence._rules import VALID

MESSAGE = (
    "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 81920, "
    "Hardware limit: 65536. Reducing block sizes or `num_stages` may help."
)
T4 = ROOT / "fixtures" / "triton" / "vllm-36802-t4-fp32-head256" / "log.txt"


def figures(diagnosis: Diagnosis) -> dict[str, int | float]:
    return {name: diagnosis.numbers[name] for name in ("required_bytes", "limit_bytes")}


def test_the_package_gives_the_interface_on_first_use() -> None:
    assert oortriage.analyze is analyze
    assert oortriage.Analyzer is Analyzer
    assert oortriage.Diagnosis is Diagnosis
    with pytest.raises(AttributeError, match="nonsense"):
        _ = oortriage.nonsense


def test_all_that_is_promised_is_there() -> None:
    assert [name for name in oortriage.__all__ if not hasattr(oortriage, name)] == []


def test_path_string_bytes_and_text_say_the_same(tmp_path: Path) -> None:
    log = tmp_path / "crash.log"
    log.write_text(f"start\n{MESSAGE}\nend\n", encoding="utf-8")
    sources = {
        "path": log,
        "string": str(log),
        "bytes": log.read_bytes(),
        "text": log.read_text(encoding="utf-8"),
    }
    said = {name: analyze(source) for name, source in sources.items()}
    assert {one.fingerprint for one in said.values()} == {said["path"].fingerprint}
    for one in said.values():
        assert (one.resource, one.code, one.exit_code) == ("shared_memory", "SM101", 1)
        assert (one.evidence[0].line, one.evidence[0].column, one.evidence[0].text) == (2, 39, MESSAGE)
        assert figures(one) == {"required_bytes": 81920, "limit_bytes": 65536}
    assert {name: one.file for name, one in said.items()} == {
        "path": str(log),
        "string": str(log),
        "bytes": "<text>",
        "text": "<text>",
    }


def test_one_line_that_is_no_file_is_a_text() -> None:
    assert analyze(MESSAGE).code == "SM101"
    assert analyze("no/such/file.log").resource == "none"


def test_bytes_are_a_text_also_when_they_name_a_file() -> None:
    assert analyze(str(T4).encode()).resource == "none"


@pytest.mark.parametrize("text", ["", "\n", "\x00", "a\x00b", "x" * 5000])
def test_odd_strings_are_texts(text: str) -> None:
    assert analyze(text).resource == "none"


def test_a_path_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        analyze(tmp_path / "missing.log")
    with pytest.raises(InputError, match="is a folder"):
        analyze(tmp_path)


def test_a_name_can_be_given_for_the_evidence(analyzer: Analyzer) -> None:
    diagnosis = analyzer.file(T4, name="pod-7")
    assert diagnosis.file == "pod-7"
    assert {one.file for one in diagnosis.evidence} == {"pod-7"}
    assert {one.file for one in diagnosis.facts.values()} == {"pod-7"}


def test_standard_input_is_a_file_named_by_a_dash(analyzer: Analyzer, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(MESSAGE.encode())

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert analyzer.file("-").code == "SM101"


def test_a_diagnosis_does_not_depend_on_the_logs_before_it(analyzer: Analyzer) -> None:
    fresh = Analyzer().file(T4, name="x")
    analyzer.text("CUDA out of memory. Tried to allocate 2.00 GiB")
    assert analyzer.file(T4, name="x") == fresh
    assert analyzer.file(T4, name="x") == fresh


def test_the_default_analyzer_is_made_once() -> None:
    assert default_analyzer() is default_analyzer()


def test_a_log_read_in_stretches_gets_the_verdict_of_the_whole(analyzer: Analyzer) -> None:
    """Long filler makes the log too large to keep; line numbers count all of it."""
    noise = "INFO step 17 of 90000, nothing to see here\n" * 10_000
    text = f"{noise}Traceback (most recent call last):\n{MESSAGE}\n{noise}"
    whole = analyzer.text(text, whole=len(text) + 1)
    stretches = analyzer.text(text, whole=100_000)
    assert stretches.evidence[0].line == whole.evidence[0].line == 10_002
    assert (stretches.code, stretches.resource, stretches.numbers) == (whole.code, whole.resource, whole.numbers)


@pytest.mark.parametrize(
    ("lead", "tail"), [(0, 10), (1900, 10), (3000, 10), (12_000, 100), (100, 100_000), (60_000, 60_000)]
)
def test_the_evidence_holds_the_proof_wherever_in_its_line_it_stands(analyzer: Analyzer, lead: int, tail: int) -> None:
    line = "=" * lead + " " + MESSAGE + " " + "=" * tail
    (root,) = [one for one in analyzer.text(f"start\n{line}\n").evidence if one.role == "root"]
    assert (root.line, line[root.column - 1 :].startswith("out of resource")) == (2, True)
    assert root.text[root.offset :].startswith("out of resource")
    assert "Required: 81920, Hardware limit: 65536" in root.text
    assert root.text in line


@pytest.mark.parametrize("lead", [0, 3, 2000])
@pytest.mark.parametrize("dump", [repr, lambda text: json.dumps({"level": "error", "msg": text})], ids=["repr", "json"])
def test_the_evidence_holds_the_proof_also_where_its_line_is_written_with_escapes(
    analyzer: Analyzer, lead: int, dump: Callable[[str], str]
) -> None:
    line = dump('step "one"\n' * lead + "\n" + MESSAGE + "\n" + "and so on\n" * 500)
    (root,) = [one for one in analyzer.text(f"start\n{line}\n").evidence if one.role == "root"]
    assert line[root.column - 1 :].startswith("out of resource")
    assert root.text[root.offset :].startswith("out of resource")
    assert root.text in line


@given(st.binary(max_size=400))
@example(b"\xff\xfe" + MESSAGE.encode("utf-16-le"))
@example(b"\x1f\x8b\x08\x00broken")
@settings(deadline=None, max_examples=60)
def test_no_bytes_are_too_odd(data: bytes) -> None:
    diagnosis = analyze(data)
    assert 0 <= diagnosis.confidence <= 1
    assert diagnosis.exit_code in (0, 1, 3)


@given(
    st.lists(
        st.sampled_from(["\x1b[31m", "\r", "\x00", "\u202e", "│ ", "[rank0]: ", "2025-01-01 00:00:00 ", "> ", "\t"]),
        max_size=5,
    )
)
@settings(deadline=None, max_examples=60)
def test_noise_in_front_of_the_message_does_not_hide_it(noise: list[str]) -> None:
    diagnosis = analyze(("".join(noise) + MESSAGE + "\n").encode())
    assert (diagnosis.resource, figures(diagnosis)) == (
        "shared_memory",
        {"required_bytes": 81920, "limit_bytes": 65536},
    )


@given(required=st.integers(10_000, 999_999), limit=st.integers(10_000, 999_999))
@settings(deadline=None, max_examples=40)
def test_the_figures_are_those_of_the_message(required: int, limit: int) -> None:
    text = (
        f"triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: {required}, "
        f"Hardware limit: {limit}. Reducing block sizes or `num_stages` may help.\n"
    )
    assert figures(analyze(text)) == {"required_bytes": required, "limit_bytes": limit}


def test_folders_are_replaced_by_their_logs(tmp_path: Path) -> None:
    for name in ("b.log", "a.txt", "deep/c.log.gz", "d.png", ".git/e.log", "noext"):
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    found = expand(["-", tmp_path / "logs", "missing.log"])
    assert found == [
        "-",
        *(tmp_path / "logs" / name for name in ("a.txt", "b.log", "deep/c.log.gz", "noext")),
        "missing.log",
    ]


def test_rules_are_found_by_code_in_any_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rule = find_rule("sm101")
    assert rule
    assert rule.code == "SM101"
    assert find_rule("ZZ999") is None
    assert find_rule("") is None


def test_the_settings_rules_are_among_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "ZZ900.toml").write_text(VALID, encoding="utf-8")
    (tmp_path / "oortriage.toml").write_text('rules = ["mine"]\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    rule = find_rule("ZZ900")
    assert rule
    assert rule.title == "The gizmo is full"
    assert rule in configured_rules()


def test_an_analyzer_takes_rules_of_one_s_own(tmp_path: Path) -> None:
    (tmp_path / "ZZ900.toml").write_text(VALID, encoding="utf-8")
    text = "start\nERROR gizmo overflow: 300 of 200 bytes\n"
    mine = Analyzer([tmp_path]).text(text)
    assert (mine.code, mine.resource, mine.cause) == ("ZZ900", "device_memory", "capacity")
    assert figures(mine) == {"required_bytes": 300, "limit_bytes": 200}
    assert [one.change for one in mine.prescriptions][-1] == "gizmo --smaller"
    assert default_analyzer().text(text).resource == "none"


def test_an_analyzer_refuses_a_bad_rule(tmp_path: Path) -> None:
    (tmp_path / "ZZ900.toml").write_text("code = 5\n", encoding="utf-8")
    with pytest.raises(RuleError, match=r"ZZ900\.toml:1: "):
        Analyzer([tmp_path])
