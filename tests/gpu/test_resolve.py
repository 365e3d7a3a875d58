"""What a user types for a GPU: every spelling of every card, nothing guessed, nothing but UsageError."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oortriage.errors import UsageError
from oortriage.gpu.resolve import resolve, triton_target
from oortriage.gpu.specs import ARCHITECTURES, Architecture, by_capability

CARDS = [(card, one) for one in ARCHITECTURES for card in one.cards]

TYPED = [
    ("T4", "7.5"),
    ("tesla t4", "7.5"),
    ("sm_75", "7.5"),
    ("sm75", "7.5"),
    ("75", "7.5"),
    ("7.5", "7.5"),
    ("cuda:75", "7.5"),
    ("cuda:75:32", "7.5"),
    ("compute_80", "8.0"),
    ("sm_90a", "9.0"),
    ("100", "10.0"),
    ("cuda:120", "12.0"),
    ("sm_121f", "12.1"),
    ("gfx942", "gfx942"),
    ("gfx942:sramecc+:xnack-", "gfx942"),
    ("GFX90A", "gfx90a"),
    ("hip:gfx942", "gfx942"),
    ("hip:gfx1100:32", "gfx1100"),
    ("RTX 5090", "12.0"),
    ("rtx-5090", "12.0"),
    ("RTX_4090", "8.9"),
    ("rtx5090", "12.0"),
    ("4090", "8.9"),
    ("4070 ti super", "8.9"),
    ("NVIDIAGeForceRTX4090", "8.9"),
    ("RTX 3080Ti", "8.6"),
    ("NVIDIA GeForce RTX 4090 Laptop GPU", "8.9"),
    ("MI300X", "gfx942"),
    ("AMD Instinct MI250X/MI250", "gfx90a"),
    ("H100", "9.0"),
    ("NVIDIA H100 80GB HBM3", "9.0"),
    ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "8.0"),
    ("GRID A100-10C", "8.0"),
    ("NVIDIA H20-3e", "9.0"),
    ("RTX PRO 6000", "12.0"),
    ("RTX 6000 Blackwell", "12.0"),
    ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0"),
    ("A10", "8.6"),
    ("a6000", "8.6"),
    ("Quadro RTX 6000", "7.5"),
    ("RTX 6000 Turing", "7.5"),
    ("RTX 6000 Ada", "8.9"),
    ("NVIDIA RTX 6000 Ada Generation", "8.9"),
    ("2000 ada", "8.9"),
    ("RTX A2000", "8.6"),
    ("Quadro T1000", "7.5"),
    ("TITAN X (Pascal)", "6.1"),
    ("7900xtx", "gfx1100"),
    ("Radeon PRO W7900", "gfx1100"),
    ("R9700", "gfx1201"),
    ("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", "gfx1151"),
    ("orin", "8.7"),
    ("thor", "11.0"),
    ("GB10", "12.1"),
    ("hopper", "9.0"),
    ("Ada Lovelace", "8.9"),
    ("CDNA3", "gfx942"),
]


@pytest.mark.parametrize(("typed", "name"), TYPED)
def test_what_people_type_is_understood(typed: str, name: str) -> None:
    assert resolve(typed).name == name
    assert resolve(f"  {typed.upper()} ").name == name


# Family words that people leave off may leave a number that other cards share, so only whole names here.
SPELLINGS = [
    lambda card: card,
    str.lower,
    str.upper,
    lambda card: card.replace(" ", "-"),
    lambda card: card.replace(" ", "_"),
    lambda card: card.replace(" ", ""),
    lambda card: f"NVIDIA {card}",
    lambda card: f"AMD Radeon {card}",
    lambda card: f"{card} 24GB",
    lambda card: f"NVIDIA GeForce {card} Laptop GPU",
]


@pytest.mark.parametrize(("card", "one"), CARDS, ids=[card for card, _ in CARDS])
def test_every_card_is_found_in_every_spelling(card: str, one: Architecture) -> None:
    if card == "TITAN X (Pascal)":
        # The generation is what tells it from the Maxwell card, so it must stay a word of its own.
        assert resolve("nvidia titan_x pascal") is one
        return
    for spell in SPELLINGS:
        assert resolve(spell(card)) is one, spell(card)


@pytest.mark.parametrize("one", ARCHITECTURES, ids=lambda one: one.name)
def test_every_target_resolves_to_its_own_architecture(one: Architecture) -> None:
    backend, arch, warp = triton_target(one)
    assert warp == one.warp_size
    for typed in (one.name, str(arch), f"{backend}:{arch}", f"{backend}:{arch}:{warp}"):
        assert resolve(typed) is one
    if backend == "cuda":
        assert resolve(f"sm_{arch}") is resolve(f"compute_{arch}") is one


@pytest.mark.parametrize(
    ("typed", "candidates"),
    [
        ("RTX 6000", ["Quadro RTX 6000 (sm_75)", "RTX 6000 Ada (sm_89)", "RTX PRO 6000 (sm_120)"]),
        ("rtx4000", ["Quadro RTX 4000 (sm_75)", "RTX 4000 Ada (sm_89)", "RTX PRO 4000 (sm_120)"]),
        ("5000", ["Quadro RTX 5000", "RTX 5000 Ada", "RTX PRO 5000"]),
        ("A2000", ["RTX A2000 (sm_86)", "RTX 2000 Ada (sm_89)"]),
        ("TITAN X", ["TITAN X (Pascal)", "GTX TITAN X"]),
        ("A100 or H100", ["A100 (sm_80)", "H100 (sm_90)"]),
        ("ampere", ["sm_80", "sm_86", "sm_87"]),
    ],
)
def test_a_name_of_several_is_not_guessed(typed: str, candidates: list[str]) -> None:
    with pytest.raises(UsageError) as raised:
        resolve(typed)
    for candidate in candidates:
        assert candidate in str(raised.value)


@pytest.mark.parametrize(
    ("typed", "near"),
    [("RTX 4099", "RTX 4090"), ("H1000", "H100"), ("MI300Z", "MI300X"), ("A6000 Ada", "RTX 6000 Ada"), ("TK4", "T4")],
)
def test_an_unknown_name_lists_near_ones_and_the_other_forms(typed: str, near: str) -> None:
    with pytest.raises(UsageError) as raised:
        resolve(typed)
    message = str(raised.value)
    assert near in message
    assert "sm_XX" in message
    assert "gfxNNN" in message


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("", "no GPU named"),
        ("  \n", "no GPU named"),
        ("sm_35", "not in the table"),
        ("3.5", "not in the table"),
        ("gfx906", "not in the table"),
        ("cuda:gfx942", "not an architecture of cuda"),
        ("hip:75", "not an architecture of hip"),
        ("cuda:0", "a device's number"),
        ("0", "a device's number"),
        ("Quadro 6000", "unknown GPU"),
        ("GTX TITAN X", "unknown GPU"),
        ("NVIDIA", "unknown GPU"),
        ("A100 Blackwell", "unknown GPU"),
        ("\x1b[31mred", "unknown GPU '\\x1b[31mred'"),
        ("x" * 100_000, "..."),
    ],
)
def test_a_refusal_says_why(typed: str, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        resolve(typed)
    assert says in str(raised.value)
    assert len(str(raised.value)) < 500
    assert str(raised.value).isprintable()


WORDS = st.sampled_from(
    [
        *("RTX", "GTX", "RX", "PRO", "6000", "4090", "A100", "H100", "Ada", "Blackwell", "T4", "Ti", "Quadro"),
        *("sm_", "gfx", "942", ":", "cuda", "hip", "75", ".", "-", "_", "24GB", "SXM4", "NVIDIA"),
    ]
)


@given(st.text(max_size=60) | st.lists(WORDS, max_size=6).map(" ".join) | st.lists(WORDS, max_size=6).map("".join))
@example("gfx")
@example("cuda:")
@example("sm_")
@example("²²")
@example("٧٥")
def test_nothing_but_a_usage_error_is_raised(text: str) -> None:
    try:
        found = resolve(text)
    except UsageError:
        return
    assert found in ARCHITECTURES


def test_targets_are_those_of_triton() -> None:
    expected = {
        "7.5": ("cuda", 75, 32),
        "9.0": ("cuda", 90, 32),
        "12.1": ("cuda", 121, 32),
        "gfx942": ("hip", "gfx942", 64),
        "gfx1100": ("hip", "gfx1100", 32),
    }
    for name, target in expected.items():
        one = by_capability(name)
        assert one
        assert triton_target(one) == target
