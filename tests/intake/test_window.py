"""Which stretches of a large log are kept: nothing that counts is lost, and memory stays bounded.

The reference is a plain loop over the lines of the whole log.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.api import Analyzer
from oortriage.intake import window
from oortriage.intake.window import Anchors, Gate, Stretch, keep
from oortriage.scoring.case import load_cases

EVENTS = ("out of resource: ", "CUDA out of memory", "Killed process")
FACTS = ("NVIDIA H200", "torch==")
GATE = Gate(Anchors(EVENTS, FACTS))
MIB = 1 << 20


@contextmanager
def sizes(**constants: int) -> Iterator[None]:
    """Shrink the sizes in the module, so that a log of a few hundred bytes is a large one."""
    with patch.multiple(window, **{name.upper(): value for name, value in constants.items()}):
        yield


def chunked(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def naive_hits(data: bytes, anchors: tuple[str, ...]) -> set[tuple[int, int, bytes]]:
    """Line number, byte column and literal of every anchor in any case, by a loop over lines."""
    found = set()
    for number, line in enumerate(data.lower().split(b"\n"), start=1):
        for anchor in anchors:
            form = anchor.lower().encode()
            at = line.find(form)
            while at >= 0:
                found.add((number, at, form))
                at = line.find(form, at + 1)
    return found


def kept_hits(stretches: list[Stretch], anchors: tuple[str, ...]) -> set[tuple[int, int, bytes]]:
    """The same, read out of the stretches alone."""
    found = set()
    for stretch in stretches:
        inner = naive_hits(stretch.data, anchors)
        for number, column, form in inner:
            shift = stretch.column if number == 1 else 0
            found.add((stretch.line + number - 1, column + shift, form))
    return found


def assert_exact(stretches: list[Stretch], data: bytes) -> None:
    """Each stretch is a true copy, numbered right, and they neither overlap nor touch."""
    end = -1
    for stretch in stretches:
        low = stretch.offset
        assert low > end
        end = low + len(stretch.data)
        assert stretch.data == data[low:end]
        assert stretch.line == data.count(b"\n", 0, low) + 1
        assert stretch.column == low - (data.rfind(b"\n", 0, low) + 1)


def holds(stretches: list[Stretch], low: int, high: int) -> bool:
    return any(one.offset <= low and high <= one.offset + len(one.data) for one in stretches)


def size(stretches: list[Stretch]) -> int:
    return sum(len(one.data) for one in stretches)


# --- small logs


def test_an_empty_log_has_no_stretch() -> None:
    assert keep(iter([]), GATE) == []
    assert keep(iter([b"", b""]), GATE) == []


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_a_small_log_is_kept_whole(chunk: int) -> None:
    data = b"no anchor here\n" * 20 + b"no newline"
    assert keep(chunked(data, chunk), GATE) == [Stretch(0, 1, 0, data)]


def test_a_log_of_exactly_the_limit_is_kept_whole() -> None:
    data = b"x" * 5000
    assert keep(chunked(data, 999), GATE, whole=5000) == [Stretch(0, 1, 0, data)]


def test_a_small_log_does_not_build_the_automaton() -> None:
    gate = Gate(Anchors(EVENTS, FACTS))
    keep(iter([b"out of resource: "]), gate)
    assert "_automaton" not in vars(gate)


# --- the gate


def test_the_gate_finds_events_and_facts_with_their_place() -> None:
    data = b"NVIDIA H200 says CUDA out of memory"
    hits = [(start, is_event) for _, start, is_event in GATE.hits(data)]
    assert hits == [(0, False), (17, True)]


@pytest.mark.parametrize("text", [b"cuda out of memory", b"CUDA OUT OF MEMORY", b"Cuda Out Of Memory"])
def test_the_gate_is_blind_to_case(text: bytes) -> None:
    assert [is_event for *_, is_event in GATE.hits(text)] == [True]


def test_the_gate_needs_no_valid_utf8() -> None:
    assert len(GATE.hits(b"\xff\xfe\0CUDA out of memory\xc3")) == 1


def test_a_gate_without_anchors_finds_nothing() -> None:
    gate = Gate(Anchors((), ()))
    data = b"x" * 100 + b"\n"
    assert keep(iter([data * 10]), gate, whole=10)[0].offset == 0


def test_an_event_is_seen_where_a_shorter_fact_begins_at_the_same_place() -> None:
    gate = Gate(Anchors(("KV cache memory: -",), ("KV cache memory",)))
    hits = gate.hits(b"KV cache memory: -2.14 GiB")
    assert any(is_event for *_, is_event in hits)


def test_an_event_is_seen_where_a_fact_overlaps_its_beginning() -> None:
    gate = Gate(Anchors(("memory is full",), ("GPU memory",)))
    assert any(is_event for *_, is_event in gate.hits(b"the GPU memory is full now"))


def test_every_sample_of_a_failure_rule_opens_a_wide_stretch(analyzer: Analyzer) -> None:
    """What a small log shows must not be lost in a large one: the gate is what decides there."""
    unseen = [
        (rule.code, sample.text[:60])
        for rule in analyzer.matcher.rules
        if rule.is_event
        for sample in rule.sample
        if not any(is_event for *_, is_event in analyzer._gate.hits(sample.text.encode()))
    ]
    assert unseen == []


# --- large logs, small sizes

BITS = st.sampled_from(
    [
        b"step 1 loss 2.5",
        b"\n",
        b"\n",
        b"\r",
        b"a much longer line that fills the space between two places of interest; ",
        "Größe 😀".encode(),
        b"\xff",
        b"out of resour",
        b"x" * 150,
    ]
)
PLANTS = st.sampled_from([form.encode() for form in EVENTS] + [b"cuda out of memory", b"KILLED PROCESS", b"\n"])


@st.composite
def logs(draw: st.DrawFn, hits: int = 12) -> bytes:
    parts: list[bytes] = draw(st.lists(BITS, min_size=5, max_size=60))
    for plant in draw(st.lists(PLANTS, max_size=hits)):
        parts.insert(draw(st.integers(0, len(parts))), plant)
    return b"".join(parts)


@settings(max_examples=200)
@given(data=logs(), chunk=st.integers(1, 400), inner=st.integers(30, 300))
def test_every_anchor_is_kept_with_its_exact_line_and_column(data: bytes, chunk: int, inner: int) -> None:
    with sizes(chunk=inner, edge=40, before=30, after=25):
        stretches = keep(chunked(data, chunk), GATE, whole=50)
    assert_exact(stretches, data)
    assert kept_hits(stretches, EVENTS) == naive_hits(data, EVENTS)


@settings(max_examples=150)
@given(data=logs(), inner=st.integers(30, 300))
def test_the_surroundings_of_an_anchor_are_kept(data: bytes, inner: int) -> None:
    before, after = 50, 25
    with sizes(chunk=inner, edge=40, before=before, after=after):
        stretches = keep(iter([data]), GATE, whole=50)
    for _, start, is_event in GATE.hits(data):
        assert is_event
        # An anchor split by a chunk border has a lead-in shorter by what lies before the border.
        low = max(0, start - before + GATE.longest)
        assert holds(stretches, low, min(len(data), start + after))


@settings(max_examples=100)
@given(data=logs(hits=2), inner=st.integers(30, 300))
def test_head_and_tail_are_kept(data: bytes, inner: int) -> None:
    with sizes(chunk=inner, edge=40, before=30, after=25):
        stretches = keep(iter([data]), GATE, whole=50)
    assert holds(stretches, 0, min(40, len(data)))
    assert holds(stretches, max(0, len(data) - 40), len(data))


@settings(max_examples=100)
@given(data=logs(), sizes_of=st.lists(st.integers(1, 300), min_size=2, max_size=4))
def test_how_the_input_is_cut_does_not_matter(data: bytes, sizes_of: list[int]) -> None:
    with sizes(chunk=128, edge=40, before=30, after=25):
        results = [keep(chunked(data, one), GATE, whole=50) for one in sizes_of]
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("shift", range(len(b"out of resource: ") + 1))
def test_an_anchor_split_by_a_chunk_border_is_kept(shift: int) -> None:
    anchor = b"out of resource: "
    data = b"-" * 63 + b"\n" + b"." * (192 - shift) + anchor + b"\n" + b"," * 400
    with sizes(chunk=256, edge=20, before=50, after=25):
        stretches = keep(iter([data]), GATE, whole=50)
    at = data.index(anchor)
    assert_exact(stretches, data)
    assert holds(stretches, at - 50 + len(anchor), at + 25)
    assert kept_hits(stretches, EVENTS) == {(2, 192 - shift, anchor)}


def test_a_stretch_may_run_over_several_chunks() -> None:
    data = b"." * 100 + b"\nKilled process\n" + b"," * 2000
    with sizes(chunk=64, edge=10, before=60, after=600):
        stretches = keep(iter([data]), GATE, whole=50)
    at = data.index(b"Killed")
    assert_exact(stretches, data)
    assert holds(stretches, at - 60, at + 600)


def test_fact_lines_are_kept_with_a_small_margin() -> None:
    data = b"." * 999 + b"\ntorch==2.9.0\n" + b"," * 2000
    with sizes(chunk=256, edge=10, before=200, after=200, fact_margin=20):
        stretches = keep(iter([data]), GATE, whole=50)
    assert_exact(stretches, data)
    assert [one.offset for one in stretches] == [0, 980, len(data) - 10]
    assert stretches[1].data == b"." * 19 + b"\ntorch==2.9.0\n" + b"," * 7
    assert (stretches[1].line, stretches[1].column) == (1, 980)


def test_one_fact_that_repeats_does_not_push_a_failure_out() -> None:
    fact, failure = b"torch==2.9.0\n", b"CUDA out of memory\n"
    data = fact * 300 + failure + fact * 3000
    with sizes(chunk=512, edge=50, before=60, after=60, fact_margin=20, last_budget=2000):
        stretches = keep(iter([data]), GATE, whole=50)
    assert_exact(stretches, data)
    assert kept_hits(stretches, EVENTS) == {(301, 0, b"cuda out of memory")}


def test_the_first_and_the_last_of_endless_failures_are_kept() -> None:
    lines = [b"%06d CUDA out of memory\n" % index for index in range(4000)]
    data = b"".join(lines)
    with sizes(chunk=512, edge=50, before=60, after=60, first_budget=4000, last_budget=4000):
        stretches = keep(iter([data]), GATE, whole=50)
    assert_exact(stretches, data)
    lines_kept = {line for line, _, _ in kept_hits(stretches, EVENTS)}
    assert set(range(1, window.FIRST_PER_ANCHOR + 1)) <= lines_kept
    assert set(range(3900, 4001)) <= lines_kept
    assert size(stretches) <= 4000 + 4000 + 4 * 512


def test_a_rare_failure_among_endless_ones_is_kept() -> None:
    """One noisy message must not use up the room that another needs."""
    noisy = b"CUDA out of memory\n"
    data = noisy * 2000 + b"Killed process\n" + noisy * 2000
    with sizes(chunk=512, edge=50, before=60, after=60, first_budget=8000, last_budget=4000):
        stretches = keep(iter([data]), GATE, whole=50)
    assert (2001, 0, b"killed process") in kept_hits(stretches, EVENTS)


@settings(max_examples=30)
@given(
    parts=st.lists(
        st.sampled_from([b"CUDA out of memory", b"\n", b"out of resource: ", b"torch==", b"." * 90]),
        min_size=100,
        max_size=300,
    ),
    chunk=st.integers(64, 512),
)
def test_kept_bytes_never_pass_the_budgets(parts: list[bytes], chunk: int) -> None:
    data = b"".join(parts)
    with sizes(
        chunk=chunk,
        edge=50,
        before=40,
        after=40,
        fact_margin=10,
        first_per_anchor=5,
        first_budget=1000,
        last_budget=1000,
    ):
        stretches = keep(iter([data]), GATE, whole=50)
    assert_exact(stretches, data)
    # A pool may pass its budget by what one chunk adds to it.
    slack = 2 * (chunk + 40 + 40)
    assert size(stretches) <= 1000 + 1000 + 2 * 50 + slack


# --- large logs, real sizes


def filler(total: int, seed: int) -> bytes:
    """Lines of a realistic mixture of lengths, none of them interesting."""
    rng = random.Random(seed)
    block = b"".join(
        b"DEBUG heartbeat %08d %s\n" % (rng.randrange(10**8), b"." * rng.choice([0, 20, 60, 200, 3000]))
        for _ in range(2000)
    )
    return (block * (total // len(block) + 1))[:total]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_anchors_in_a_log_of_megabytes_are_kept_whole_and_numbered(seed: int) -> None:
    rng = random.Random(seed)
    parts: list[bytes] = []
    for index in range(20):
        parts += [filler(rng.randrange(1000, 900_000), seed * 100 + index), b"\n"]
        parts.append(b"root %d: " % index + rng.choice(EVENTS).encode() + b"number %d\n" % index)
    data = b"".join(parts)
    assert len(data) > 3 * MIB
    stretches = keep(chunked(data, rng.choice([4096, 65_537, 3 << 20])), GATE)
    assert_exact(stretches, data)
    assert kept_hits(stretches, EVENTS) == naive_hits(data, EVENTS)
    for index in range(20):
        start = data.index(b"root %d: " % index)
        assert holds(stretches, start - (8 << 10), min(len(data), start + (6 << 10)))
    assert size(stretches) < len(data) / 2


def test_one_endless_line_stays_bounded_and_keeps_its_anchor() -> None:
    line = b"token " * (4 * MIB // 6)
    data = b"first\n" + line + b"CUDA out of memory" + line
    stretches = keep(chunked(data, 1 << 16), GATE)
    assert_exact(stretches, data)
    assert kept_hits(stretches, EVENTS) == {(2, len(line), b"cuda out of memory")}
    assert size(stretches) < MIB


def test_the_last_line_of_a_large_log_needs_no_newline() -> None:
    data = filler(3 * MIB, 5) + b"\n" + b"Killed process"
    stretches = keep(chunked(data, 1 << 18), GATE)
    assert_exact(stretches, data)
    assert stretches[-1].data.endswith(b"\nKilled process")


def test_dense_hits_stay_within_the_documented_budgets() -> None:
    data = b"CUDA out of memory. NVIDIA H200 out of resource: \n" * (8 * MIB // 50)
    stretches = keep(chunked(data, 1 << 20), GATE)
    assert_exact(stretches, data)
    budgets = window.WHOLE + window.FIRST_BUDGET + window.LAST_BUDGET
    assert size(stretches) <= budgets + 2 * window.EDGE


def test_a_log_over_the_limit_by_one_byte_still_keeps_both_ends() -> None:
    data = filler(window.WHOLE + 1, 9)
    stretches = keep(chunked(data, 1 << 20), GATE)
    assert_exact(stretches, data)
    assert holds(stretches, 0, window.EDGE)
    assert holds(stretches, len(data) - window.EDGE, len(data))


def test_a_caller_may_give_a_large_log_as_one_chunk() -> None:
    data = filler(3 * MIB, 4) + b"\nCUDA out of memory\n" + filler(2 * MIB, 6)
    assert keep(iter([data]), GATE) == keep(chunked(data, 10_007), GATE)


def test_a_log_buried_in_a_large_one_gets_the_verdict_it_gets_alone(analyzer: Analyzer, fixtures: Path) -> None:
    around = b"DEBUG heartbeat of a supervisor, nothing to say\n" * 3000
    above = around.count(b"\n")
    cases = load_cases(fixtures)
    for case in cases[:: len(cases) // 10]:
        data = case.path.read_bytes()
        if data.startswith((b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff")):
            continue
        alone = analyzer.text(data)
        with sizes(chunk=1 << 16, edge=2048):
            buried = analyzer.text(around + data + b"\n" + around, whole=100_000)
        assert (buried.code, buried.resource, buried.cause, buried.numbers) == (
            alone.code,
            alone.resource,
            alone.cause,
            alone.numbers,
        ), case.name
        assert [(one.line - above, one.column, one.text) for one in buried.evidence] == [
            (one.line, one.column, one.text) for one in alone.evidence
        ], case.name
