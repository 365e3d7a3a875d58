"""One redactor: the same placeholder everywhere, nothing twice, nothing raised."""

import dataclasses
import enum
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.report.redaction import Redactor, Replacement, confirm_unredacted
from oortriage.report.redaction.families import ALL
from oortriage.report.redaction.pattern import Pattern
from oortriage.triage.diagnosis import Evidence
from tests.report.redaction.planted import planted

LINES = [line for _, line in planted()]
PIECES = (
    "password=", "token: ", "'", '"', "\\", "://", "@", "/home/", ":", "<token-1>", "<prompt-1 (3 characters)>", "-----BEGIN RSA PRIVATE KEY-----",
    "messages: [", "]", "host: ", "10.0.0.1", "fe80::1:2:3", "\n", " ", "a1b2c3d4e5f6", "--api-key ", "\U000f0001", "\ufffd", "<", ">", "user@h1:~",
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=20).map("".join),
    st.lists(st.integers(0, len(LINES) - 1), max_size=6).map(lambda some: "\n".join(LINES[one] for one in some)),
)


@settings(deadline=None, max_examples=300)
@given(TEXTS)
def test_twice_is_once(text):
    redactor = Redactor()
    once = redactor.text(text)
    assert redactor.text(once) == once
    assert Redactor().text(once) == once
    assert once.count("\n") == text.count("\n")


SCALARS = TEXTS | st.integers() | st.none() | st.binary(max_size=20)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner), max_leaves=8
)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_structures_never_raise_and_keep_their_shape(data):
    value = data.draw(VALUES)
    done = Redactor().struct(value)
    assert type(done) is type(value)
    if isinstance(value, list):
        assert len(done) == len(value)


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(planted()), st.text(alphabet="abc \n", max_size=40))
def test_the_same_secret_gets_the_same_placeholder(pair, between):
    _, line = pair
    redactor = Redactor()
    first = redactor.text(line)
    redactor.text(between)
    assert redactor.text(line) == first


def test_counts_tell_no_secret():
    redactor = Redactor()
    redactor.text("INFO: 10.1.2.3:80 -\nINFO: 10.1.2.3:81 -\nINFO: 10.9.9.9:80 -")
    redactor.text("INFO: 10.1.2.3:82 - /home/jane/x")
    assert redactor.replaced == [
        Replacement(kind="ip", placeholder="<ip-1>", count=3),
        Replacement(kind="ip", placeholder="<ip-2>", count=1),
        Replacement(kind="user", placeholder="<user-1>", count=1),
    ]
    redactor.text("seen <ip-1> before")  # what stood there already is not counted
    assert redactor.replaced[0].count == 3


def test_a_number_in_the_log_is_not_given_to_another_secret():
    assert Redactor().text("<ip-1> and ip=10.1.2.3") == "<ip-1> and ip=<ip-2>"


def test_a_secret_known_from_one_place_goes_everywhere():
    key = "a1b2c3d4e5f6" * 3
    assert Redactor().text(f"got {key} first\nWANDB_API_KEY={key}") == "got <token-1> first\nWANDB_API_KEY=<token-1>"
    assert Redactor().struct([f"got {key} first", {"WANDB_API_KEY": key}]) == [
        "got <token-1> first",
        {"WANDB_API_KEY": "<token-1>"},
    ]


class Colour(enum.Enum):
    RED = "/home/jane"


class Named(NamedTuple):
    path: str
    count: int


@dataclasses.dataclass(frozen=True)
class Plain:
    path: str


class Inner(msgspec.Struct, frozen=True, tag="inner"):
    path: str
    size: int = 3


class Outer(msgspec.Struct, frozen=True):
    resource: str
    inner: Inner
    by_ip: dict[str, list[str]]
    rest: tuple[object, ...]


def test_structs():
    given_ = Outer(
        resource="shared_memory",
        inner=Inner(path="/home/jane/x"),
        by_ip={"10.0.0.7": ["/home/jane/y", "/home/omar/y"]},
        rest=(
            Colour.RED,
            4,
            1.5,
            None,
            Named("/home/omar", 2),
            Plain("/home/jane"),
            Path("/home/jane/z"),
            b"/home/jane",
        ),
    )
    done = Redactor().struct(given_)
    assert done == Outer(
        resource="shared_memory",
        inner=Inner(path="/home/<user-1>/x"),
        by_ip={"<ip-1>": ["/home/<user-1>/y", "/home/<user-2>/y"]},
        rest=(
            Colour.RED,
            4,
            1.5,
            None,
            Named("/home/<user-2>", 2),
            Plain("/home/<user-1>"),
            Path("/home/<user-1>/z"),
            b"/home/<user-1>",
        ),
    )
    assert given_.inner.path == "/home/jane/x"


def test_a_name_tells_what_its_value_is():
    done = Redactor().struct(
        {"HF_TOKEN": "abcdefgh", "hostname": "thor", "USER": "jane", "triton": "3.4.0", "max_tokens": "16"}
    )
    assert done == {
        "HF_TOKEN": "<token-1>",
        "hostname": "<host-1>",
        "USER": "<user-1>",
        "triton": "3.4.0",
        "max_tokens": "16",
    }
    assert Redactor().struct(["vllm", "serve", "--api-key", "abc123"]) == ["vllm", "serve", "--api-key", "<token-1>"]


def test_a_message_keeps_its_place_in_the_line():
    text = "INFO:     10.20.30.40:5000 /home/jane/a.py torch.OutOfMemoryError: CUDA out of memory in /home/jane/b.py"
    evidence = Evidence(
        file="x", line=1, column=1, text=text, role="root", offset=text.index("torch."), stream="thor/rank=0 pid=7"
    )
    done = Redactor().struct(evidence)
    assert done.text[done.offset :].startswith("torch.OutOfMemoryError")
    assert done.stream == "<host-1>/rank=0 pid=7"


def test_deep_and_odd_values_do_not_raise():
    deep: list = ["/home/jane"]
    for _ in range(5000):
        deep = [deep]
    assert "jane" not in repr(Redactor().struct(deep))
    assert Redactor().text("\ud800 password=\udfff\udfff\udfff1").startswith("\ud800 password=")
    assert Redactor().struct(object) is object


def test_what_cannot_be_read_in_time_does_not_leave():
    def find(text):
        if "aaaa" in text:
            raise TimeoutError
        return iter(())

    slow = Pattern(name="slow", kind="token", expression="", reason="", source="", find=find)
    redactor = Redactor((slow,))
    assert redactor.text(f"first\n{'a' * 5000}\nlast") == "first\n<withheld-1 (5000 characters)>\nlast"


@pytest.mark.parametrize(
    "piece",
    ["a", "token host key ", "@a", "a.", ":ab", "/Users/", "'", '"messages": ["', "<", "-----BEGIN PRIVATE KEY-----"],
)
def test_a_long_line_takes_no_more_than_its_length(piece):
    started = time.perf_counter()
    Redactor().text(piece * (1_000_000 // len(piece)))
    assert time.perf_counter() - started < 10  # a second, and room for a busy machine


def test_patterns_are_told_apart_and_explained():
    assert len({one.name for one in ALL}) == len(ALL)
    assert all(one.reason and one.source for one in ALL)
    assert all(anchor == anchor.lower() for one in ALL for anchor in one.anchors)
    assert all((one.find is None) != (one.expression == "") for one in ALL)


@pytest.mark.parametrize(
    ("word", "means"),
    [("publish", True), (" publish\n", True), ("Publish", False), ("y", False), ("", False), ("yes", False)],
)
def test_the_word(word, means):
    assert confirm_unredacted(word) is means
