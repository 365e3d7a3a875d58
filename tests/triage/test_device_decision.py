"""Every test of a device-memory decision is shown with its numbers, and the last one that holds names the cause."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.api import Analyzer
from oortriage.evidence.matcher import Matcher
from oortriage.triage.case import Case
from oortriage.triage.device_cause import decide
from oortriage.triage.device_figures import Figures
from oortriage.triage.diagnosis import Diagnosis
from tests.triage import messages
from tests.triage.messages import GIB, gib
from tests.triage.reading import case_of, changes
from tests.triage.test_device_memory import (
    COUNTER_EXAMPLES,
    FRAGMENTED,
    GENUINE,
    IDLE_BUT_WHOLE,
    LARGER_THAN_THE_CARD,
    OTHERS,
    REFUSED_THOUGH_FREE,
    Report,
    by_name,
)

ALL = (
    *FRAGMENTED, *IDLE_BUT_WHOLE, *OTHERS, *COUNTER_EXAMPLES, *REFUSED_THOUGH_FREE, *LARGER_THAN_THE_CARD, *GENUINE
)  # fmt: skip


def told(diagnosis: Diagnosis) -> list[str]:
    return [f"{one.test}? {one.figures}: {one.answer}" for one in diagnosis.decision]


@by_name(tuple(one for one in ALL if "onnxruntime" not in one.name))
def test_the_last_test_holds_and_none_before_it_does(report: Report, analyzer: Analyzer) -> None:
    steps = analyzer.text(report.message).decision
    assert steps
    assert steps[-1].holds is True or "sibling" not in report.cause
    held = [one.test for one in steps if one.holds]
    assert held
    assert steps[-1].test == held[-1] or report.cause == "other_process"
    assert len(held) <= 3


def test_the_worked_example_of_fragmentation(analyzer: Analyzer) -> None:
    """pytorch#35901: 10.26 free and 11.47 idle (92 % of 12.53) make 21.73 for 10.84."""
    diagnosis = analyzer.text(messages.p2(gib(10.84, 23.65, 10.26, 1.06, reserved=12.53)))
    assert told(diagnosis) == [
        "is it larger than the whole card? tried 10.84 GiB; the card has 23.65 GiB: 0.46 times the card: no",
        "has PyTorch reserved more than the card has? reserved 12.53 GiB; the card has 23.65 GiB: no",
        "was enough free? tried 10.84 GiB; free 10.26 GiB: no",
        (
            "would it fit with what lies idle, and is that 20% of what is reserved? 10.26 GiB free + 11.47 GiB reserved "
            "but unallocated = 21.73 GiB >= 10.84 GiB tried; idle is 92% of the 12.53 GiB reserved: yes: it is there, "
            "but in no single piece"
        ),
    ]


def test_the_worked_example_that_looks_fragmented(analyzer: Analyzer) -> None:
    """CADS#4: half of the reserved memory is idle, and all of it would still be 0.70 GiB short."""
    lines = told(analyzer.text(messages.p7(gib(22.78, 31.73, 12.73, 8.98, idle=9.35, own=18.99))))
    assert any(
        "12.73 GiB free + 9.35 GiB reserved but unallocated = 22.08 GiB < 22.78 GiB tried" in one for one in lines
    )
    assert lines[-1] == "what is missing? 22.78 GiB - 12.73 GiB = 10.05 GiB: a plain shortage"


@by_name(IDLE_BUT_WHOLE)
def test_idle_memory_that_is_too_little_is_said_to_be_so(report: Report, analyzer: Analyzer) -> None:
    step = next(one for one in analyzer.text(report.message).decision if "lies idle" in one.test)
    assert (step.holds, step.answer) == (False, "in sum, but it is too little of it")


def test_the_pool_of_a_sleeping_engine_is_found_step_by_step(analyzer: Analyzer) -> None:
    """vllm#43951: 21.50 MiB free for 20, and 71.20 of 181.80 GiB in private pools."""
    figures = gib(20 / 1024, 184.31, 21.5 / 1024, 181.80, idle=13.63 / 1024, pools=71.20, own=184.28)
    diagnosis = analyzer.text(messages.p6(figures))
    assert diagnosis.cause == "private_pool"
    assert told(diagnosis)[-1] == (
        "is more than 30% of what is allocated in private pools? 71.20 GiB of 181.80 GiB = 39%: yes"
    )


