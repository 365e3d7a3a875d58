"""Whole runs: what fires on which history, in which words, when, and when it is over."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.watch.rules import RULES
from oortriage.watch.sample import DeviceMemory, EngineLoad, GroupMemory, ProcessMemory, Sample, Settings
from oortriage.watch.watcher import CLEAR_AFTER, RAISE_AFTER, Watcher
from tests.watch.made import BEGIN, GIB, MIB, TOTAL, codes, fired, flat, leak, noisy, run, samples


def test_a_leak_is_named_with_its_arithmetic() -> None:
    watcher = run(samples({7: flat(30 * GIB), 8: leak(41 * MIB, 40 * GIB)}, 14))
    (one,) = fired(watcher)
    assert (one.code, one.gpu, one.pid) == ("WD101", "0", 8)
    assert one.numbers["slope_bytes_per_s"] * 60 == pytest.approx(41 * MIB, rel=1e-3)
    assert one.numbers["full_in_s"] == pytest.approx(one.numbers["left_bytes"] / one.numbers["slope_bytes_per_s"])
    assert one.message.startswith("device memory of process 8 (p8) on GPU 0 grew 41 MiB/min for 9 min, 95 % interval 4")
    assert "left on GPU 0: full in " in one.message


def test_a_leak_is_found_within_a_window_and_a_tenth() -> None:
    watcher = run(noisy_leak(20 * MIB, spread=3 * MIB), window_s=600)
    assert codes(watcher) == ["WD101"]
    assert watcher.events[0].time_s - BEGIN <= 600 + (RAISE_AFTER + 2) * 10


def noisy_leak(per_minute: float, spread: float, minutes: float = 12):
    return samples({8: noisy(leak(per_minute), spread)}, minutes)


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([1 * MIB, 50 * MIB, GIB]))
def test_noise_for_an_hour_and_more_fires_nothing(seed: int, spread: float) -> None:
    assert run(samples({8: noisy(flat(20 * GIB), spread, seed)}, 75, interval=10)).events == []


@settings(max_examples=3, deadline=None)
@given(st.floats(60, 500), st.floats(0.1 * GIB, 10 * GIB))
def test_a_sawtooth_for_an_hour_and_more_fires_nothing(period: float, height: float) -> None:
    curve = lambda t: 20 * GIB + t % period / period * height  # noqa: E731
    assert run(samples({8: curve}, 75, interval=10)).events == []


def test_noise_that_remembers_itself_for_minutes_fires_nothing() -> None:
    """Each bin keeps nine tenths of the last: a plain 95 % interval calls such a drift sure every few hours."""
    source, level = random.Random(1), [0.0]

    def curve(_: float) -> float:
        level[0] = 0.9 * level[0] + source.gauss(0, 20 * MIB)
        return 20 * GIB + level[0]

    assert run(samples({8: curve}, 60, interval=10)).events == []


def test_growth_back_to_where_it_was_is_no_leak() -> None:
    curve = lambda t: 40 * GIB if t < 1800 else 20 * GIB + min(t - 1800, 1500) * 10 * MIB  # noqa: E731
    assert run(samples({8: curve}, 60)).events == []


def engine_start(t: float) -> float:
    """Draw vLLM's start: weights for two minutes, a profile run that comes and goes, the pool at once, graphs."""
    weights = 16 * GIB * min(1.0, max(0.0, t - 10) / 120)
    profile = 4 * GIB if 135 < t < 145 else 0
    pool = 50 * GIB if t >= 150 else 0
    graphs = 0.6 * GIB * min(1.0, max(0.0, t - 155) / 20)
    return 0.5 * GIB + weights + profile + pool + graphs


def test_an_engine_that_starts_and_serves_fires_nothing() -> None:
    watcher = run(samples({8: engine_start}, 90))
    assert watcher.events == []
    (one,) = watcher.view.of("process")
    assert one.trend.kind == "flat"


def test_a_leak_after_an_engines_start_is_found() -> None:
    watcher = run(samples({8: lambda t: engine_start(t) + leak(15 * MIB, 0, since=300)(t)}, 40))
    assert codes(watcher) == ["WD101"]
    assert watcher.events[0].numbers["slope_bytes_per_s"] * 60 == pytest.approx(15 * MIB, rel=0.05)


