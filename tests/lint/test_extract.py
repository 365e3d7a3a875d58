"""A release's source taken apart by syntax: both ways in which vLLM has written its options."""

from __future__ import annotations

from pathlib import Path

import pytest

from oortriage.errors import OortriageError
from oortriage.lint.extract.fields import Classes
from oortriage.lint.extract.flags import engine_flags, flags_of, frontend_flags
from oortriage.lint.extract.release import surface_of
from oortriage.lint.extract.variables import variables_of
from oortriage.lint.surface import Flag

CONFIG = """
Size = Literal[8, 16]
Named = Literal["a", "b"]
class Inner:
    x: int = 1
@config
class Shape(Base):
    size: Size = None
    maybe: Size | None = None
    named: Named | str = "a"
    share: float = Field(default=0.9, gt=0, le=1)
    count: Optional[int] = 3
    length: int = None
    on: bool = False
    either: bool | str | None = None
    inner: Inner = field(default_factory=Inner)
    many: list[str] = None
    table: dict[str, int] = None
    text: Optional[str] = None
    odd: torch.dtype = None
class Base:
    old: SkipValidation["Size"] = None
"""
ENGINE = """
def get_kwargs(cls):
    for name in ():
        if name == "length":
            kwargs[name]["type"] = human_readable_int_or_auto
        elif name in ("count",):
            kwargs[name]["type"] = human_readable_int
class EngineArgs:
    model: str = "m"
    block_size: int = 16
    def add_cli_args(parser):
        kwargs = get_kwargs(Shape)
        group.add_argument("--size", **kwargs["size"])
        group.add_argument("--maybe", "-m", **kwargs["maybe"])
        group.add_argument("--named", **kwargs["named"])
        group.add_argument("--share", **kwargs["share"])
        group.add_argument("--count", **kwargs["count"])
        group.add_argument("--length", **kwargs["length"])
        group.add_argument("--on", **kwargs["on"], deprecated=True)
        group.add_argument("--either", **kwargs["either"])
        group.add_argument("--inner", **kwargs["inner"])
        group.add_argument("--many", **kwargs["many"])
        group.add_argument("--table", **kwargs["table"])
        group.add_argument("--text", **kwargs["text"])
        group.add_argument("--odd", **kwargs["odd"])
        group.add_argument("--old", **kwargs["old"])
        group.add_argument("--spread", **{**kwargs["on"], "default": None})
        one = kwargs["size"]
        one["choices"] = []
        group.add_argument("--later", **one)
        parser.add_argument('--plain', type=int, default=5, choices=[1, 2])
        parser.add_argument('--listed', type=str, choices=[*METHODS, None])
        parser.add_argument('--flag', action='store_true')
        parser.add_argument('--loose', type=str, nargs='?')
        parser.add_argument('--nullable', type=optional_type(int))
        parser.add_argument('--under_score', type=float)
        parser.add_argument("--model")
METHODS = ["x", "y"]
"""


def flags() -> dict[str, Flag]:
    return engine_flags(ENGINE, Classes([CONFIG, ENGINE]))


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("--size", Flag("choice", ("8", "16"), default="None")),
        ("--maybe", Flag("choice", ("8", "16"), ("-m",), default="None")),
        ("--named", Flag("text", ("a", "b"), default="a")),
        ("--share", Flag("float", bounds=("gt 0", "le 1"), default="0.9")),
        ("--count", Flag("size", default="3")),
        ("--length", Flag("size_or_auto", default="None")),
        ("--on", Flag("pair", default="False", deprecated=True)),
        ("--either", Flag("text", optional=True, default="None")),
        ("--inner", Flag("json")),
        ("--many", Flag("list", default="None")),
        ("--table", Flag("json", default="None")),
        ("--text", Flag("text", default="None")),
        ("--odd", Flag("unknown", default="None")),
        ("--old", Flag("choice", ("8", "16"), default="None")),
        ("--spread", Flag("pair", default="None")),
        ("--later", Flag("choice", ("8", "16"), default="None")),
        ("--plain", Flag("choice", ("1", "2"), default="5")),
        ("--listed", Flag("choice", ("x", "y", "None"))),
        ("--flag", Flag("switch")),
        ("--loose", Flag("text", optional=True)),
        ("--nullable", Flag("int")),
        ("--under-score", Flag("float")),
        ("--model", Flag("text")),
    ],
)  # fmt: skip
def test_an_option_is_what_vllm_s_parser_makes_of_it(name: str, flag: Flag) -> None:
    assert flags()[name] == flag


