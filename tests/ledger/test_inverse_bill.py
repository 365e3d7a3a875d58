"""The inverse bill: every bill adds up, and none that a brute-force search finds is missing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.ledger.inverse_bill import (
    ELEMENT_SIZES,
    HEAD_SIZES,
    ROWS,
    STAGES,
    TILES,
    Term,
    attention_bill,
    attention_bills,
    padded,
)

Settings = tuple[int, int, int, int, int]


def brute_force(
    required: int, elements: tuple[int, ...] = (4, 2, 1), heads: tuple[int, ...] = HEAD_SIZES
) -> set[Settings]:
    """Try every tile, one by one: (rows, head, tile, element, stages) of ``required`` bytes."""
    found = set()
    for element in elements:
        for head in heads:
            for tile in (16, 32, 64, 128):
                for rows in (16, 32, 64, 128):
                    for stages in (1, 2, 3, 4):
                        query = rows * head * element
                        keys = values = tile * head * element * stages
                        if query + keys + values == required:
                            found.add((rows, head, tile, element, stages))
    return found


def settings_of(bill) -> Settings:
    names = ("BLOCK_M", "head_size", "TILE", "element_bytes", "stages")
    return tuple(bill.settings[name] for name in names)


POSSIBLE = sorted(
    {
        row * head * element + 2 * head * tile * element * stage
        for element in (4, 2, 1)
        for head in HEAD_SIZES
        for tile in TILES
        for row in ROWS
        for stage in STAGES
    }
)


@pytest.mark.parametrize(
    ("rows", "head", "tile", "element", "terms", "total"),
    [
        # vllm#36802: 16x256x4 + 256x32x4 + 32x256x4
        (16, 256, 32, 4, (16_384, 32_768, 32_768), 81_920),
        (16, 256, 16, 4, (16_384, 16_384, 16_384), 49_152),
        (16, 128, 32, 4, (8_192, 16_384, 16_384), 40_960),
        (16, 128, 16, 4, (8_192, 8_192, 8_192), 24_576),
        (32, 256, 32, 4, (32_768, 32_768, 32_768), 98_304),  # more than 16 queries a KV head
    ],
)
def test_figures_compiled_for_sm_75_are_the_sum_of_their_buffers(
    rows: int, head: int, tile: int, element: int, terms: tuple[int, ...], total: int
) -> None:
    bill = attention_bill(rows, head, tile, element)
    assert tuple(term.size for term in bill.terms) == terms
    assert bill.total == total


@pytest.mark.parametrize(("head", "tile", "total"), [(256, 16, 32_768), (256, 32, 49_152)])
def test_fp16_on_sm_75_holds_the_queries_twice(head: int, tile: int, total: int) -> None:
    """The compiled figure is (2 x 16 x D + 2 x D x tile) x 2: as with 32 rows of queries."""
    assert (2 * 16 * head + 2 * head * tile) * 2 == total
    assert attention_bill(32, head, tile, 2).total == total


def test_the_bill_of_36802_comes_first() -> None:
    bills = attention_bills(81_920, element_sizes=(4,), head_sizes=(256,))
    assert str(bills[0]) == "81,920 = Q 16x256x4 + K 256x32x4 + V 32x256x4"
    assert settings_of(bills[0]) == (16, 256, 32, 4, 1)
    assert {settings_of(bill) for bill in bills} == {(16, 256, 32, 4, 1), (16, 256, 16, 4, 2)}


def test_copies_of_a_pipeline_are_written_in_front() -> None:
    bill = attention_bill(64, 128, 32, 2, stages=3)
    assert str(bill) == "65,536 = Q 64x128x2 + K 3x128x32x2 + V 3x32x128x2"


@pytest.mark.parametrize(
    "required",
    [
        49_792,
        50_432,
        66_688,
        83_200,
        84_480,
        99_584,
        116_992,
        166_400,
        231_680,
    ],
)
def test_a_figure_with_scratch_space_of_the_compiler_has_no_bill(required: int) -> None:
    """Compiled for sm_80 and later, FP32: they hold more than the buffers of a tile."""
    assert attention_bills(required) == []


@given(st.sampled_from(POSSIBLE))
def test_every_bill_adds_up_to_the_figure_and_none_is_missing(required: int) -> None:
    bills = attention_bills(required)
    assert all(sum(term.size for term in bill.terms) == required == bill.total for bill in bills)
    assert {settings_of(bill) for bill in bills} == brute_force(required)
    assert len({settings_of(bill) for bill in bills}) == len(bills)


@settings(max_examples=60)
@given(st.integers(0, 400_000))
def test_figures_that_no_tile_gives_have_no_bill(required: int) -> None:
    assert bool(attention_bills(required)) is (required in POSSIBLE)


@settings(max_examples=60)
@given(
    required=st.sampled_from(POSSIBLE),
    elements=st.sets(st.sampled_from((4, 2, 1)), min_size=1).map(tuple),
    heads=st.sets(st.sampled_from((64, 128, 256, 512)), min_size=1).map(tuple),
)
def test_what_the_log_knows_narrows_the_search(
    required: int, elements: tuple[int, ...], heads: tuple[int, ...]
) -> None:
    bills = attention_bills(required, element_sizes=elements, head_sizes=heads)
    assert {settings_of(bill) for bill in bills} == brute_force(required, elements, heads)


@given(st.sampled_from(POSSIBLE))
def test_the_plainest_bill_comes_first(required: int) -> None:
    order = [(bill.settings["stages"], bill.settings["BLOCK_M"]) for bill in attention_bills(required)]
    assert order == sorted(order)


def test_a_head_size_is_searched_at_its_padded_size_once() -> None:
    bills = attention_bills(81_920, element_sizes=(4,), head_sizes=(192, 256))
    assert {bill.settings["head_size"] for bill in bills} == {256}
    assert len(bills) == 2


@pytest.mark.parametrize(("head", "power"), [(1, 16), (16, 16), (17, 32), (64, 64), (80, 128), (96, 128), (192, 256)])
def test_head_sizes_are_padded_to_a_power_of_two(head: int, power: int) -> None:
    assert padded(head) == power


@given(st.integers(1, 4096))
def test_the_padded_size_is_the_smallest_power_that_holds_the_head(head: int) -> None:
    assert padded(head) == next(size for size in (2**n for n in range(4, 14)) if size >= head)


@given(
    rows=st.integers(1, 512),
    columns=st.integers(1, 512),
    element=st.sampled_from(sorted(set(ELEMENT_SIZES.values()))),
    copies=st.integers(1, 8),
)
def test_a_term_is_its_product(rows: int, columns: int, element: int, copies: int) -> None:
    term = Term("K", rows, columns, element, copies)
    product = 1
    for factor in str(term).split()[1].split("x"):
        product *= int(factor)
    assert term.size == product == rows * columns * element * copies


def test_element_sizes_are_those_of_the_types() -> None:
    assert ELEMENT_SIZES == {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}
