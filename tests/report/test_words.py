"""Words that the readable formats share."""

from __future__ import annotations

from typing import get_args

import pytest

from oortriage.evidence.rule import Resource
from oortriage.report.words import (
    RESOURCE_WORDS,
    bill_line,
    fact_line,
    number_line,
    other_line,
    proof,
    verdict,
    when_line,
)
from oortriage.triage.diagnosis import BillTerm, BillView, Evidence, OtherFailure, StatedFact
from tests.report._made import made


def fact(value: str | float, line: int = 1) -> StatedFact:
    return StatedFact(value, "run.log", line, 0.9, "FA101")


def test_every_resource_has_words_of_its_own() -> None:
    assert set(RESOURCE_WORDS) == set(get_args(Resource))
    assert len(set(RESOURCE_WORDS.values())) == len(RESOURCE_WORDS)


def test_chip_and_host_shared_memory_cannot_be_mixed_up() -> None:
    assert "on the chip" in RESOURCE_WORDS["shared_memory"]
    assert "/dev/shm" in RESOURCE_WORDS["host_shm"]
    assert "chip" not in RESOURCE_WORDS["host_shm"]


@pytest.mark.parametrize(
    ("resource", "cause", "words"),
    [
        ("shared_memory", "tile_too_large", "shared memory of one block (on the chip): tile too large"),
        ("device_memory", "", "device memory (the card's VRAM)"),
        ("kv_cache", "max_len_too_long", "the engine's KV cache: max len too long"),
        ("undetermined", "capacity", "undetermined"),
        ("none", "", "no resource ran out"),
    ],
)
def test_the_verdict_names_resource_and_cause(resource: str, cause: str, words: str) -> None:
    assert verdict(made(resource=resource, cause=cause)) == words


def test_a_cause_of_a_log_without_failure_is_told_with_it() -> None:
    assert verdict(made(resource="none", cause="unrelated")) == "no resource ran out: unrelated"


def test_small_sizes_are_exact_and_large_ones_rounded() -> None:
    numbers = {"required_bytes": 81920, "limit_bytes": 1048575, "free_bytes": 1048576, "capacity_bytes": 25393994138}
    # 25,393,994,138 / 2**30 = 23.65
    assert number_line(made(numbers=numbers)) == (
        "required 81,920 B, limit 1,048,575 B, free 1.00 MiB, capacity 23.65 GiB"
    )


def test_counts_and_fractions_are_told_by_name() -> None:
    numbers = {"max_model_len": 262144, "required_columns": 544, "utilization": 0.92}
    assert number_line(made(numbers=numbers)) == ("max model len 262,144, required columns 544, utilization 0.92")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("pid", 11872, "pid 11872"),
        ("device_index", 3, "device index 3"),
        ("exit_code", -9, "exit code -9"),
        ("cuda_error", 2, "cuda error 2"),
    ],
)
def test_a_name_that_is_a_number_is_not_grouped(name: str, value: int, words: str) -> None:
    """A process id is copied into ``kill``; it counts nothing."""
    assert number_line(made(numbers={name: value})) == words


def test_negative_sizes_keep_their_sign() -> None:
    assert number_line(made(numbers={"kv_available_bytes": -2147483648})) == "kv available -2.00 GiB"


def test_no_figures_make_no_line() -> None:
    assert number_line(made()) == ""


def test_facts_are_told_in_one_order_whatever_the_log_s() -> None:
    facts = {
        "model": fact("tiny"),
        "vllm_version": fact("0.17.1"),
        "gpu": fact("Tesla T4"),
        "compute_capability": fact("7.5"),
    }
    assert fact_line(made(facts=facts)) == "Tesla T4, capability 7.5, vLLM 0.17.1, model tiny"


def test_facts_without_a_place_in_one_line_are_left_to_json() -> None:
    assert fact_line(made(facts={"driver_version": fact("550.54")})) == ""


def test_a_cast_tells_where_it_is_said() -> None:
    facts = {
        "gpu": fact("Tesla T4"),
        "compute_capability": fact("7.5"),
        "vllm_version": fact("0.17.1"),
        "dtype": fact("torch.float32"),
        "dtype_from": fact("torch.bfloat16", line=20),
    }
    assert fact_line(made(facts=facts)) == (
        "Tesla T4, capability 7.5, float32 (cast from bfloat16, line 20), vLLM 0.17.1"
    )


def test_a_type_without_a_cast_is_only_named() -> None:
    assert fact_line(made(facts={"dtype": fact("torch.float16")})) == "float16"


@pytest.mark.parametrize(
    ("phase", "occurrences", "streams", "words"),
    [
        ("unknown", 1, ["a"], ""),
        ("kv_init", 1, [], "kv init"),
        ("prefill", 5, ["a", "b"], "prefill, printed 5 times, by 2 processes"),
        ("unknown", 2, ["a"], "printed 2 times"),
    ],
)
def test_when_and_how_often(phase: str, occurrences: int, streams: list[str], words: str) -> None:
    assert when_line(made(phase=phase, occurrences=occurrences, streams=streams)) == words


def test_a_bill_is_a_sum_with_its_word() -> None:
    bill = BillView(
        "arithmetic",
        81920,
        [BillTerm("Q", "Q 16x256x4", 16384), BillTerm("K", "K 256x32x4", 32768), BillTerm("V", "V 32x256x4", 32768)],
        {},
        "arithmetic",
    )
    assert bill_line(made(bill=bill).bill) == "81,920 = Q 16x256x4 + K 256x32x4 + V 32x256x4 (arithmetic)"
    assert bill_line(made().bill) == ""


def test_another_failure_is_told_with_its_line() -> None:
    other = OtherFailure("DM101", "device_memory", 40, "other_run")
    assert other_line(other) == "line 40: DM101 (device_memory), other run"


@pytest.mark.parametrize("lead", ["", "   ", " \x1b[31m" * 500, "\t" * 500, "x" * 3000])
def test_a_proof_is_cut_round_its_message_whatever_stands_before_it(lead: str) -> None:
    """What is made visible takes more room than it did, and blanks in front are not shown."""
    quote = proof(Evidence("run.log", 1, 1, f"{lead}out of gizmo" + " y" * 500, "root", offset=len(lead)), 100)
    assert "out of gizmo" in quote
    assert len(quote) <= 100
