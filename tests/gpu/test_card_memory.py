"""A card's memory by its name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.gpu.card_memory import CARDS, card_memories
from oortriage.gpu.specs import by_card

GIB = 1 << 30


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("NVIDIA H200", 139.80),
        ("Tesla T4", 14.56),
        ("NVIDIA L4", 22.05),
        ("L40S", 44.42),
        ("NVIDIA A100-SXM4-80GB", 79.15),
        ("A100 80GB PCIe", 79.15),
        ("NVIDIA A100-SXM4-40GB", 39.4),
        ("NVIDIA H100 80GB HBM3", 79.22),
        ("NVIDIA GeForce RTX 3090", 23.68),
        ("NVIDIA GeForce RTX 4090", 23.68),
        ("rtx-5090", 31.37),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", 15.76),
        ("Tesla V100-SXM2-16GB", 15.76),
        ("NVIDIA RTX 6000 Ada Generation", 44.4),
        ("NVIDIA GB10", 121.69),
    ],
)
def test_by_name(name: str, gib: float) -> None:
    (found,) = card_memories(name)
    assert found.size / GIB == pytest.approx(gib, abs=0.01)
    assert found.low <= found.size <= found.high


@pytest.mark.parametrize("name", ["A100", "V100", "RTX 3080"])
def test_a_card_of_several_sizes_is_not_guessed(name: str) -> None:
    found = card_memories(name)
    if name == "A100":
        assert [card.name for card in found] == ["A100 80GB", "A100 40GB"]
    assert len(found) == 2


@pytest.mark.parametrize(
    "name",
    ["", "card", "RTX 4090 D", "GeForce RTX 4090 Laptop GPU", "H2000", "A1000", "T400", "A100-SXM4-64GB", "L400"],
)
def test_another_card_is_not_taken_for_it(name: str) -> None:
    assert card_memories(name) == ()


def test_every_card_is_found_by_its_own_name_and_known_as_an_architecture() -> None:
    for card in CARDS:
        assert card in card_memories(card.name)
        assert by_card(card.name.split(" 12GB")[0]) is not None, card.name
        assert card.source.startswith(("https://", "the maker"))


@given(st.text(max_size=200))
def test_any_name_is_an_answer(name: str) -> None:
    assert all(card.size > 0 for card in card_memories(name))
