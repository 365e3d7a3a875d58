"""A library's kernel files imported without the library: real files are real, the rest answers and is noted."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from oortriage.kernels.source import SourceSpec, open_source
from oortriage.kernels.stand_in import SourceLibrary, StandIn

FILES = {
    "made_up/__init__.py": "raise RuntimeError('the package itself must not be imported')",
    "made_up/ops/__init__.py": "raise RuntimeError('nor this one')",
    "made_up/ops/kernel.py": (
        "from made_up.logger import init_logger\n"
        "from made_up.config import Config, get_config\n"
        "from made_up.ops import helper\n"
        "import made_up.envs as envs\n"
        "logger = init_logger(__name__)\n"
        "@get_config().cached\n"
        "def launch(config: Config | None = None) -> int:\n"
        "    return helper.WIDTH * 2\n"
        "class Mixed(Config, dict):\n"
        "    pass\n"
    ),
    "made_up/ops/helper.py": "WIDTH = 21\n",
    "made_up/data/E=8.json": "{}",
    "made_up/data/E=16.json": "{}",
    "made_up/data/more/E=8.json": "{}",
}


@pytest.fixture
def library(tmp_path: Path) -> Iterator[SourceLibrary]:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    before = list(sys.meta_path)

    def logger(module: ModuleType) -> None:
        module.__dict__["init_logger"] = lambda name: f"logger of {name}"

    yield SourceLibrary(
        "made_up",
        open_source(SourceSpec("made_up", "1.0", "folder", str(tmp_path))),
        lambda name: name in ("made_up.ops.kernel", "made_up.ops.helper"),
        {"made_up.logger": logger},
        set(),
    )
    sys.meta_path[:] = before
    for name in [name for name in sys.modules if name.partition(".")[0] == "made_up"]:
        del sys.modules[name]


def test_real_files_are_real_and_what_surrounds_them_is_not(library: SourceLibrary) -> None:
    kernel = library.module("made_up.v1.kernel", "made_up.ops.kernel")
    assert kernel.launch() == 42
    assert kernel.logger == "logger of made_up.ops.kernel"
    assert kernel.Mixed.__mro__[1] is dict


def test_what_was_asked_of_stand_ins_is_noted(library: SourceLibrary) -> None:
    library.module("made_up.ops.kernel")
    assert {"made_up.config.Config", "made_up.config.get_config"} <= library.noted
    assert not [name for name in library.noted if "helper" in name or "init_logger" in name]


def test_the_files_that_were_read_are_told_with_their_digest(library: SourceLibrary) -> None:
    library.module("made_up.ops.kernel")
    assert set(library.files) == {"made_up/ops/kernel.py", "made_up/ops/helper.py"}
    digest = hashlib.sha256(FILES["made_up/ops/helper.py"].encode()).hexdigest()
    assert library.files["made_up/ops/helper.py"] == digest
    assert set(library.local.values()) == set(library.files)


def test_a_module_that_no_release_has(library: SourceLibrary) -> None:
    with pytest.raises(LookupError, match=r"made_up 1.0 has no made_up.a or made_up.b"):
        library.module("made_up.a", "made_up.b")


def test_data_files_are_chosen_by_words_in_one_folder(library: SourceLibrary) -> None:
    assert library.data("made_up/data", "E=8", ".json") == ["made_up/data/E=8.json"]
    assert library.data("made_up/data", "E=9") == library.data("made_up/none") == []
    assert "made_up/data/E=8.json" in library.files


@pytest.mark.usefixtures("library")
def test_other_packages_are_left_alone() -> None:
    with pytest.raises(ModuleNotFoundError):
        __import__("made_upper")


def test_a_stand_in_is_empty_false_and_harmless() -> None:
    noted: set[str] = set()
    one: Any = StandIn("lib", noted)

    @one.register("name")
    def function() -> int:
        return 3

    assert function() == 3
    assert not one
    assert not one.flag
    assert list(one.items) == []
    assert one(one.x).y is not None
    assert one | None is not None
    assert one[int] is not None
    with pytest.raises(AttributeError):
        one.__wrapped__  # noqa: B018 (inspect would follow it for ever)
    assert "lib.register" in noted
