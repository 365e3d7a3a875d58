"""The exported test, run: it holds on the file that the exported diff makes, and on no other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from oortriage.errors import UsageError
from oortriage.fix.export import Export, export
from oortriage.fix.recognise import RefusedError
from oortriage.fix.rules import find_rule
from oortriage.fix.tree import find_tree, policy_file
from tests.conftest import ROOT
from tests.fix.real import real_tree
from tests.fix.test_source_patch import SMALL, made

#: What makes vLLM's attention file importable without vLLM: the test itself only knows vLLM's own names.
CONFTEST = """\
from oortriage.fix.impact import RECIPE, card_of
from oortriage.kernels.libraries import open_library
from oortriage.kernels.registry import find_recipe
from oortriage.kernels.source import SourceSpec

open_library(find_recipe(RECIPE), SourceSpec("vllm", {version!r}, "folder", {root!r}), card_of("A100"))
"""
GEMMA = "\n\ndef _is_gemma3_attention(head_size, sliding_window):\n    return sliding_window == 1024 and head_size in (128, 256)\n"
PLATFORMS = """\
class Platform:
    @classmethod
    def is_device_capability(cls, capability, device_id=0):
        return False

current_platform = Platform()
"""
#: Edits of the patched file that the test must not let through: another card, another width, another head.
WRONG = (
    ("is_device_capability(75)", "is_device_capability(86)"),
    ("element_size == 4", "element_size >= 2"),
    ("head_size == 256", "head_size >= 256"),
)


class Trial:
    """One pytest in a child process, with a tree's vLLM: begun at once, so that trials share the time."""

    def __init__(self, exported: Export, folder: Path, *, path: Path = ROOT, conftest: str = "") -> None:
        folder.mkdir()
        (folder / "conftest.py").write_text(conftest)
        (folder / "pytest.ini").write_text("[pytest]\n")  # else this repository's own settings might hold
        test = folder / Path(exported.test_name).name
        test.write_text(exported.test)
        command = [sys.executable, "-m", "pytest", "-q", "-rf", "--tb=no", "-p", "no:cacheprovider", test.name]
        self._child = subprocess.Popen(
            command,
            cwd=folder,
            env={"PYTHONPATH": str(path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def ended(self) -> tuple[int, str, set[str]]:
        """Return the exit code, what was said, and the parameters of the tests that failed."""
        said = self._child.communicate(timeout=300)[0]
        return self._child.returncode, said, set(re.findall(r"^FAILED \S+\[(\S+)\]", said, re.MULTILINE))


@pytest.mark.index
@pytest.mark.parametrize(
    ("version", "rule", "failing"),
    [
        # is_prefill, window, width, head, capability; a decode without a window has the smaller tile already
        ("0.13.0", "tile16", {"True-0-4-256-75", "True-1024-4-256-75", "False-1024-4-256-75"}),
        ("0.33.0", "tile16-full", {"True-0-4-256-75"}),
    ],
)
def test_the_exported_test_holds_on_the_patched_file_alone(
    tmp_path: Path, version: str, rule: str, failing: set[str]
) -> None:
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    plain, fixed = (find_tree(real_tree(version, tmp_path / name)) for name in ("plain", "fixed"))
    exported = export(plain, find_rule(rule))
    applied = subprocess.run(
        ["patch", "-p1"], cwd=fixed.root, input=exported.diff, text=True, capture_output=True, check=False
    )
    assert applied.returncode == 0, applied.stdout
    before, after = (
        Trial(
            exported,
            tree.root.parent / f"test-{tree.root.name}",
            conftest=CONFTEST.format(version=version, root=str(tree.root)),
        )
        for tree in (plain, fixed)
    )
    code, said, failed = after.ended()
    assert (code, failed) == (0, set()), said
    assert "384 passed" in said
    code, said, failed = before.ended()
    assert (code, failed) == (1, failing), said


def test_the_exported_test_lets_no_wider_change_through(tmp_path: Path) -> None:
    """On a small file with the same policy: no other package is needed to import it."""
    trials = []
    for number, (right, wrong) in enumerate((("", ""), *WRONG)):
        tree = made(tmp_path / f"tree{number}", SMALL + GEMMA)
        (tree.root / "vllm" / "platforms.py").write_text(PLATFORMS)
        exported = export(tree, find_rule("tile16"))
        subprocess.run(["patch", "-s", "-p1"], cwd=tree.root, input=exported.diff, text=True, check=True)
        text = policy_file(tree).read_text()
        assert not right or text.count(right) == 1
        policy_file(tree).write_text(text.replace(right, wrong) if right else text)
        trials.append(Trial(exported, tmp_path / f"trial{number}", path=tree.root))
    assert [trial.ended()[0] for trial in trials] == [0, 1, 1, 1]


@pytest.mark.index
def test_what_cannot_be_exported(tmp_path: Path) -> None:
    tree = find_tree(real_tree("0.12.0", tmp_path / "old"))
    with pytest.raises(UsageError, match=r"0\.13\.0 or later"):
        export(tree, find_rule("tile16"))
    with pytest.raises(RefusedError, match="the plugin"):
        export(tree, find_rule("fittile"))
