"""Kernels that Inductor launches by itself: no OutOfResources is made, its tuner gives up."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from oortriage.capture import hook
from tests.capture.test_source import Jitted

sys.path.append(str(Path(hook.__file__).parent))
import oortriage_capture_capsule as capsule
import oortriage_capture_hook as hooks

#: As PyTorch 2.11 prints it for a kernel of its own launcher, and Triton for another.
STATIC = "No valid triton configs. OutOfMemoryError: out of resource: triton_red_fused Required: 81920 Hardware limit:65536 Reducing block sizes or `num_stages` may help."
TRITON = "No valid triton configs. OutOfResources: out of resource: shared memory, Required: 81920, Hardware limit: 65536. Reducing"


class CachingAutotuner:
    """As Inductor's: its results, and the function that makes them launchable."""

    filename = None
    device_props = SimpleNamespace(warp_size=32)

    def __init__(self, error: Exception | None, kernel: Any) -> None:
        self.error = error
        self.fn = Jitted("def triton_red_fused(x): return x", {})
        meta = {
            "signature": {"x": "*fp32", "XBLOCK": "constexpr"},
            "constants": {"XBLOCK": 64},
            "configs": [{(0,): [["tt.divisibility", 16]]}],
            "device_type": "cuda",
            "cc": 75,
            "num_warps": 8,
            "num_stages": 2,
        }
        self.fn.arg_names = ["x", "XBLOCK"]
        self.compile_results = [SimpleNamespace(kernel=kernel, compile_meta=meta, config=None)]

    def _make_launchers(self) -> str:
        if self.error:
            raise self.error
        return "made"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("OORTRIAGE_CAPTURE", str(tmp_path / "capsules"))
    capsule._written.clear()
    hooks._held.clear()
    yield tmp_path / "capsules"
    capsule._written.clear()


@pytest.fixture
def tuner_class() -> type[CachingAutotuner]:
    kind = type("CachingAutotuner", (CachingAutotuner,), {"_make_launchers": CachingAutotuner._make_launchers})
    hooks._watch_inductor(SimpleNamespace(CachingAutotuner=kind))
    return kind


def written(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def test_its_own_launcher(folder: Path, tuner_class: type[CachingAutotuner]) -> None:
    error = RuntimeError(STATIC)
    with pytest.raises(RuntimeError) as raised:
        tuner_class(error, SimpleNamespace())._make_launchers()
    assert raised.value is error
    (one,) = written(folder)
    assert (one["kernel"], one["resource"], one["required"], one["limit"]) == (
        "triton_red_fused", "shared memory", 81920, 65536,
    )  # fmt: skip
    assert one["target"] == {"backend": "cuda", "arch": 75, "warp_size": 32}
    assert one["constants"] == [[[1], 64]]
    assert one["attributes"] == [[[0], [["tt.divisibility", 16]]]]
    assert one["options"] == {"num_warps": 8, "num_stages": 2}


def test_a_kernel_of_tritons_launcher(folder: Path, tuner_class: type[CachingAutotuner]) -> None:
    kernel = SimpleNamespace(
        src=SimpleNamespace(fn=None, signature={"x": "*fp16"}, constants={(1,): 32}, attrs={}),
        metadata=SimpleNamespace(
            target=SimpleNamespace(backend="hip", arch="gfx942", warp_size=64), num_warps=2, num_stages=1
        ),
    )
    with pytest.raises(RuntimeError):
        tuner_class(RuntimeError(TRITON), kernel)._make_launchers()
    (one,) = written(folder)
    assert (one["target"]["arch"], one["signature"], one["options"]["num_warps"]) == ("gfx942", {"x": "*fp16"}, 2)


def test_success_and_other_failures_leave_nothing(folder: Path, tuner_class: type[CachingAutotuner]) -> None:
    assert tuner_class(None, None)._make_launchers() == "made"
    with pytest.raises(RuntimeError, match="else"):
        tuner_class(RuntimeError("something else"), None)._make_launchers()
    assert not folder.exists()


def test_before_there_was_such_a_function() -> None:
    hooks._watch_inductor(SimpleNamespace(CachingAutotuner=type("CachingAutotuner", (), {})))


def test_a_choice_that_is_only_tried_waits_until_none_is_left(
    folder: Path, tuner_class: type[CachingAutotuner], tmp_path: Path
) -> None:
    """The frame's file says that Inductor is choosing."""
    place = tmp_path / "torch" / "_inductor" / "select_algorithm.py"
    choosing: dict[str, Any] = {"tuner": tuner_class(RuntimeError(STATIC), SimpleNamespace())}
    text = "def benchmark():\n    try: tuner._make_launchers()\n    except RuntimeError: return float('inf')\n"
    exec(compile(text, str(place), "exec"), choosing)
    assert choosing["benchmark"]() == float("inf")
    assert not folder.exists()
    kind = type("NoValidChoicesError", (RuntimeError,), {})
    hooks._watch_choices(SimpleNamespace(NoValidChoicesError=kind))
    assert str(kind("none left")) == "none left"
    assert len(written(folder)) == 1
    kind("again")
    assert len(written(folder)) == 1


def test_no_more_than_so_many(folder: Path, tuner_class: type[CachingAutotuner]) -> None:
    for number in range(40):
        with pytest.raises(RuntimeError):
            tuner_class(RuntimeError(STATIC.replace("81920", str(70000 + number))), SimpleNamespace())._make_launchers()
    assert len(written(folder)) == 32


def test_the_folder_is_made_with_its_parents(
    folder: Path, tuner_class: type[CachingAutotuner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OORTRIAGE_CAPTURE", os.fspath(folder / "deep" / "er"))
    with pytest.raises(RuntimeError):
        tuner_class(RuntimeError(STATIC), SimpleNamespace())._make_launchers()
    assert len(written(folder / "deep" / "er")) == 1
