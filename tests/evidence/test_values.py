"""Numbers and sizes as logs write them, against texts made by an independent writer."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.evidence.values import CONVERTERS, format_bytes, parse_number, parse_size

#: What each unit is worth, as a power of 1024, spelt as the programs in the rules spell it.
POWERS = {
    "B": 0,
    "bytes": 0,
    "byte": 0,
    "K": 1,
    "KB": 1,
    "KiB": 1,
    "kB": 1,
    "M": 2,
    "MB": 2,
    "MiB": 2,
    "G": 3,
    "GB": 3,
    "GiB": 3,
    "T": 4,
    "TB": 4,
    "TiB": 4,
}

whole = st.integers(min_value=0, max_value=2**53)
signs = st.sampled_from(["", "-", "+"])


def thousands(digits: str, separator: str) -> str:
    """Group digits in threes from the right, written out by hand."""
    groups = []
    while digits:
        groups.insert(0, digits[-3:])
        digits = digits[:-3]
    return separator.join(groups)


def signed(sign: str, value: Decimal) -> float:
    return float(-value if sign == "-" else value)


@given(sign=signs, number=whole)
def test_plain_whole_number(sign: str, number: int) -> None:
    assert parse_number(f"{sign}{number}") == signed(sign, Decimal(number))


@given(sign=signs, number=whole, decimals=st.sampled_from(["", ".0", ".25", ".5", ".1234"]))
def test_thousands_commas(sign: str, number: int, decimals: str) -> None:
    text = f"{sign}{thousands(str(number), ',')}{decimals}"
    assert parse_number(text) == signed(sign, Decimal(f"{number}{decimals}"))


@given(number=st.integers(min_value=10**6, max_value=2**53), decimals=st.sampled_from(["", "5", "25"]))
def test_thousands_dots_from_a_million_on(number: int, decimals: str) -> None:
    text = thousands(str(number), ".") + (f",{decimals}" if decimals else "")
    assert parse_number(text) == float(Decimal(f"{number}.{decimals or 0}"))


@given(
    number=whole,
    decimals=st.text("0123456789", min_size=1, max_size=6).filter(lambda text: len(text) != 3),
)
def test_decimal_comma_unless_it_groups_three_digits(number: int, decimals: str) -> None:
    assert parse_number(f"{number},{decimals}") == float(Decimal(f"{number}.{decimals}"))


@given(number=st.integers(min_value=1000, max_value=10**9), decimals=st.text("0123456789", min_size=3, max_size=3))
def test_comma_after_four_or_more_digits_is_decimal(number: int, decimals: str) -> None:
    """No one groups ``1234,567``: a group in front of a comma has three digits at most."""
    assert parse_number(f"{number},{decimals}") == float(Decimal(f"{number}.{decimals}"))


@given(number=st.integers(min_value=1000, max_value=999_999))
def test_three_digits_after_one_comma_are_a_group(number: int) -> None:
    assert parse_number(f"{number // 1000},{number % 1000:03d}") == number


@given(number=whole, separator=st.sampled_from(["_", "\u00a0", "\u202f"]))
def test_underscores_and_hard_spaces_group(number: int, separator: str) -> None:
    assert parse_number(thousands(str(number), separator)) == number


@given(number=st.integers(0, 10**6), decimals=st.text("0123456789", min_size=1, max_size=4))
def test_decimal_point_is_never_a_group(number: int, decimals: str) -> None:
    assert parse_number(f"{number}.{decimals}") == float(Decimal(f"{number}.{decimals}"))


@given(number=st.integers(1, 999), power=st.integers(-3, 12), letter=st.sampled_from("eE"))
def test_exponents(number: int, power: int, letter: str) -> None:
    assert parse_number(f"{number}{letter}{power:+d}") == float(Decimal(number).scaleb(power))


@given(number=whole, tail=st.sampled_from([".", ",", ".,", ",,"]), spaces=st.sampled_from(["", " ", "\t ", "\n"]))
def test_punctuation_of_the_sentence_is_no_part_of_the_number(number: int, tail: str, spaces: str) -> None:
    assert parse_number(f"{spaces}{number}{tail}{spaces}") == number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("102,400", 102_400.0),
        ("1,024", 1024.0),
        ("1900,00", 1900.0),
        ("12,5", 12.5),
        ("65536.", 65536.0),
        ("1,536.50", 1536.5),
        ("1.073.741.824", 1_073_741_824.0),
        ("23.65", 23.65),
    ],
)
def test_forms_seen_in_logs(text: str, value: float) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "   ", "GiB", "-", "--5", "1.2.3", "1,23,456", "1,024,00", "12 34", "0x10", "1e", "e5", "5 GiB", "None"],
)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_number(text)


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-inf", "infinity", "1e999"])
def test_what_has_no_finite_value_is_refused(text: str) -> None:
    """JSON has no word for it, and no log means it."""
    with pytest.raises((ValueError, OverflowError)):
        parse_number(text)


@given(
    number=st.integers(0, 2**31),
    hundredths=st.integers(0, 99),
    unit=st.sampled_from(sorted(POWERS)),
    gap=st.sampled_from(["", " ", "  ", "\u00a0", "\n"]),
    commas=st.booleans(),
)
def test_size_is_number_times_power_of_1024(number: int, hundredths: int, unit: str, gap: str, commas: bool) -> None:
    digits = thousands(str(number), ",") if commas else str(number)
    exact = (Fraction(number) + Fraction(hundredths, 100)) * 1024 ** POWERS[unit]
    got = parse_size(f"{digits}.{hundredths:02d}{gap}{unit}")
    # Half a byte of rounding, and what a double cannot hold.
    assert abs(got - exact) <= Fraction(1, 2) + exact / 2**51


@given(
    number=st.integers(0, 2**20), unit=st.sampled_from(sorted(POWERS)), shift=st.sampled_from([str.lower, str.upper])
)
def test_unit_case_does_not_matter(number: int, unit: str, shift) -> None:
    assert parse_size(f"{number}{shift(unit)}") == number * 1024 ** POWERS[unit]


@given(number=st.integers(0, 2**20), tenth=st.integers(0, 9), unit=st.sampled_from(["MiB", "GB", "G"]))
def test_size_with_decimal_comma(number: int, tenth: int, unit: str) -> None:
    exact = (Fraction(number) + Fraction(tenth, 10)) * 1024 ** POWERS[unit]
    assert abs(parse_size(f"{number},{tenth} {unit}") - exact) <= Fraction(1, 2) + exact / 2**51


@given(number=st.integers(0, 2**30), unit=st.sampled_from(sorted(POWERS)))
def test_default_unit_counts_only_where_none_is_written(number: int, unit: str) -> None:
    assert parse_size(f"{number}", "MiB") == number * 2**20
    assert parse_size(f"{number} {unit}", "TiB") == number * 1024 ** POWERS[unit]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.16 GiB", 1_245_540_516),  # 1.16 * 1,073,741,824 = 1,245,540,515.84
        ("98.000244MB", 102_760_704),  # 98.000244 * 1,048,576 = 102,760,703.86
        ("65.05M", 68_209_869),  # 65.05 * 1,048,576 = 68,209,868.8
        ("81920", 81_920),
        ("227KB", 232_448),
        ("163 KiB", 166_912),
        ("15.56 GiB", 16_707_422_781),  # 15.56 * 1,073,741,824 = 16,707,422,781.44
    ],
)
def test_sizes_seen_in_logs(text: str, value: int) -> None:
    assert parse_size(text) == value


@pytest.mark.parametrize(
    "text", ["", "GiB", "12 tokens", "12 GiB free", "1.2.3 MB", "x12", "12 %", "7 blocks", "- MiB"]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_size(text)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("bytes", "102,400", 102_400),
        ("bytes", "65536.0", 65_536),
        ("size", "2 GiB", 2_147_483_648),
        ("hex", "0x1f", 31),
        ("hex", "1F", 31),
        ("bits", "524288", 65_536),
        ("kib", "64", 65_536),
        ("mib", "16,384", 17_179_869_184),
        ("gib", "1.5", 1_610_612_736),
        ("int", "1,024", 1024),
        ("float", "0.95", 0.95),
        ("text", "  fused_moe_kernel \n", "fused_moe_kernel"),
    ],
)
def test_capture_types(kind: str, text: str, value: float | str) -> None:
    got = CONVERTERS[kind](text)
    assert got == value
    assert type(got) is type(value)


def test_no_capture_type_is_left_untested() -> None:
    assert set(CONVERTERS) == {"bytes", "size", "hex", "bits", "kib", "mib", "gib", "int", "float", "text"}


@given(number=st.integers(0, 2**64))
def test_whole_bytes_are_exact_to_the_last_digit(number: int) -> None:
    """Absurd requests print 2**64 and its neighbours; the figure is cited to the byte."""
    assert CONVERTERS["bytes"](str(number)) == number


@given(number=st.integers(0, 2**64), kind=st.sampled_from(["size", "int", "kib", "mib", "gib"]), sign=signs)
def test_whole_figures_of_every_type_are_exact(number: int, kind: str, sign: str) -> None:
    factor = {"kib": 1024, "mib": 1024**2, "gib": 1024**3}.get(kind, 1)
    assert CONVERTERS[kind](f"{sign}{number:,}") == (-number if sign == "-" else number) * factor
    assert parse_size(f"{number} GiB") == number * 1024**3


@pytest.mark.parametrize("kind", ["bytes", "size", "int", "gib", "bits"])
@pytest.mark.parametrize("text", ["inf", "nan", "1e999", "9" * 400])
def test_a_figure_without_end_is_refused_by_every_type(kind: str, text: str) -> None:
    with pytest.raises(ValueError):
        CONVERTERS[kind](text)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (65_536, "65,536 B"),
        (1_048_575, "1,048,575 B"),
        (1_048_576, "1.00 MiB"),
        (536_870_912, "512.00 MiB"),
        (1_073_741_824, "1.00 GiB"),
        (7_110_000_000, "6.62 GiB"),  # 7.11e9 / 2**30 = 6.6217
        (1_649_267_441_664, "1.50 TiB"),
        (2**60, "1,048,576.00 TiB"),
        (-65_536, "-65,536 B"),
        (-2_147_483_648, "-2.00 GiB"),
    ],
)
def test_bytes_for_a_person(count: int, text: str) -> None:
    assert format_bytes(count) == text


@given(st.integers(-(2**62), 2**62))
def test_what_is_written_for_a_person_reads_back(count: int) -> None:
    text = format_bytes(count)
    unit = text.rsplit(" ", 1)[1]
    step = 0 if unit == "B" else 1024 ** POWERS[unit] / 200
    assert abs(parse_size(text) - count) <= step + 1 + abs(count) / 2**50
