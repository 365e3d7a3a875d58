"""Which recipe a name, a kernel or a source file of a traceback leads to."""

from __future__ import annotations

import re

import pytest

from oortriage.errors import UsageError
from oortriage.kernels._interface import ELEMENT_TYPES
from oortriage.kernels.registry import all_recipes, find_recipe, recipes_for

RECIPES = list(all_recipes().values())


def test_the_recipes_of_the_contract_are_there() -> None:
    assert {"vllm.unified_attention", "reference.attention"} <= set(all_recipes())
    assert list(all_recipes()) == sorted(all_recipes())


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda one: one.name)
def test_every_recipe_keeps_the_rules(recipe) -> None:
    names = [one.name for one in recipe.parameters]
    assert len(names) == len(set(names))
    assert re.fullmatch(r"[a-z_]+\.[a-z0-9_]+", recipe.name)
    assert recipe.title
    for one in recipe.parameters:
        assert one.help, one.name
        assert not one.choices or one.default in one.choices, one.name
        assert all(type(value) is type(one.default) for value in one.tries), one.name
        if one.name.endswith("dtype"):
            assert one.default in ELEMENT_TYPES
        shape, _ = recipe.shape({one.name: one.default})
        assert shape[one.name] == one.default
    assert bool(recipe.library) == bool(recipe.since)
    # A lever is a short name; a parameter of the same name would hide it unless it sets that constant.
    assert all(levels for levels in recipe.vary.values())


def test_a_near_name_is_offered() -> None:
    with pytest.raises(UsageError, match=r"no kernel 'vllm.unifed_attention'; there are vllm.unified_attention"):
        find_recipe("vllm.unifed_attention")


def test_a_far_name_lists_all() -> None:
    with pytest.raises(UsageError, match=r"reference\.attention.*vllm\.unified_attention.*FILE\.py:FUNCTION"):
        find_recipe("zzz")


def names(kernel: str, *files: str) -> list[str]:
    return [one.name for one in recipes_for(kernel, list(files))]


def test_the_source_file_says_more_than_the_name() -> None:
    """Many kernels are called ``_fwd_kernel``."""
    file = "/opt/sglang/python/sglang/srt/layers/attention/triton_ops/extend_attention.py"
    assert names("_fwd_kernel", file)[0] == "sglang.extend_attention"
    assert "vllm.prefix_prefill" in names("_fwd_kernel", file)


def test_a_name_alone_and_a_file_alone_lead_there() -> None:
    assert names("kernel_unified_attention_2d") == ["vllm.unified_attention"]
    assert names("", r"C:\x\vllm\v1\attention\ops\triton_unified_attention.py") == ["vllm.unified_attention"]
    assert names("") == names("no_such_kernel") == names("", "model.py") == []
