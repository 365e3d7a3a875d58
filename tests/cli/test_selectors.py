"""How the options that say what to compile are put together, without a process for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.cli.selectors import options_of, pairs, read_diagnosis, releases
from oortriage.errors import InputError, OortriageError, UsageError
from oortriage.replay.options import Options
from tests.cli.conftest import T4

NOTHING: dict[str, Any] = {
    "kernel": "", "gpu": "", "limit": 0, "vllm": "", "sglang": "", "release": None, "source": None, "config": None,
    "triton": "", "dtype": None, "head_size": None, "window": None, "phase": None, "block_size": None, "tile": None,
    "set_": None, "arg": None, "required": 0,
}  # fmt: skip


def options(**given_: Any) -> Options:
    return options_of(**{**NOTHING, **given_})


def test_nothing_said_is_nothing_set() -> None:
    assert options() == Options()


def test_options_with_a_name_of_their_own_are_parameters() -> None:
    found = options(kernel="vllm.unified_attention", dtype="float32", head_size=256, window=0, phase="decode")
    assert found.settings == {"dtype": "float32", "head_size": 256, "window": 0, "phase": "decode"}
    assert found.overrides == {}


@pytest.mark.parametrize("kernel", ["", "vllm.unified_attention"])
def test_a_tile_is_a_constant_of_the_kernel(kernel: str) -> None:
    assert options(kernel=kernel, tile=32).overrides == {"tile": 32}


def test_where_the_recipe_has_a_tile_it_is_a_parameter() -> None:
    found = options(kernel="reference.attention", tile=32)
    assert (found.settings, found.overrides) == ({"tile": 32}, {})


def test_set_is_a_parameter_or_a_constant() -> None:
    found = options(
        kernel="vllm.unified_attention", set_=["kv_heads=8", "num_warps=2", "USE_ALIBI=true", "x=0.5", "y=z"]
    )
    assert found.settings == {"kv_heads": "8"}
    assert found.overrides == {"num_warps": 2, "USE_ALIBI": True, "x": 0.5, "y": "z"}


def test_with_the_kernel_still_unknown_any_recipes_parameter_counts() -> None:
    found = options(set_=["kv_heads=8", "num_warps=2"])
    assert (found.settings, found.overrides) == ({"kv_heads": "8"}, {"num_warps": 2})


def test_a_kernel_of_ones_own_has_arguments_and_constants() -> None:
    found = options(kernel="k.py:f", arg=["a=*fp16", "N=64", "s=x=y"], set_=["num_stages=2"], tile=16)
    assert found.settings == {"a": "*fp16", "N": "64", "s": "x=y"}
    assert found.overrides == {"num_stages": 2, "tile": 16}


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"set_": ["a"]}, "--set a: write NAME=VALUE"),
        ({"set_": ["=3"]}, "--set =3: write NAME=VALUE"),
        ({"arg": [" = "]}, "write NAME=VALUE"),
        ({"set_": ["a=1", "a=2"]}, "--set a is given twice"),
        ({"set_": ["head_size=1"], "head_size": 2}, "--set head_size: it is given by its own option as well"),
        ({"set_": ["tile=1"], "tile": 2}, "--set tile: it is given by its own option as well"),
        ({"release": ["vllm"]}, "--release vllm: write NAME=VALUE"),
        ({"kernel": "vllm.nothing", "set_": ["a=1"]}, "no kernel 'vllm.nothing'"),
    ],
)
def test_mistakes(given_: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        options(**given_)
    assert words in str(caught.value)


def test_releases() -> None:
    assert releases("0.17.1", "", ["fla=0.3", "vllm=0.1"]) == {"fla": "0.3", "vllm": "0.17.1"}


@given(st.lists(st.text(max_size=8), max_size=4))
def test_any_texts_are_pairs_or_a_usage_error(texts: list[str]) -> None:
    try:
        found = options(kernel="reference.attention", set_=texts)
    except OortriageError:
        return
    assert len(found.settings) + len(found.overrides) == len(pairs(texts, "--set"))


class TestLog:
    def test_none(self) -> None:
        assert read_diagnosis(None) is None

    def test_a_report_is_read_and_not_diagnosed_again(self, tmp_path: Path) -> None:
        import msgspec

        first = read_diagnosis(str(T4))
        assert first is not None
        for name, data in (("one.json", first), ("list.json", [first])):
            (tmp_path / name).write_bytes(msgspec.json.encode(data))
            assert read_diagnosis(str(tmp_path / name)) == first
        (tmp_path / "two.json").write_bytes(msgspec.json.encode([first, first]))
        with pytest.raises(InputError, match="it holds 2 diagnoses; give one"):
            read_diagnosis(str(tmp_path / "two.json"))

    @pytest.mark.parametrize("content", ['{"a": 1}', "[]", "3", '"x"', "{", "", "[[]]"])
    def test_other_json_is_a_log(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "x.json").write_text(content)
        if content == "[]":
            with pytest.raises(InputError, match="it holds 0 diagnoses; give one"):
                read_diagnosis(str(tmp_path / "x.json"))
            return
        found = read_diagnosis(str(tmp_path / "x.json"))
        assert found is not None
        assert found.resource == "none"

    def test_json_lines_are_a_log(self, tmp_path: Path) -> None:
        line = "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 81920, Hardware limit: 65536."
        (tmp_path / "x.json").write_text("".join(json.dumps({"log": text}) + "\n" for text in ("hello", line)))
        found = read_diagnosis(str(tmp_path / "x.json"))
        assert found is not None
        assert found.resource == "shared_memory"