def test_options_made_in_a_loop_come_from_the_fields() -> None:
    text = """
class BaseFrontendArgs:
    host: Optional[str] = None
class FrontendArgs(BaseFrontendArgs):
    port: int = 8000
    middleware: list[str] = None
    tool: str = ""
    def add():
        frontend_kwargs["tool"]["choices"] = ["x"]
"""
    made = frontend_flags(text)
    assert {name: flag.kind for name, flag in made.items()} == {
        "--host": "text", "--port": "int", "--middleware": "unknown", "--tool": "unknown",
    }  # fmt: skip


def test_only_the_parser_that_is_asked_for_counts() -> None:
    text = 'serve_parser.add_argument("--config", type=str)\nchat_parser.add_argument("--url", type=str)\n'
    assert set(flags_of(text, Classes([]), "serve_parser")) == {"--config"}


def test_variables_are_the_keys_of_the_table() -> None:
    text = 'environment_variables: dict[str, Any] = {"A": lambda: 1, **more, "B": lambda: 2}\nother = {"C": 1}\n'
    assert variables_of(text) == {"A", "B"}
    assert variables_of("x = 1") == frozenset()


class Tree:
    """Files of a release in a folder."""

    def __init__(self, root: Path, files: dict[str, str]) -> None:
        self._root = root
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)

    def has(self, path: str) -> bool:
        return (self._root / path).is_file()

    def names(self, folder: str) -> list[str]:
        here = self._root / folder
        return [f"{folder}/{one.name}" for one in here.iterdir()] if here.is_dir() else []

    def fetch(self, path: str) -> Path:
        return self._root / path


RELEASE = {
    "vllm/envs.py": 'environment_variables = {"VLLM_A": lambda: 1}',
    "vllm/engine/arg_utils.py": ENGINE,
    "vllm/config/cache.py": CONFIG,
    "vllm/entrypoints/llm.py": "class LLM:\n    def __init__(self, model, *, swap: int = 1, **kwargs): ...\n",
    "vllm/entrypoints/api_server.py": "",
    "vllm/scripts.py": 'serve_parser.add_argument("--config")\nother.add_argument("--url")\n',
}


def test_a_release_is_put_together_from_its_files(tmp_path: Path) -> None:
    made = surface_of(Tree(tmp_path, RELEASE), "1.2.3", "here")
    assert (made.version, made.variables, made.modules) == ("1.2.3", {"VLLM_A"}, {"vllm.entrypoints.api_server"})
    assert {"model", "block_size", "swap"} <= made.keywords
    assert "--config" in made.flags
    assert "--url" not in made.flags


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"vllm/envs.py": "def ("}, "cannot be read as Python"),
        ({"vllm/envs.py": "x = 1"}, "form that is not known"),
        ({"vllm/engine/arg_utils.py": "x = 1"}, "form that is not known"),
        ({"vllm/envs.py": "x = " + "(" * 500 + ")" * 500}, "vLLM 1.2.3"),
    ],
)
def test_a_release_that_cannot_be_read_is_told(tmp_path: Path, changed: dict[str, str], told: str) -> None:
    with pytest.raises(OortriageError, match=told):
        surface_of(Tree(tmp_path, RELEASE | changed), "1.2.3", "here")


def test_a_tree_without_the_files_is_told(tmp_path: Path) -> None:
    with pytest.raises(OortriageError, match=r"it has no vllm/envs\.py"):
        surface_of(Tree(tmp_path, {"vllm/x.py": ""}), "1.2.3", "here")
