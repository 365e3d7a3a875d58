"""False alarms: what is replaced in the logs of the fixtures, by kind, as it was read through by hand."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from oortriage.api import default_analyzer
from oortriage.report.redaction import Redactor

FIXTURES = Path(__file__).parents[3] / "fixtures"
LOGS = sorted(path for path in FIXTURES.rglob("*log*") if path.is_file())
#: A new fixture, or a new pattern, changes these figures: look at what it replaced, then change them.
SEEN = json.loads((Path(__file__).parent / "seen.json").read_text())


def read(path):
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8", "replace")


@pytest.fixture(scope="module")
def redacted():
    done = {}
    for path in LOGS:
        redactor = Redactor()
        done[path.relative_to(FIXTURES).as_posix()] = (redactor.text(read(path)), redactor.replaced)
    return done


def test_nothing_but_what_was_looked_at_is_replaced(redacted):
    found = {}
    for name, (_, replaced) in redacted.items():
        counts = Counter()
        for one in replaced:
            counts[one.kind] += one.count
        found[name] = dict(sorted(counts.items()))
    known = {name: counts for name, counts in SEEN.items() if name in redacted}
    assert {name: counts for name, counts in found.items() if name in known} == known
    # A fixture that nobody looked at yet may hold names, hosts and addresses; a token in it would be a scandal.
    assert {kind for name, counts in found.items() if name not in known for kind in counts} <= {
        "user",
        "host",
        "ip",
        "gpu",
        "mac",
    }


def test_lines_stay_lines(redacted):
    assert [name for name, (text, _) in redacted.items() if text.count("\n") != read(FIXTURES / name).count("\n")] == []


SAMPLES = {
    "host/shm-nccl-490-no-space/log.txt": [
        "<host-1>:202016:202016 [0] NCCL INFO",
        "size",
        "No space left on device (28)",
    ],
    "vllm/kv-25350-estimate-journald/log.txt": [
        "Sep 21 20:14:02 <host-1> vllm-serve[3222]:",
        "(221000)",
        "10.12 GiB KV cache",
    ],
    "launch/lmdeploy-3322-triton-invalid-argument/log.txt": ["(RayWorkerWrapper pid=7719, ip=<ip-1>)"],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(redacted, name):
    assert [part for part in SAMPLES[name] if part not in redacted[name][0]] == []


@pytest.mark.parametrize("name", [name for name in SAMPLES if (FIXTURES / name).exists()])
def test_the_verdict_is_the_same_from_the_redacted_log(redacted, name):
    before, after = (default_analyzer().text(text) for text in (read(FIXTURES / name), redacted[name][0]))
    assert (before.code, before.resource, before.cause, before.numbers) == (
        after.code,
        after.resource,
        after.cause,
        after.numbers,
    )
