"""What a capsule holds of source text and of the values that it names."""

from __future__ import annotations

import math
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from oortriage.capture import hook

sys.path.append(str(Path(hook.__file__).parent))
import oortriage_capture_source as source

GLOBALS: dict[str, Any] = {}


class Jitted:
    """As Triton's own: a text, and the Python function behind it."""

    def __init__(self, text: str, scope: dict[str, Any], module: str = "users") -> None:
        made = dict(scope)
        exec(text, made)
        (name,) = [one for one in made if one not in scope and one != "__builtins__"]
        self.fn = made[name]
        self.fn.__globals__.update(scope)
        self.__name__, self.__module__, self.src = name, module, text
        self.arg_names = ["x"]
        self.raw_src = ["@jit\n", "@other(\n", "    1)\n", *text.splitlines(keepends=True)]
        self.starting_line_number = 10


def named(text: str, **scope: Any) -> dict[str, Any]:
    functions = source.Functions()
    functions.add(Jitted(text, scope))
    return dict(functions.found[0]["globals"])


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (3, 3),
        (True, True),
        (None, None),
        (0.5, 0.5),
        (math.inf, {"float": "inf"}),
        ("mean", "mean"),
        ("x" * 201, {"unknown": "a long text"}),
        ((1, (2, None)), {"tuple": [1, {"tuple": [2, None]}]}),
        (object(), {"unknown": "object"}),
        ({"token": "secret"}, {"unknown": "dict"}),
        (b"secret", {"unknown": "bytes"}),
    ],
)
def test_values(value: Any, written: Any) -> None:
    assert named("def f(x): return x + V", V=value) == {"V": written}


def test_only_what_the_text_names() -> None:
    assert named("def f(x): return x + A", A=1, SECRET="s") == {"A": 1}


def test_of_a_module_only_what_is_taken() -> None:
    helper = types.ModuleType("helper")
    inner = types.ModuleType("helper.inner")
    helper.inner, helper.SIZE, helper.TOKEN = inner, 4, "secret"  # type: ignore[attr-defined]
    inner.DEPTH = 7  # type: ignore[attr-defined]
    written = named("def f(x): return x + helper.SIZE + helper.inner.DEPTH + helper.missing", helper=helper)
    assert written == {"helper": {"namespace": {"SIZE": 4, "inner": {"namespace": {"DEPTH": 7}}}}}


def test_functions_that_call_each_other_are_there_once() -> None:
    scope: dict[str, Any] = {}
    one = Jitted("def one(x): return two(x)", scope)
    two = Jitted("def two(x): return one(x)", scope)
    one.fn.__globals__["two"], two.fn.__globals__["one"] = two, one
    functions = source.Functions()
    assert functions.add(one) == functions.add(one) == "f0"
    assert [(f["name"], f["globals"]) for f in functions.found] == [
        ("one", {"two": {"function": "f1"}}),
        ("two", {"one": {"function": "f0"}}),
    ]


def test_the_line_is_that_of_def() -> None:
    functions = source.Functions()
    functions.add(Jitted("def f(x): return x", {}))
    assert functions.found[0]["line"] == 13


def test_closures() -> None:
    def outer(depth: int) -> Any:
        def f(x: int) -> int:
            return x + depth

        return f

    jitted = Jitted("def f(x): return x + depth", {})
    jitted.fn = outer(9)
    functions = source.Functions()
    functions.add(jitted)
    assert functions.found[0]["globals"] == {"depth": 9}


def test_a_function_from_inductors_compiling_process_is_read_from_its_file(tmp_path: Path) -> None:
    generated = tmp_path / "generated.py"
    generated.write_text(
        "import os\nTOKEN = 'secret'\n@template()\n@triton.jit\ndef kernel(x):\n    return inner(x)\n\n"
        "@triton.jit\ndef inner(x):\n    return x\n\ndef call(): return TOKEN\n"
    )
    jitted = Jitted("def kernel(x):\n    return inner(x)", {})
    jitted.fn = None
    functions = source.Functions(str(generated))
    functions.add(jitted)
    assert [f["name"] for f in functions.found] == ["kernel", "inner"]
    assert functions.found[0]["globals"] == {"inner": {"function": "f1"}}
    assert functions.found[1]["source"] == "def inner(x):\n    return x"
    assert "secret" not in str(functions.found)


def test_too_many_functions() -> None:
    functions = source.Functions()
    functions.found.extend({} for _ in range(400))
    with pytest.raises(ValueError, match="more than 400"):
        functions.add(Jitted("def f(x): return x", {}))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/me/venv/lib/python3.11/site-packages/vllm/ops/a.py", "vllm/ops/a.py"),
        ("/usr/lib/python3/dist-packages/x.py", "x.py"),
        ("/somewhere/else/k.py", "k.py"),
        ("C:\\Users\\me\\k.py", "k.py"),
        ("<stdin>", "<stdin>"),
        ("", ""),
    ],
)
def test_files_are_named_without_this_machine(path: str, shown: str) -> None:
    assert source.shown(path) == shown


def test_the_module_path_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/home/me", "/home/me/project", ""])
    assert source.shown("/home/me/project/ops/k.py") == "ops/k.py"
