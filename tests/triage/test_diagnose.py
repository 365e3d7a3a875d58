"""The verdict as it is put together: evidence to the column, confidence, advice, exit code."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.api import Analyzer
from oortriage.triage.diagnose import THRESHOLD
from oortriage.triage.diagnosis import SCHEMA_VERSION, Diagnosis
from tests.triage.messages import NO_BLOCKS, PLAIN, SHARED, gib, p3, p6, traceback
from tests.triage.reading import documented_causes

FRAGMENTED = p6(gib(1.65, 7.79, 1.40, 3.53, idle=1.75, own=6.3))
FAILURES = (PLAIN, SHARED, NO_BLOCKS, p3(gib(7.74, 23.69, 2.78, 18.6, reserved=19.05)))
PREFIXES = (
    "",
    "[rank3]: ",
    "(EngineCore_DP0 pid=270) ERROR 06-25 12:01:00 [core.py:718] ",
    "2026-03-01T10:00:11.123Z ",
    "vllm-1  | ",
    "\x1b[31m",
)


def fields(diagnosis: Diagnosis) -> dict[str, object]:
    return msgspec.to_builtins(diagnosis)


# ----------------------------------------------------------------------------------- evidence


@settings(deadline=None, max_examples=80)
@given(
    before=st.lists(st.sampled_from(["loading shard 3", "", "INFO ready"]), max_size=12),
    prefix=st.sampled_from(PREFIXES),
    failure=st.sampled_from(FAILURES),
)
def test_the_evidence_is_the_raw_line_at_its_number(
    before: list[str], prefix: str, failure: str, analyzer: Analyzer
) -> None:
    lines = [*before, f"{prefix}{failure}", "after"]
    root = analyzer.text("\n".join(lines), name="crash.log").evidence[0]
    assert (root.role, root.file) == ("root", "crash.log")
    assert root.line == len(before) + 1
    assert root.text == lines[root.line - 1]
    # The column lies within the message, not in the prefix.
    assert len(prefix) < root.column <= len(prefix) + len(failure)


def test_the_column_is_that_of_the_message_behind_the_exception_s_class(
    analyzer: Analyzer,
) -> None:
    root = analyzer.text(f"[rank3]: {PLAIN}").evidence[0]
    assert root.text[root.column - 1 :].startswith("CUDA out of memory")


def test_a_failure_that_a_terminal_wrapped_is_cited_where_it_begins(analyzer: Analyzer) -> None:
    head, tail = SHARED.split(", Hardware")
    diagnosis = analyzer.text(f"start\n{head},\nHardware{tail}\n")
    assert diagnosis.numbers == {"required_bytes": 81920, "limit_bytes": 65536}
    assert diagnosis.evidence[0].line == 2


def test_a_line_without_end_is_cited_in_part(analyzer: Analyzer) -> None:
    root = analyzer.text(f"{PLAIN} {'x' * 100_000}").evidence[0]
    assert root.text.startswith(PLAIN[:60])
    assert len(root.text) <= 2000


# --------------------------------------------------------------------------------- confidence


def test_the_exact_wording_is_surer_than_a_cut_one_and_that_than_a_paraphrase(
    analyzer: Analyzer,
) -> None:
    exact = analyzer.text(SHARED)
    cut = analyzer.text(SHARED.partition(" Hardware")[0])
    paraphrase = analyzer.text("it failed, Required: 81920 / Hardware limit: 65536")
    assert {one.resource for one in (exact, cut, paraphrase)} == {"shared_memory"}
    assert exact.confidence > cut.confidence > paraphrase.confidence >= THRESHOLD


def test_a_line_logged_as_a_warning_is_less_sure(analyzer: Analyzer) -> None:
    warned = analyzer.text(f"WARNING 03-01 10:00:00 [x.py:1] {SHARED}")
    assert warned.confidence < analyzer.text(SHARED).confidence


def test_prose_is_less_sure_than_a_log(analyzer: Analyzer) -> None:
    prose = analyzer.text(f"### What happens\n\n### Log\nI get this: {PLAIN}\n")
    assert prose.resource == "device_memory"
    assert prose.confidence < analyzer.text(PLAIN).confidence


@settings(deadline=None, max_examples=80)
@given(
    failure=st.sampled_from(FAILURES),
    prefix=st.sampled_from((*PREFIXES, "WARNING ", "> ", "### ", "    ")),
    cut=st.integers(5, 200),
)
def test_below_the_threshold_no_resource_is_named(failure: str, prefix: str, cut: int, analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(f"{prefix}{failure[:cut]}\n")
    assert 0 <= diagnosis.confidence <= 1
    named = diagnosis.resource not in ("none", "undetermined")
    assert not named or diagnosis.confidence >= THRESHOLD
    assert diagnosis.exit_code == {"none": 0, "undetermined": 3}.get(diagnosis.resource, 1)


# --------------------------------------------------------------------------------- the contract


@pytest.mark.parametrize(
    "text",
    [*FAILURES, "", "EngineCore encountered a fatal error.", "KeyError: 'x'", traceback("KeyError: 'x'")],
)
def test_a_diagnosis_is_complete_and_survives_a_round_trip(text: str, analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(text)
    assert diagnosis.schema_version == SCHEMA_VERSION == 1
    assert diagnosis.title
    assert diagnosis.summary.endswith(".")
    assert msgspec.json.decode(msgspec.json.encode(diagnosis), type=Diagnosis) == diagnosis


def test_the_same_text_gives_the_same_diagnosis(analyzer: Analyzer) -> None:
    text = traceback(SHARED) + traceback(PLAIN)
    assert fields(analyzer.text(text)) == fields(Analyzer().text(text))


@settings(deadline=None, max_examples=100)
@given(st.one_of(st.text(max_size=400), st.binary(max_size=400)))
def test_no_input_is_too_odd_for_a_diagnosis(text: str | bytes) -> None:
    diagnosis = ANALYZER.text(text)
    assert diagnosis.exit_code in {0, 1, 3}


ANALYZER = Analyzer()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from((*FAILURES, traceback(SHARED), traceback(PLAIN), "x", "")), max_size=6))
def test_any_mixture_of_failures_gives_a_documented_cause(lines: list[str]) -> None:
    causes = documented_causes()
    diagnosis = ANALYZER.text("\n".join(lines))
    if diagnosis.resource == "none":
        assert not any(len(line) > 1 for line in lines)
    else:
        assert diagnosis.cause in causes[diagnosis.resource]
        assert diagnosis.status == "fatal"


@pytest.mark.parametrize("second", [SHARED, NO_BLOCKS], ids=["shared_memory", "kv_cache"])
def test_a_failure_of_another_resource_lends_neither_cause_nor_figures(second: str, analyzer: Analyzer) -> None:
    """The clean-up of a failure often fails as well, of something else."""
    alone, both = analyzer.text(f"{PLAIN}\n"), analyzer.text(f"{PLAIN}\n{second}\n")
    assert (both.resource, both.cause) == (alone.resource, alone.cause) == ("device_memory", "capacity")
    assert both.numbers == alone.numbers
    assert both.will_not_help == alone.will_not_help


# ---------------------------------------------------------------------------------- the advice


def test_nothing_is_prescribed_or_warned_of_twice(analyzer: Analyzer) -> None:
    for text in FAILURES:
        diagnosis = analyzer.text(text)
        offered = [one.change for one in diagnosis.prescriptions]
        warned = [one.advice for one in diagnosis.will_not_help]
        assert len(set(offered)) == len(offered)
        assert len(set(warned)) == len(warned)


@pytest.mark.parametrize("text", [*FAILURES, FRAGMENTED])
def test_the_same_setting_is_not_prescribed_in_two_spellings(text: str, analyzer: Analyzer) -> None:
    offered = [one.change.removeprefix("export ").split(" (")[0] for one in analyzer.text(text).prescriptions]
    assert len(set(offered)) == len(offered)


@pytest.mark.parametrize(
    "text",
    [
        (
            "ValueError: The model's max seq len (4096) is larger than the maximum number of tokens that "
            "can be stored in KV cache (3664). Try increasing `gpu_memory_utilization` or decreasing "
            "`max_model_len` when initializing the engine."
        ),
        (
            "ValueError: Free memory on device (3.22/4.0 GiB) on startup is less than desired GPU memory "
            "utilization (0.9, 3.6 GiB). Decrease GPU memory utilization or reduce GPU memory used by "
            "other processes."
        ),
    ],
    ids=["max_len", "gate"],
)
def test_a_computed_change_is_not_followed_by_its_own_placeholder(text: str, analyzer: Analyzer) -> None:
    """What is prescribed can be copied: ``--max-model-len 3664``, not "<the second number>"."""
    changes = [one.change for one in analyzer.text(text).prescriptions]
    assert changes[0].split()[1].replace(".", "").isdigit()
    flag = changes[0].split()[0]
    assert [one for one in changes[1:] if one.split()[0] == flag] == []


def test_a_remedy_of_one_kernel_is_kept_to_it(analyzer: Analyzer) -> None:
    """``num_warps=2`` was compiled for vLLM's unified attention; elsewhere nothing is known of it."""
    site = "/usr/lib/python3.12/site-packages/"
    here = traceback(SHARED, (f"{site}vllm/v1/attention/ops/triton_unified_attention.py", "unified_attention"))
    elsewhere = traceback(SHARED, (f"{site}mamba_ssm/ops/triton/ssd_chunk_scan.py", "_chunk_scan_fwd"))
    assert "num_warps=2" in [one.change for one in analyzer.text(here).prescriptions]
    assert "num_warps=2" not in [one.change for one in analyzer.text(elsewhere).prescriptions]


