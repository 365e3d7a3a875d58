"""Grouping: the same whatever the order, and nothing is lost or counted twice."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oortriage.triage.clock import Moment
from oortriage.triage.diagnosis import SCHEMA_VERSION, Diagnosis, Evidence, StatedFact
from oortriage.triage.groups import Grouping, Groups, Sighting, key_of, sighting

WHEN = st.one_of(
    st.just(Moment("", "unknown")),
    st.builds(
        Moment,
        st.integers(0, 59).map(lambda second: f"2026-01-01T00:00:{second:02d}Z"),
        st.sampled_from(["log", "log_without_year", "file"]),
    ),
)
VERDICT = st.sampled_from([("shared_memory", 1), ("device_memory", 1), ("undetermined", 3), ("none", 0)])


def one_sighting(verdict, fingerprint, code, cause, confidence, occurrences, when, numbers, gpu, version) -> Sighting:
    resource, exit_code = verdict
    return Sighting(
        file="",
        fingerprint=fingerprint,
        code=code,
        title="t",
        resource=resource,
        cause=cause,
        phase="decode",
        confidence=confidence,
        exit_code=exit_code,
        occurrences=occurrences,
        when=when,
        numbers=numbers,
        gpu=gpu,
        versions={"vllm": version} if version else {},
    )


NUMBERS = st.dictionaries(st.sampled_from(["required_bytes", "limit_bytes"]), st.integers(0, 99), max_size=2)
SIGHTING = st.builds(
    one_sighting,
    VERDICT,
    st.sampled_from(["v1-a", "v1-b", "v1-c"]),
    st.sampled_from(["SM101", "DM101", ""]),
    st.sampled_from(["", "capacity"]),
    st.sampled_from([0.3, 0.8, 0.97]),
    st.integers(0, 3),
    WHEN,
    NUMBERS,
    st.sampled_from(["", "T4", "A100"]),
    st.sampled_from(["", "1", "2"]),
)
SIGHTINGS = st.lists(SIGHTING, max_size=8).map(
    lambda some: [msgspec.structs.replace(one, file=f"{number}.log") for number, one in enumerate(some)]
)
some_times = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def grouped(logs: list[Sighting], by="fingerprint", failed: list[str] | None = None) -> Groups:
    grouping = Grouping(by)
    for one in logs:
        grouping.add(one)
    for file in failed or []:
        grouping.fail(file, "why")
    return grouping.result()


@some_times
@given(SIGHTINGS, st.randoms(use_true_random=False), st.sampled_from(["fingerprint", "cause", "code", "resource"]))
def test_the_order_of_logs_changes_nothing(logs, random, by) -> None:
    turned = list(logs)
    random.shuffle(turned)
    files = ["y", "x"]
    assert grouped(turned, by, files) == grouped(logs, by, files[::-1])


@some_times
@given(SIGHTINGS, st.sampled_from(["fingerprint", "cause", "code", "resource"]))
def test_counts_add_up(logs, by) -> None:
    result = grouped(logs, by)
    assert result.logs == len(logs) == sum(group.logs for group in result.groups)
    assert sorted(file for group in result.groups for file in group.files) == sorted(one.file for one in logs)
    for group in result.groups:
        own = [one for one in logs if key_of(one, by) == group.key]
        assert group.logs == len(own)
        assert sum(group.gpus.values()) == sum(bool(one.gpu) for one in own)
        assert sum(group.codes.values()) == sum(bool(one.code) for one in own)
        assert group.example.file in group.files
        for name, spread in group.figures.items():
            values = [one.numbers[name] for one in own if name in one.numbers]
            assert (spread.least, spread.most, spread.logs) == (min(values), max(values), len(values))
        times = sorted(one.when.time for one in own if one.when.time)
        assert (group.first_seen.time, group.last_seen.time) == ((times[0], times[-1]) if times else ("", ""))


@some_times
@given(SIGHTINGS)
def test_failures_stand_first_and_the_exit_code_follows(logs) -> None:
    result = grouped(logs)
    ranks = [[1, 3, 0].index(group.exit_code) for group in result.groups]
    assert ranks == sorted(ranks)
    codes = {one.exit_code for one in logs}
    assert result.exit_code == (1 if 1 in codes else 3 if 3 in codes else 0)
    assert grouped(logs, failed=["x"]).exit_code == 2


@some_times
@given(SIGHTINGS)
def test_groups_survive_json(logs) -> None:
    result = grouped(logs)
    assert msgspec.json.decode(msgspec.json.encode(result), type=Groups) == result


def diagnosis(**changed) -> Diagnosis:
    plain = Diagnosis(
        SCHEMA_VERSION, "a.log", "SM101", "t", "shared_memory", "dtype_width", "decode", "fatal", 0.9, "v1-a", "s"
    )
    return msgspec.structs.replace(plain, **changed)


def test_a_sighting_keeps_little_and_what_counts() -> None:
    """The line that proves it from its message on; no pid among the figures; versions by package."""
    lead = "(Worker pid=1) "
    one = sighting(
        diagnosis(
            evidence=[
                Evidence("a.log", 3, 1, "wrapper", "wrapper"),
                Evidence("a.log", 7, 1, lead + "out of resource" + "x" * 9000, "root", offset=len(lead)),
            ],
            numbers={"required_bytes": 81920, "pid": 4},
            facts={
                "gpu": StatedFact(" Tesla \n T4", "a.log", 1, 1, "s"),
                "vllm_version": StatedFact("0.17.1", "a.log", 1, 1, "s"),
            },
        ),
        Moment("", "unknown"),
    )
    assert (one.line, one.text[:15], len(one.text)) == (7, "out of resource", 400)
    assert (one.numbers, one.gpu, one.versions) == ({"required_bytes": 81920}, "Tesla T4", {"vllm": "0.17.1"})


@pytest.mark.parametrize(
    ("by", "key"),
    [("fingerprint", "v1-a"), ("cause", "shared_memory/dtype_width"), ("code", "SM101"), ("resource", "shared_memory")],
)
def test_a_group_is_named_by_what_its_logs_share(by, key: str) -> None:
    assert key_of(sighting(diagnosis(), Moment("", "unknown")), by) == key


def test_the_surest_log_is_the_example() -> None:
    one, other = (
        sighting(diagnosis(file=file, confidence=confidence), Moment("", "unknown"))
        for file, confidence in (("a.log", 0.6), ("b.log", 0.9))
    )
    assert grouped([one, other]).groups[0].example.file == "b.log"
