"""A capsule's kernel built again: from its own text, with names of Triton's only, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oortriage.capture.capsule import Capsule, read_capsule
from oortriage.errors import InputError, UsageError
from oortriage.kernels.captured_kernel import captured_recipe, kernel_source
from oortriage.kernels.registry import find_recipe

SOURCE = "def product(X, B: tl.constexpr, D: tl.constexpr = DEFAULT):\n    i = tl.arange(0, B)\n    tl.store(X + i, helper.inner(i))\n"
INNER = "def inner(x):\n    return tl.maximum(x, SIZE)"
TL = {"module": "triton.language"}


def capsule(tmp_path: Path, **change: Any) -> Capsule:
    functions = [
        {
            "id": "f0", "name": "product", "file": "pkg/k.py", "line": 7, "source": SOURCE,
            "globals": {"tl": TL, "DEFAULT": 4, "helper": {"namespace": {"inner": {"function": "f1"}}}},
        },
        {
            "id": "f1", "name": "inner", "file": "pkg/h.py", "line": 1, "source": INNER, "noinline": True,
            "globals": {"tl": TL, "SIZE": {"constexpr": 3}},
        },
    ]  # fmt: skip
    data = {
        "schema": "oortriage-capsule",
        "schema_version": 1,
        "kernel": "product",
        "entry": "f0",
        "resource": "shared memory",
        "required": 81920,
        "limit": 65536,
        "target": {"backend": "cuda", "arch": 75, "warp_size": 32},
        "signature": {"X": "*i32", "B": "constexpr", "D": "constexpr"},
        "constants": [[[1], 64], [[2], {"dtype": "fp16"}]],
        "attributes": [[[0], [["tt.divisibility", 16]]]],
        "functions": functions,
        **change,
    }
    path = tmp_path / "one.json"
    path.write_text(json.dumps(data))
    return read_capsule(str(path))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OORTRIAGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_capsules_file_is_a_kernel_by_name(tmp_path: Path) -> None:
    capsule(tmp_path)
    recipe = find_recipe(str(tmp_path / "one.json"))
    assert (recipe.kernels, recipe.parameters, recipe.needs_torch) == (("product",), (), False)


def test_a_broken_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"schema": "oortriage-capsule"}')
    with pytest.raises(InputError):
        captured_recipe(str(tmp_path / "one.json"))


class TestBuilt:
    @pytest.fixture(autouse=True)
    def triton(self) -> Any:
        return pytest.importorskip("triton", reason="needs Triton (no GPU)")

    def test_on_the_line_and_under_the_name_it_had(self, tmp_path: Path) -> None:
        local: dict[str, str] = {}
        source = kernel_source(capsule(tmp_path), local)
        assert source.fn.__name__ == "product"
        assert source.fn.starting_line_number == 7
        assert sorted(local.values()) == ["pkg/h.py", "pkg/k.py"]
        assert source.fn.src == SOURCE
        assert source.fn.fn.__defaults__ == (4,)

    def test_constants_types_and_attributes(self, tmp_path: Path) -> None:
        import triton.language as tl

        source = kernel_source(capsule(tmp_path), {})
        assert source.signature == {"X": "*i32", "B": "constexpr", "D": "constexpr"}
        assert source.constants == {(1,): 64, (2,): tl.float16}
        assert source.attrs == {(0,): [["tt.divisibility", 16]]}

    def test_what_it_calls(self, tmp_path: Path) -> None:
        source = kernel_source(capsule(tmp_path), {})
        inner = source.fn.fn.__globals__["helper"].inner
        assert (inner.__name__, inner.noinline) == ("inner", True)
        assert inner.fn.__globals__["SIZE"].value == 3

    @pytest.mark.parametrize(
        ("value", "python"),
        [
            (3, 3),
            (None, None),
            ("mean", "mean"),
            ({"float": "inf"}, float("inf")),
            ({"tuple": [1, {"tuple": [2]}]}, (1, (2,))),
        ],
    )
    def test_values(self, tmp_path: Path, value: Any, python: Any) -> None:
        source = kernel_source(capsule(tmp_path, constants=[[[1], 64], [[2], value]]), {})
        assert source.constants[(2,)] == python

    @pytest.mark.parametrize("place", ["os", "os:system", "subprocess:run", "tritonx.y", "builtins:eval", ""])
    def test_nothing_outside_triton_is_imported(self, tmp_path: Path, place: str) -> None:
        kind = "import" if ":" in place else "module"
        with pytest.raises(UsageError, match="no part of Triton"):
            kernel_source(capsule(tmp_path, constants=[[[1], {kind: place}]]), {})

    def test_a_name_this_triton_does_not_have(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"this Triton has no triton\.language\.nothing"):
            kernel_source(capsule(tmp_path, constants=[[[1], {"import": "triton.language:nothing"}]]), {})

    @pytest.mark.parametrize("value", [{"unknown": "Enum"}, {}, {"new kind": 1}])
    def test_what_was_not_captured_says_so_when_it_is_used(self, tmp_path: Path, value: Any) -> None:
        held = kernel_source(capsule(tmp_path, constants=[[[1], value]]), {}).constants[(1,)]
        with pytest.raises(UsageError, match="could not hold a value"):
            held.anything  # noqa: B018
        with pytest.raises(UsageError, match="could not hold a value"):
            held()

    def test_without_source(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="holds no source text"):
            kernel_source(capsule(tmp_path, entry="", functions=[]), {})

    def test_another_language(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="gluon"):
            kernel_source(capsule(tmp_path, language="gluon"), {})

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("def product(:", "SyntaxError"),
            ("x = 1", "defines no such function"),
            ("1 / 0", "ZeroDivisionError"),
            ("def product(X, B=MISSING): pass", "NameError"),
        ],
    )
    def test_source_that_cannot_be_built(self, tmp_path: Path, text: str, said: str) -> None:
        functions = [{"id": "f0", "name": "product", "source": text}]
        with pytest.raises(UsageError, match=said):
            kernel_source(capsule(tmp_path, functions=functions), {})

    def test_a_cache_that_cannot_be_written(self, tmp_path: Path, cache: Path) -> None:
        cache.write_text("a file")
        assert kernel_source(capsule(tmp_path), {}).fn.__name__ == "product"
