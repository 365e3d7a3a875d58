"""The table of architectures against printed limits and itself, and names as drivers print them."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.gpu.specs import ARCHITECTURES, Architecture, by_capability, by_card, by_limit

# Printed as "Hardware limit" or its like, from the knowledge file (b).
PRINTED = [
    ("6.1", 49_152),
    ("7.0", 98_304),
    ("7.5", 65_536),
    ("8.0", 166_912),
    ("8.6", 101_376),
    ("8.9", 101_376),
    ("9.0", 232_448),
    ("10.0", 232_448),
    ("12.0", 101_376),
    ("12.1", 101_376),
    ("gfx942", 65_536),
    ("gfx1031", 65_536),
    ("gfx1100", 65_536),
    ("gfx1201", 65_536),
    ("gfx950", 163_840),
]


@pytest.mark.parametrize(("name", "limit"), PRINTED)
def test_the_table_has_the_limit_that_logs_print(name: str, limit: int) -> None:
    architecture = by_capability(name)
    assert architecture
    assert architecture.shared_per_block == limit
    assert architecture in by_limit(limit)


@pytest.mark.parametrize(
    ("limit", "names"),
    [
        (101_376, {"8.6", "8.9", "12.0", "12.1"}),
        (98_304, {"7.0", "7.2"}),
        (163_840, {"gfx950"}),
        (232_448, {"9.0", "10.0", "10.3", "11.0"}),
        (166_913, set()),
    ],
)
def test_a_limit_names_every_architecture_that_has_it(limit: int, names: set[str]) -> None:
    assert {one.name for one in by_limit(limit)} == names


def test_64_kib_is_turing_and_amd_alike() -> None:
    vendors = {one.vendor for one in by_limit(65_536)}
    assert vendors == {"nvidia", "amd"}


every = pytest.mark.parametrize("one", ARCHITECTURES, ids=lambda one: one.name)


@every
def test_every_figure_has_a_source_and_a_day(one: Architecture) -> None:
    fields = set(Architecture.__struct_fields__)
    assert one.source.startswith("https://")
    assert dt.date.fromisoformat(one.checked) >= dt.date(2026, 11, 30)
    assert one.vendor in {"nvidia", "amd"}
    assert {figure for figure, _ in one.elsewhere} <= fields
    assert len(dict(one.elsewhere)) == len(one.elsewhere)
    for figure in fields:
        assert one.source_of(figure).strip()


@every
def test_a_figure_says_its_own_source_where_it_has_one(one: Architecture) -> None:
    assert one.source_of("shared_unit") == dict(one.elsewhere)["shared_unit"]
    assert one.source_of("vendor") == one.source


@every
def test_figures_are_consistent(one: Architecture) -> None:
    assert 0 < one.shared_static <= one.shared_per_block <= one.shared_per_multiprocessor
    for size in (one.shared_static, one.shared_per_block, one.shared_per_multiprocessor):
        assert size % 1024 == 0
    # A block that asks for all it may have, and what the driver takes of it, must fit.
    assert one.shared_per_block + one.shared_reserved <= one.shared_per_multiprocessor
    assert (one.shared_per_block + one.shared_reserved) % one.shared_unit == 0
    assert one.max_warps_per_multiprocessor * one.warp_size == one.max_threads_per_multiprocessor
    assert one.max_threads_per_block <= one.max_threads_per_multiprocessor
    assert one.max_warps_per_multiprocessor % one.partitions == 0
    assert one.registers_per_multiprocessor % (one.partitions * one.warp_size) == 0
    assert one.register_unit % one.warp_size == 0
    if one.vendor == "nvidia":
        # A static array may take 48 KiB on every NVIDIA architecture, newer ones opt in to more.
        assert one.shared_static == 49_152
        assert one.registers_per_block == one.registers_per_multiprocessor == 65_536
        assert one.warp_size == 32
        assert re.fullmatch(r"\d{1,2}\.\d", one.name)
        assert (one.shared_reserved == 1024) == (float(one.name) >= 8)
    else:
        assert one.shared_static == one.shared_per_block
        assert one.registers_per_block is None
        assert one.warp_size == (64 if one.generation.startswith("CDNA") else 32)
        assert re.fullmatch(r"gfx[0-9a-f]{3,4}", one.name)


def test_every_architecture_asked_for_is_there() -> None:
    nvidia = [one.name for one in ARCHITECTURES if one.vendor == "nvidia"]
    assert nvidia == [
        *("6.0", "6.1", "7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.9"),
        *("9.0", "10.0", "10.3", "11.0", "12.0", "12.1"),
    ]
    amd = [one.name for one in ARCHITECTURES if one.vendor == "amd"]
    assert amd == [
        *("gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1031", "gfx1032"),
        *("gfx1100", "gfx1101", "gfx1102", "gfx1150", "gfx1151", "gfx1200", "gfx1201"),
    ]


# Of the table in the CUDA programming guide, and of ROCm's and LLVM's: shared memory, threads and blocks of
# one multiprocessor, registers of one.
RESIDENT = [
    ("6.1", 98_304, 2048, 32, 65_536),
    ("7.0", 98_304, 2048, 32, 65_536),
    ("7.5", 65_536, 1024, 16, 65_536),
    ("8.0", 167_936, 2048, 32, 65_536),
    ("8.6", 102_400, 1536, 16, 65_536),
    ("8.9", 102_400, 1536, 24, 65_536),
    ("9.0", 233_472, 2048, 32, 65_536),
    ("11.0", 233_472, 1536, 24, 65_536),
    ("12.0", 102_400, 1536, 24, 65_536),
    ("gfx908", 65_536, 2560, 16, 65_536),
    ("gfx942", 65_536, 2048, 16, 131_072),
    ("gfx950", 163_840, 2048, 16, 131_072),
    ("gfx1031", 131_072, 2048, 32, 131_072),
    ("gfx1102", 131_072, 2048, 32, 131_072),
    ("gfx1201", 131_072, 2048, 32, 196_608),
]


@pytest.mark.parametrize(("name", "shared", "threads", "blocks", "registers"), RESIDENT)
def test_a_multiprocessor_has_what_the_makers_tables_say(
    name: str, shared: int, threads: int, blocks: int, registers: int
) -> None:
    one = by_capability(name)
    assert one
    assert one.shared_per_multiprocessor == shared
    assert one.max_threads_per_multiprocessor == threads
    assert one.max_blocks_per_multiprocessor == blocks
    assert one.registers_per_multiprocessor == registers


def test_names_and_cards_are_unique() -> None:
    names = [one.name for one in ARCHITECTURES]
    cards = [card for one in ARCHITECTURES for card in one.cards]
    assert len(set(names)) == len(names)
    assert len(set(cards)) == len(cards)


# Names as nvidia-smi, torch and rocm-smi print them; many hold the name of an older card.
CARDS = [
    ("Tesla P100-PCIE-16GB", "6.0"),
    ("NVIDIA GeForce GTX 1050 Ti", "6.1"),
    ("Tesla P40", "6.1"),
    ("Tesla V100-SXM2-16GB", "7.0"),
    ("NVIDIA TITAN V", "7.0"),
    ("Tesla T4", "7.5"),
    ("NVIDIA T4G", "7.5"),
    ("NVIDIA GeForce RTX 2080 Ti", "7.5"),
    ("NVIDIA TITAN RTX", "7.5"),
    ("Quadro RTX 6000", "7.5"),
    ("Quadro RTX 5000 with Max-Q Design", "7.5"),
    ("NVIDIA A100-SXM4-80GB", "8.0"),
    ("NVIDIA A100 80GB PCIe", "8.0"),
    ("GRID A100-10C", "8.0"),
    ("NVIDIA A30", "8.0"),
    ("NVIDIA A10", "8.6"),
    ("NVIDIA A10G", "8.6"),
    ("NVIDIA A16", "8.6"),
    ("NVIDIA A2", "8.6"),
    ("NVIDIA RTX A2000 12GB", "8.6"),
    ("NVIDIA RTX A6000", "8.6"),
    ("NVIDIA GeForce RTX 3090", "8.6"),
    ("NVIDIA_GeForce_RTX_3090", "8.6"),
    ("NVIDIA GeForce RTX 3050 Laptop GPU", "8.6"),
    ("NVIDIA Jetson AGX Orin", "8.7"),
    ("NVIDIA L4", "8.9"),
    ("NVIDIA L40", "8.9"),
    ("NVIDIA L40S", "8.9"),
    ("NVIDIA GeForce RTX 4090 D", "8.9"),
    ("NVIDIA RTX 6000 Ada Generation", "8.9"),
    ("NVIDIA RTX 5000 Ada Generation", "8.9"),
    ("NVIDIA RTX 4000 Ada Generation", "8.9"),
    ("NVIDIA H100 80GB HBM3", "9.0"),
    ("NVIDIA H200", "9.0"),
    ("NVIDIA H20-3e", "9.0"),
    ("NVIDIA GH200 480GB", "9.0"),
    ("NVIDIA B200", "10.0"),
    ("NVIDIA GB200", "10.0"),
    ("NVIDIA B300", "10.3"),
    ("NVIDIA GeForce RTX 5090", "12.0"),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0"),
    ("NVIDIA RTX PRO 4000 Blackwell", "12.0"),
    ("NVIDIA GB10", "12.1"),
    ("AMD Instinct MI250X/MI250", "gfx90a"),
    ("AMD Instinct MI300X", "gfx942"),
    ("AMD Instinct MI308X", "gfx942"),
    ("AMD Instinct MI355X", "gfx950"),
    ("AMD Radeon RX 6700 XT", "gfx1031"),
    ("AMD Radeon RX 7900 XTX", "gfx1100"),
    ("AMD Radeon AI PRO R9700", "gfx1201"),
    # Names that hold a shorter one of another chip.
    ("NVIDIA GeForce RTX 2050", "8.6"),
    ("NVIDIA RTX 2000 Ada Generation", "8.9"),
    ("NVIDIA RTX 4000 SFF Ada Generation", "8.9"),
    ("NVIDIA RTX PRO 2000 Blackwell", "12.0"),
    ("NVIDIA GeForce MX570", "8.6"),
    ("Xavier", "7.2"),
    ("NVIDIA Thor", "11.0"),
    ("AMD Radeon RX 6800M", "gfx1031"),
    ("AMD Radeon RX 6800S", "gfx1032"),
    ("AMD Radeon RX 7700S", "gfx1102"),
    ("AMD Radeon RX 7700 XT", "gfx1101"),
    ("AMD Radeon PRO W7800", "gfx1100"),
    ("AMD Radeon RX 9060 XT", "gfx1200"),
    ("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", "gfx1151"),
    ("AMD Radeon 890M Graphics", "gfx1150"),
    ("AMD Instinct MI100", "gfx908"),
]


@pytest.mark.parametrize(("card", "name"), CARDS)
def test_a_printed_card_has_its_architecture(card: str, name: str) -> None:
    architecture = by_card(card)
    assert architecture
    assert architecture.name == name


@pytest.mark.parametrize(
    "card",
    [
        *("", "NVIDIA", "Tesla K80", "Quadro M6000", "NVIDIA A1000000", "RTX 30900", "Intel Arc A770"),
        *("GeForce GTX TITAN X", "Quadro 6000", "AMD Radeon Graphics"),
    ],
)
def test_an_unknown_card_has_none(card: str) -> None:
    assert by_card(card) is None


@pytest.mark.parametrize(("card", "one"), [(card, one) for one in ARCHITECTURES for card in one.cards])
def test_every_card_of_the_table_is_found_under_its_own_architecture(card: str, one: Architecture) -> None:
    for printed in (card, f"NVIDIA {card}", card.upper(), card.replace(" ", "_"), f"{card} 24GB"):
        assert by_card(printed) is one


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("7.5", "7.5"),
        (" 8.6 ", "8.6"),
        ("75", "7.5"),
        ("120", "12.0"),
        ("sm_75", "7.5"),
        ("sm75", "7.5"),
        ("sm_90a", "9.0"),
        ("SM_90A", "9.0"),
        ("sm_121f", "12.1"),
        ("sm_100", "10.0"),
        # Thor's number up to CUDA 12.9, and since.
        ("sm_101a", "11.0"),
        ("10.1", "11.0"),
        ("sm_110", "11.0"),
        ("gfx942", "gfx942"),
        ("gfx90a", "gfx90a"),
        ("GFX90A", "gfx90a"),
        ("gfx942:sramecc+:xnack-", "gfx942"),
    ],
)
def test_a_capability_is_understood_however_it_is_written(written: str, name: str) -> None:
    architecture = by_capability(written)
    assert architecture
    assert architecture.name == name


@pytest.mark.parametrize("written", ["", "9", "abc", "3.5", "sm_35", "gfx", "gfx9999", "99.9"])
def test_an_unknown_capability_has_none(written: str) -> None:
    assert by_capability(written) is None


@given(st.text(max_size=40))
def test_no_text_breaks_a_look_up(text: str) -> None:
    for found in (by_card(text), by_capability(text)):
        assert found is None or found in ARCHITECTURES
