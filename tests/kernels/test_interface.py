"""A recipe's parameters: what is assumed is said, and nothing but a value of the right kind gets in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.errors import UsageError
from oortriage.kernels._interface import ELEMENT_TYPES, Parameter, Recipe, element_type

RECIPE = Recipe(
    name="made.up",
    title="A recipe",
    call=lambda _library, _shape: None,
    parameters=(
        Parameter("dtype", "float16", "element type"),
        Parameter("kv_dtype", "auto", "element type of the cache"),
        Parameter("head_size", 128, "elements a head"),
        Parameter("window", 0, "tokens"),
        Parameter("v_head_size", 512, "elements of a value, 0 for those of a key", tries=(512, 0)),
        Parameter("softcap", 0.0, "cap"),
        Parameter("mla", False, "latent"),
        Parameter("phase", "prefill", "what the batch does", choices=("prefill", "decode")),
    ),
)


def shape_of(**given_: Any) -> dict[str, Any]:
    return RECIPE.shape(given_)[0]


def test_what_is_not_given_is_assumed_and_said() -> None:
    shape, assumed = RECIPE.shape({"head_size": 256, "dtype": None})
    assert (shape["head_size"], shape["dtype"]) == (256, "float16")
    assert "dtype = float16 (element type)" in assumed
    assert not [one for one in assumed if one.startswith("head_size")]
    assert len(assumed) == len(RECIPE.parameters) - 1


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("head_size", "256", 256),
        ("window", "0", 0),
        ("v_head_size", "0", 0),
        ("softcap", "50", 50.0),
        ("softcap", 0, 0.0),
        ("mla", "yes", True),
        ("mla", "0", False),
        ("mla", True, True),
        ("phase", "decode", "decode"),
        ("dtype", "torch.bfloat16", "bfloat16"),
        ("dtype", "half", "float16"),
        ("dtype", "FP32", "float32"),
        ("kv_dtype", "fp8", "float8_e4m3fn"),
        ("kv_dtype", "auto", "auto"),
    ],
)
def test_texts_become_values(name: str, text: Any, value: Any) -> None:
    found = shape_of(**{name: text})[name]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("head_size", "abc", "is no whole number"),
        ("head_size", "0", "out of range"),
        ("head_size", "-3", "out of range"),
        ("head_size", 10**30, "out of range"),
        ("head_size", float("inf"), "is no whole number"),
        ("window", "-1", "out of range"),
        ("softcap", "nan", "out of range"),
        ("softcap", "warm", "is no number"),
        ("mla", "perhaps", "is no true or false"),
        ("phase", "training", "none of prefill, decode"),
        ("dtype", "float8", "is no element type; there are float16, bfloat16"),
        ("dtype", "auto", "is no element type"),
    ],
)
def test_anything_else_is_refused(name: str, text: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        shape_of(**{name: text})
    assert str(caught.value).startswith(f"{name}: ")


def test_a_name_it_does_not_have_lists_those_it_has() -> None:
    with pytest.raises(UsageError, match=r"made\.up has no parameter heads, tile; it has dtype, kv_dtype"):
        shape_of(heads=1, tile=2)


@given(
    st.sampled_from([one.name for one in RECIPE.parameters]), st.text() | st.integers() | st.floats() | st.booleans()
)
def test_nothing_but_usage_errors(name: str, value: Any) -> None:
    try:
        shape = shape_of(**{name: value})
    except UsageError:
        return
    default = next(one.default for one in RECIPE.parameters if one.name == name)
    assert type(shape[name]) is type(default)


@given(st.text())
def test_an_element_type_is_a_known_one_or_none(text: str) -> None:
    assert element_type(text) in (*ELEMENT_TYPES, "")