def test_a_slow_leak_is_found_in_the_long_window() -> None:
    watcher = run(samples({8: leak(2 * MIB)}, 75, interval=10))
    assert codes(watcher) == ["WD101"]
    assert watcher.events[0].numbers["span_s"] > 2900


def test_a_warm_up_curve_fires_nothing() -> None:
    assert run(samples({8: lambda t: 20 * GIB * (1 - math.exp(-t / 300))}, 60)).events == []


def test_a_leak_that_stops_is_over_after_a_while_and_only_once() -> None:
    watcher = run(samples({8: lambda t: 10 * GIB + min(t, 900) * MIB}, 45))
    assert [(one.state, one.code) for one in watcher.events] == [("fired", "WD101"), ("cleared", "WD101")]
    assert watcher.events[1].message.startswith("over: device memory of process 8")
    assert watcher.firing() == []
    assert watcher.events[1].time_s - BEGIN >= 900 + CLEAR_AFTER * 10


def test_a_single_wobble_neither_fires_nor_clears() -> None:
    watcher = run(samples({8: lambda t: 10 * GIB + t * MIB - (300 * MIB if 1100 < t < 1120 else 0)}, 30))
    assert [one.state for one in watcher.events] == ["fired"]


def test_growth_that_no_process_explains() -> None:
    watcher = run(samples({}, 14, others=leak(100 * MIB, 20 * GIB), named=False))
    (one,) = fired(watcher)
    assert (one.code, one.pid, one.gpu) == ("WD102", None, "0")
    assert "no process is named for it" in one.message


def test_growth_that_a_process_explains_is_told_once() -> None:
    assert codes(run(samples({8: leak(100 * MIB)}, 14, others=flat(5 * GIB)))) == ["WD101"]


def test_growth_beside_a_growing_process() -> None:
    watcher = run(samples({8: leak(50 * MIB)}, 14, others=leak(100 * MIB, GIB)))
    assert sorted(codes(watcher)) == ["WD101", "WD102"]
    told = next(one for one in watcher.events if one.code == "WD102")
    assert told.numbers["named_bytes_per_s"] * 60 == pytest.approx(50 * MIB, rel=0.01)


def test_with_pid_the_growth_of_another_is_another_matter() -> None:
    watcher = run(samples({7: flat(), 8: leak(100 * MIB, GIB)}, 14), pids=(7,))
    assert [(one.code, one.pid) for one in fired(watcher)] == [("WD103", 8)]


def test_with_pid_its_children_count_as_asked_for() -> None:
    def given():
        for sample in samples({8: leak(100 * MIB)}, 14):
            yield Sample(sample.time_s, sample.devices, family=(7, 8))

    assert codes(run(given(), pids=(7,))) == ["WD101"]


def load(usage: float, waiting: float, preemptions: float = 0) -> EngineLoad:
    return EngineLoad(usage, preemptions, 32, waiting)