def test_every_prescription_says_what_it_does_and_how_safe_it_is(analyzer: Analyzer) -> None:
    for text in FAILURES:
        for one in analyzer.text(text).prescriptions:
            assert one.change.strip()
            assert one.effect.strip()
            assert one.safety in {"safe", "costs_speed", "changes_output", "risky"}


def test_facts_carry_the_line_that_states_them(analyzer: Analyzer) -> None:
    text = (
        "start\n"
        "INFO 03-11 09:14:02 [utils.py:302] vLLM API server version 0.17.1\n"
        f"GPU 0: Tesla T4 (UUID: GPU-5d0c1c8e-77aa-4d1b-9b0e-0d4f6a3e9a11)\n{SHARED}\n"
    )
    facts = analyzer.text(text, name="crash.log").facts
    assert (facts["vllm_version"].value, facts["vllm_version"].line) == ("0.17.1", 2)
    assert (facts["gpu"].value, facts["gpu"].line) == ("Tesla T4", 3)
    assert {one.file for one in facts.values()} == {"crash.log"}
    assert all(0 < one.confidence <= 1 for one in facts.values())


def test_facts_are_kept_where_nothing_failed(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text("INFO 03-11 09:14:02 [utils.py:302] vLLM API server version 0.17.1\n")
    assert diagnosis.resource == "none"
    assert diagnosis.facts["vllm_version"].value == "0.17.1"