def test_what_lies_idle_in_private_pools_is_no_plain_shortage(analyzer: Analyzer) -> None:
    """A captured graph keeps 62 GiB; PyTorch prints them as allocated, and nothing as unallocated.

    The figure printed after "with" adds up the free blocks of private pools, and is counted into what is allocated
    (c10/cuda/CUDACachingAllocator.cpp). Only the free memory and the pool together would hold the request.
    """
    figures = gib(97.3, 139.8, 76.9, 62.3, idle=0.02, pools=62.2, own=62.9)
    diagnosis = analyzer.text(messages.p6(figures))
    assert diagnosis.cause == "private_pool"
    assert "62.20 GiB" in diagnosis.summary
    assert "private pools" in changes(diagnosis)[0]
    assert not any("expandable_segments" in change for change in changes(diagnosis))


@pytest.mark.parametrize(("pools", "free"), [(0.5, 76.9), (15.0, 76.9), (62.2, 10.0), (5.0, 95.0)])
def test_a_pool_that_is_too_small_to_help_is_not_blamed(pools: float, free: float, analyzer: Analyzer) -> None:
    allocated = 139.8 - free - 0.6
    figures = gib(97.3, 139.8, free, allocated, idle=0.02, pools=pools, own=139.8 - free)
    assert analyzer.text(messages.p6(figures)).cause == "capacity"


def test_what_is_no_size_is_said_to_be_left_out(analyzer: Analyzer) -> None:
    """TensorRT-LLM#8642: NVML's "not available" is 2 to the 64 bytes."""
    text = messages.p6(gib(1, 15.93, 0.5, 11, idle=0.1, own=17179869184, others=((877, 17179869184.0),)))
    first = analyzer.text(text).decision[0]
    assert (first.figures, first.holds) == ("2^60 bytes or more are printed for: process 877, this process", None)


def test_a_missing_figure_is_told(analyzer: Analyzer) -> None:
    """Old IPEX prints no free memory (intel-extension-for-pytorch#846)."""
    lines = told(
        analyzer.text(
            "RuntimeError: XPU out of memory. Tried to allocate 1.71 GiB (GPU 0; 15.56 GiB total "
            "capacity; 176.00 MiB already allocated; 176.00 MiB reserved in total by PyTorch)"
        )
    )
    assert "was enough free? tried 1.71 GiB; free (not printed): could not tell" in lines


def test_an_engine_that_holds_all_of_it_is_told(analyzer: Analyzer) -> None:
    """TensorRT-LLM#2398: 22.18 GiB of the process, 0 bytes of PyTorch's."""
    diagnosis = analyzer.text(messages.p6(gib(2 / 1024, 22.19, 1.5 / 1024, 0, others=((885415, 22.18),))))
    assert any("PyTorch itself holds nothing: all 22.18 GiB" in note for note in diagnosis.notes)


def test_a_message_without_figures_shows_no_decision(analyzer: Analyzer) -> None:
    assert analyzer.text("RuntimeError: CUDA error: out of memory\n").decision == []


@pytest.fixture(scope="module")
def case_without_figures(matcher: Matcher) -> Case:
    return case_of("RuntimeError: CUDA error: out of memory\n", matcher)


sizes = st.none() | st.floats(0, 300 * GIB, allow_nan=False) | st.just(2.0**64)


@settings(deadline=None, max_examples=200)
@given(
    values=st.tuples(*[sizes] * 9),
    others=st.lists(st.tuples(st.integers(1, 99999), st.integers(0, 80 * GIB)), max_size=4),
)
def test_any_figures_give_a_cause_and_steps_in_words(values, others, case_without_figures) -> None:
    decision = decide(case_without_figures, Figures(*values, others))
    assert decision.cause
    for one in decision.steps:
        assert one.test
        assert one.figures
        assert one.answer