def test_pressure_on_the_cache_is_no_leak() -> None:
    """vLLM's device memory is flat by design; what is full is the pool in it."""
    watcher = run(samples({8: flat(72 * GIB)}, 30, engine=lambda t: load(0.99, 12, t // 30)))
    assert sorted(codes(watcher)) == ["WK201", "WK202"]
    pressure = next(one for one in watcher.events if one.code == "WK201")
    assert pressure.message.startswith("KV cache at 99 % for 2 min with 12 requests waiting".replace("99 %", "99%"))
    assert watcher.view.of("process")[0].trend.kind == "flat"
    preempted = next(one for one in watcher.events if one.code == "WK202")
    assert preempted.numbers["preemptions_per_s"] == pytest.approx(1 / 30, rel=0.4)


def test_pressure_says_that_the_memory_did_not_move_once_it_was_watched_long_enough() -> None:
    busy = lambda t: load(0.99 if t > 900 else 0.3, 12)  # noqa: E731
    (one,) = fired(run(samples({8: flat(72 * GIB)}, 30, engine=busy)))
    assert "device memory is no leak (it moved 0.0 MiB in 10 min)" in one.message


def test_pressure_and_a_leak_are_two_matters() -> None:
    watcher = run(samples({8: leak(30 * MIB)}, 20, engine=lambda t: load(0.98 if t > 900 else 0.1, 3)))
    assert sorted(codes(watcher)) == ["WD101", "WK201"]
    told = next(one for one in watcher.events if one.code == "WK201")
    assert "that is another matter" in told.message


@pytest.mark.parametrize(
    ("usage", "waiting"), [(0.99, 0), (0.9, 50), (0.0, 0)], ids=["full and nobody waits", "not full", "idle"]
)
def test_what_is_no_pressure(usage: float, waiting: float) -> None:
    assert run(samples({8: flat()}, 20, engine=lambda _: load(usage, waiting))).events == []


def test_a_counter_that_starts_anew_is_no_preemption() -> None:
    assert run(samples({8: flat()}, 20, engine=lambda t: load(0.5, 0, 900 if t < 600 else 0))).events == []


def test_pressure_that_passes_is_over() -> None:
    watcher = run(samples({8: flat()}, 30, engine=lambda t: load(0.99 if t < 900 else 0.2, 5)))
    assert [one.state for one in watcher.events] == ["fired", "cleared"]


def group(used: float, limit: int | None = 32 * GIB, kills: float = 0) -> GroupMemory:
    return GroupMemory("/pod", int(used), int(used), limit, kills)


def test_main_memory_that_grows_is_told_with_the_limit_that_ends_it() -> None:
    watcher = run(
        samples({8: flat()}, 14, host={8: leak(400 * MIB, GIB)}, group=lambda t: group(2 * GIB + t / 60 * 400 * MIB))
    )
    assert sorted(codes(watcher)) == ["WH301", "WH302"]
    host = next(one for one in watcher.events if one.code == "WH301")
    assert (host.pid, host.gpu) == (8, "")
    assert "left within its limit: full in " in host.message


def test_a_limit_beyond_the_horizon_is_no_alarm() -> None:
    watcher = run(samples({}, 14, group=lambda t: group(2 * GIB + t / 60 * 20 * MIB)), horizon_s=3600.0)
    assert watcher.events == []
    assert watcher.view.of("group")[0].trend.kind == "steady"


def test_a_full_group_is_told_and_a_group_without_a_limit_never() -> None:
    assert codes(run(samples({}, 10, group=lambda _: group(31.5 * GIB)))) == ["WH303"]
    assert codes(run(samples({}, 10, group=lambda _: group(31.5 * GIB, limit=None)))) == []


def test_a_kill_is_told_at_once_and_old_ones_are_not() -> None:
    watcher = run(samples({}, 10, group=lambda t: group(GIB, kills=3 if t < 300 else 5)))
    (one,) = fired(watcher)
    assert (one.code, one.numbers["kills"]) == ("WH304", 2)
    assert one.time_s - BEGIN <= 310


def test_a_process_that_ends_leaves_its_story() -> None:
    def given():
        for number, sample in enumerate(samples({7: flat(GIB), 8: leak(100 * MIB)}, 30)):
            device = sample.devices[0]
            listed = device.processes if number < 200 else device.processes[:1]
            yield Sample(sample.time_s, (DeviceMemory("0", "", "", TOTAL, GIB, TOTAL - GIB, listed),))

    watcher = run(given())
    assert [one.key.pid for one in watcher.view.of("process")] == [7]
    assert [one.key.pid for one in watcher.ended] == [8]
    assert [one.state for one in watcher.events] == ["fired", "cleared"]


def test_samples_out_of_order_are_dropped_and_counted() -> None:
    watcher = Watcher(Settings())
    for time in (10.0, 20.0, 20.0, 15.0, 30.0):
        watcher.feed(Sample(time))
    assert (watcher.samples, watcher.dropped) == (3, 2)


def test_any_number_of_processes_takes_bounded_memory() -> None:
    watcher = Watcher(Settings())
    for moment in range(2):
        listed = tuple(ProcessMemory(moment * 4000 + pid, "", 1) for pid in range(4000))
        watcher.feed(Sample(10.0 + moment / 100, (DeviceMemory("0", processes=listed),)))
    assert len(watcher.view.watched) <= 4096


def test_every_rule_has_a_code_of_its_own_and_says_what_it_means() -> None:
    assert len({rule.CODE for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule.TITLE[0].isupper()
        assert not rule.TITLE.endswith(".")
        assert rule.MEANING.endswith(".")
