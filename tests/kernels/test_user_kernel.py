"""``FILE.py:FUNCTION``: how the name is taken apart, and what arguments as text mean. (Calling it: the CLI's tests.)"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.errors import UsageError
from oortriage.kernels.mock import Pointer
from oortriage.kernels.user_kernel import argument, is_user_kernel, user_recipe


@pytest.mark.parametrize("name", ["k.py:f", "a b/c:d.py:_f1", "../x.py:f", "/abs/x.py:Kernel"])
def test_a_file_and_a_function(name: str) -> None:
    assert is_user_kernel(name)


@pytest.mark.parametrize("name", ["vllm.unified_attention", "k.py", "k.py:", "k.py:1f", "k.txt:f", ":f", ".py:f", ""])
def test_anything_else_is_a_recipes_name(name: str) -> None:
    assert not is_user_kernel(name)
    with pytest.raises(UsageError, match=r"write FILE\.py:FUNCTION"):
        user_recipe(name)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        user_recipe(f"{tmp_path}/none.py:f")
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(UsageError, match="there is no such file"):
        user_recipe(f"{tmp_path}/folder.py:f")


def test_making_the_recipe_does_not_import_the_file(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("raise SystemExit(7)")
    recipe = user_recipe(f"{tmp_path}/k.py:f")
    assert (recipe.title, recipe.parameters, recipe.needs_torch) == ("f in k.py", (), False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("*fp16", Pointer("float16")),
        ("*bfloat16", Pointer("bfloat16")),
        ("*fp8e4nv", Pointer("float8e4nv")),
        ("*u8", Pointer("uint8")),
        ("128", 128),
        ("-1", -1),
        ("0.5", 0.5),
        ("true", True),
        ("False", False),
        ("none", None),
        ("fp32", 0.5),
        ("ieee", "ieee"),
        ("", ""),
        (64, 64),
        (True, True),
    ],
)
def test_arguments(text: object, value: object) -> None:
    found = argument(text)
    assert (found, type(found)) == (value, type(value))


def test_a_plain_value_is_neither_one_nor_a_multiple_of_sixteen() -> None:
    """Triton compiles those in; a run-time value that nobody named must stay one."""
    assert argument("i32") % 16
    assert argument("i32") != 1
    assert argument("i64") % 16
    assert argument("i64") >> 32


@pytest.mark.parametrize("text", ["*fp99", "*", "*auto", "*FP"])
def test_a_pointer_to_no_type_lists_the_types(text: str) -> None:
    with pytest.raises(UsageError, match=r"there are \*fp16, \*bf16") as caught:
        argument(text)
    assert text in str(caught.value)


@given(st.text())
def test_any_text_is_a_value_or_a_usage_error(text: str) -> None:
    try:
        argument(text)
    except UsageError:
        assert text.startswith("*")
