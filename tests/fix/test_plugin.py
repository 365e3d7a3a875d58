"""The plugin on vLLM's real files, on the virtual GPU; and what it must never do."""

from __future__ import annotations

import importlib
import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from oortriage.fix import hooks, plugin
from oortriage.fix.hooks import install
from oortriage.fix.probe import Launched, ProbeJob, Row, probe
from oortriage.fix.rules import find_rule
from tests.conftest import ROOT
from tests.fix.real import A10, A100, FP32, T4, VERSIONS, real_tree, spec_of

SHAPES = [{**FP32, "window": window, "phase": phase} for window in (0, 1024) for phase in ("prefill", "decode")]
OTHER = [
    {"dtype": "float16", "head_size": 256},
    {"dtype": "float32", "head_size": 128},
    {"dtype": "bfloat16", "head_size": 128, "window": 1024, "phase": "decode"},
]
ROWS = tuple(Row(card, shape) for card in (T4, A100, A10) for shape in (*SHAPES, *OTHER))
FULL, SLIDING = {**FP32, "window": 0}, {**FP32, "window": 1024}
COMPILED = ("0.12.0", "0.17.1", "0.33.0")
POLICIES = ("", "tile16", "tile16-full", "warps2", "fittile")

Answers = dict[str, list[list[Launched]]]


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {version: real_tree(version, tmp_path_factory.mktemp(version)) for version in VERSIONS}


@pytest.fixture(scope="module")
def launched(trees: dict[str, Path]) -> Answers:
    """What every version launches, without and with each rule but the one that asks the compiler."""
    pytest.importorskip("torch")
    jobs = [ProbeJob(spec_of(tree, version), ROWS, POLICIES[:4]) for version, tree in trees.items()]
    return dict(zip(trees, probe(jobs), strict=True))


@pytest.fixture(scope="module")
def compiled(trees: dict[str, Path]) -> Answers:
    pytest.importorskip("triton")
    rows = (Row(T4, FULL), Row(T4, {"dtype": "float16", "head_size": 256}), Row(A10, SLIDING))
    jobs = [ProbeJob(spec_of(trees[version], version), rows, POLICIES, compile=True) for version in COMPILED]
    return dict(zip(COMPILED, probe(jobs), strict=True))


@pytest.mark.index
@pytest.mark.parametrize("version", VERSIONS)
def test_only_the_target_shape_changes(launched: Answers, version: str) -> None:
    plain, tile16, full, warps2 = launched[version]
    assert not [one.error for answers in launched[version] for one in answers if one.error]
    assert [one.tile for one in plain][:7:2] == [32, 32, 32, 32] or version < "0.13.0"
    for row, before, *after in zip(ROWS, plain, tile16, full, warps2, strict=True):
        target = row.card is T4 and row.shape in SHAPES
        assert after[0] == (Launched(16, before.num_warps) if target else before), row
        assert after[1] == (after[0] if target and not row.shape["window"] else before), row
        assert after[2] == (Launched(32, 2) if target and before.tile == 32 else before), row


@pytest.mark.index
@pytest.mark.parametrize("version", COMPILED)
def test_bytes_before_and_after(compiled: Answers, version: str) -> None:
    plain, tile16, full, warps2, fittile = compiled[version]
    sliding = (Launched(32, 4, 84_480), Launched(32, 4, 84_480))  # they fit up to 0.13.0
    if version != "0.12.0":
        sliding = (Launched(32, 4, 116_992), Launched(16, 4, 66_688))
    half = Launched(32, 4, 49_152)
    assert plain == [Launched(32, 4, 81_920), half, sliding[0]]
    assert tile16 == full == [Launched(16, 4, 49_152), half, sliding[0]]
    assert warps2 == [Launched(32, 2, 49_152), half, sliding[0]]
    assert fittile == [Launched(16, 4, 49_152), half, sliding[1]]


class Kernel:
    """A launchable of the shape of Triton's; says what it was launched with."""

    arg_names = ("query_ptr", "TILE_SIZE")

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def __getitem__(self, _grid: Any) -> Any:
        return lambda **named: self.seen.append(named)


def module(capability: Any = (7, 5), **more: Any) -> SimpleNamespace:
    platform = SimpleNamespace(get_device_capability=lambda: capability)
    return SimpleNamespace(__name__="vllm.x", current_platform=platform, **more)


def original(head_size: int, sliding_window: int, element_size: int, is_prefill: bool) -> int:  # noqa: ARG001
    return 32 if is_prefill else 16


def test_a_second_time_changes_nothing() -> None:
    made = module(_get_tile_size=original)
    assert install(made, find_rule("tile16"))
    first = made._get_tile_size
    assert install(made, find_rule("tile16")) == ""
    assert made._get_tile_size is first
    assert (first(256, 0, 4, True), first(256, 0, 4, is_prefill=False), first(128, 0, 4, True)) == (16, 16, 32)
    assert first(head_size=256, sliding_window=0, element_size=4, is_prefill=True) == 16


