"""The exact ledger: every byte of the total is counted once, with or without a buffer."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.ledger.allocation import Buffer, Ledger, Role, covered, overlaps

ROLES = get_args(Role)


def buffer(offset: int, size: int, role: Role = "operand", name: str = "K") -> Buffer:
    return Buffer(name, role, "ttg.local_alloc", (size,), "i8", size, offset)


BUFFERS = st.lists(st.builds(buffer, st.integers(0, 200), st.integers(0, 80), st.sampled_from(ROLES)), max_size=12).map(
    tuple
)


def test_the_bill_of_the_public_report() -> None:
    ledger = Ledger(
        (
            buffer(0, 32_768),
            buffer(32_768, 32_768, name="V"),
            buffer(65_536, 16_384, name="Q"),
            buffer(0, 2_048, name="P"),
            buffer(0, 8_192, "scratch"),
        ),
        81_920,
    )
    assert (ledger.residual, ledger.gaps) == (0, 0)
    assert ledger.by_role == {"operand": 81_920, "scratch": 0}


def test_gaps_and_residual_are_shown() -> None:
    ledger = Ledger((buffer(0, 10), buffer(16, 8, "barrier"), buffer(20, 10, "scratch")), 64)
    assert ledger.residual == 34
    assert ledger.gaps == 40
    assert ledger.by_role == {"operand": 10, "scratch": 10, "barrier": 4}


def test_an_empty_ledger() -> None:
    assert (Ledger((), 0).residual, Ledger((), 0).gaps, Ledger((), 0).by_role) == (0, 0, {})
    assert (Ledger((), 128).residual, Ledger((), 128).gaps) == (128, 128)


def test_a_buffer_beyond_the_total_is_not_hidden() -> None:
    assert Ledger((buffer(0, 32),), 16).residual == -16


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ((0, 8), (8, 8), False),
        ((0, 8), (7, 8), True),
        ((0, 8), (2, 2), True),
        ((4, 0), (0, 8), True),
        ((8, 0), (0, 8), False),
    ],
)
def test_neighbours_do_not_share(one: tuple[int, int], other: tuple[int, int], shared: bool) -> None:
    assert overlaps(buffer(*one), buffer(*other)) is shared
    assert overlaps(buffer(*other), buffer(*one)) is shared


@given(BUFFERS)
def test_every_byte_is_covered_once(buffers: tuple[Buffer, ...]) -> None:
    assert covered(buffers) == len({byte for one in buffers for byte in range(one.offset, one.end)})


@given(BUFFERS, st.integers(0, 100))
def test_roles_and_gaps_add_up(buffers: tuple[Buffer, ...], behind: int) -> None:
    ledger = Ledger(buffers, max((one.end for one in buffers), default=0) + behind)
    assert ledger.residual == behind
    assert sum(ledger.by_role.values()) + ledger.gaps == ledger.total_bytes
    assert set(ledger.by_role) == {one.role for one in buffers}
    assert all(size >= 0 for size in ledger.by_role.values())


@given(BUFFERS, st.integers(0, 1 << 20))
def test_it_survives_the_way_between_processes(buffers: tuple[Buffer, ...], total: int) -> None:
    ledger = Ledger(buffers, total)
    assert msgspec.json.decode(msgspec.json.encode(ledger), type=Ledger) == ledger