@pytest.mark.parametrize("capability", [None, "nonsense", RuntimeError("driver gone")])
def test_a_broken_platform_leaves_the_policy_as_it_was(capability: Any, caplog: pytest.LogCaptureFixture) -> None:
    made = module(capability, _get_tile_size=original)
    if isinstance(capability, Exception):

        def gone() -> None:
            raise capability

        made.current_platform.get_device_capability = gone
    install(made, find_rule("tile16"))
    with caplog.at_level(logging.WARNING, "vllm.oortriage"):
        assert [made._get_tile_size(256, 0, 4, True) for _ in range(3)] == [32, 32, 32]
    assert len(caplog.records) == (0 if capability is None else 1)


def test_the_originals_own_error_is_its_own() -> None:
    made = module(_get_tile_size=original)
    install(made, find_rule("tile16"))
    with pytest.raises(TypeError):
        made._get_tile_size(256)


def test_a_launch_that_cannot_be_read_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "_limit", lambda: 65_536)
    kernel = Kernel()
    made = module(kernel_unified_attention_2d=kernel)
    assert install(made, find_rule("warps2")) == "launches of kernel_unified_attention_2d"
    made.kernel_unified_attention_2d[(1,)](TILE_SIZE=32)
    width = SimpleNamespace(element_size=lambda: 4)
    shape = {"query_ptr": width, "key_cache_ptr": width, "HEAD_SIZE": 256, "BLOCK_M": 16, "TILE_SIZE": 32}
    made.kernel_unified_attention_2d[(1,)](**shape)
    assert [one.get("num_warps") for one in kernel.seen] == [None, 2]
    assert made.kernel_unified_attention_2d.arg_names == Kernel.arg_names


def test_a_vllm_without_a_tile_is_left_alone() -> None:
    old = Kernel()
    old.arg_names = ("query_ptr", "BLOCK_SIZE")
    made = module(kernel_unified_attention_2d=old)
    assert install(made, find_rule("tile16")) == ""
    assert made.kernel_unified_attention_2d is old


def test_the_entry_point_is_declared() -> None:
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points."vllm.general_plugins"]' in declared
    assert 'oortriage_tile_policy = "oortriage.fix.plugin:register"' in declared
    assert callable(plugin.register)


FAKE = "from platform_ import current_platform\n\n\ndef _get_tile_size(h, w, e, p):\n    return 32\n"


def in_a_process(tmp_path: Path, code: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run code beside a small package that is laid out as vLLM is."""
    ops = tmp_path / "vllm" / "v1" / "attention" / "ops"
    ops.mkdir(parents=True)
    for folder in (ops, *ops.parents[:3]):
        (folder / "__init__.py").write_text("")
    (ops / "triton_unified_attention.py").write_text(FAKE)
    (tmp_path / "platform_.py").write_text(
        "class P:\n    def get_device_capability(self):\n        return (7, 5)\ncurrent_platform = P()\n"
    )
    return subprocess.run(
        [sys.executable, "-c", "import logging; logging.basicConfig(level=20, format='%(message)s')\n" + code],
        capture_output=True, text=True, check=False, env={"PYTHONPATH": f"{tmp_path}:{ROOT}", **env},
    )  # fmt: skip


ASK = "import vllm.v1.attention.ops.triton_unified_attention as m; print(m._get_tile_size(256, 0, 4, True))"
NAME = "vllm.v1.attention.ops.triton_unified_attention"


@pytest.mark.parametrize(
    ("code", "policy", "printed", "said"),
    [
        (f"from oortriage.fix.plugin import register\nregister(); register()\n{ASK}", "tile16", "16", 1),
        (f"{ASK}\nfrom oortriage.fix.plugin import register\nregister()\n{ASK}", "TILE16-full", "32 16", 1),
        (f"from oortriage.fix.plugin import register\nregister()\n{ASK}", "", "32", 0),
        (f"from oortriage.fix.plugin import register\nregister()\n{ASK}", "tile8", "32", 1),
    ],
    ids=["before", "after", "silent", "unknown"],
)
def test_in_a_process_of_its_own(tmp_path: Path, code: str, policy: str, printed: str, said: int) -> None:
    done = in_a_process(tmp_path, code, **({plugin.VARIABLE: policy} if policy else {}))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == printed.split()
    assert len(done.stderr.splitlines()) == said


def test_loading_it_imports_neither_vllm_nor_torch(tmp_path: Path) -> None:
    code = f"import sys\nfrom oortriage.fix.plugin import register\nregister()\nprint({NAME!r} in sys.modules, *sys.modules)"
    done = in_a_process(tmp_path, code, **{plugin.VARIABLE: "tile16"})
    loaded = done.stdout.split()
    assert loaded[0] == "False"
    assert not {"vllm", "torch", "triton", "typer", "rich"} & set(loaded)


def test_tracebacks_and_inspect_still_see_the_source(tmp_path: Path) -> None:
    code = (
        f"import inspect\nfrom oortriage.fix.plugin import register\nregister()\n{ASK}\nprint(inspect.getsource(m)[:4])"
    )
    assert in_a_process(tmp_path, code, **{plugin.VARIABLE: "tile16"}).stdout.split() == ["16", "from"]


def test_an_exception_injected_into_it_goes_nowhere(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(plugin.VARIABLE, "tile16")

    def broken(_wanted: str) -> None:
        raise RuntimeError("injected")

    monkeypatch.setattr(plugin, "_register", broken)
    with caplog.at_level(logging.WARNING, "vllm.oortriage"):
        plugin.register()
    assert "injected" in caplog.text
    importlib.reload(plugin)
