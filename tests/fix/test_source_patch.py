"""The patch of a file on disk: identity, kills, two at once, refusals; on vLLM's real files and on a small one."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.fix import source_patch
from oortriage.fix.probe import Launched, ProbeJob, probe
from oortriage.fix.recognise import RefusedError, patched
from oortriage.fix.rules import RULES, find_rule
from oortriage.fix.source_patch import apply, backup_of, manifest_of, revert, status
from oortriage.fix.store import digest, locked
from oortriage.fix.tree import NoVllmError, Tree, find_tree, policy_file
from tests.conftest import ROOT
from tests.fix.real import VERSIONS, real_tree, spec_of
from tests.fix.test_plugin import ROWS

PATCHES = RULES[:3]

#: The parts of a policy file that a patch looks at, in words of our own.
SMALL = '''\
from vllm.platforms import current_platform


def _get_tile_size(
    head_size: int,
    sliding_window: int,
    element_size: int,
    is_prefill: bool,
) -> int:
    """Choose."""
    if _is_gemma3_attention(head_size, sliding_window):
        return 32
    if is_prefill:
        return 32
    return 16 if element_size >= 2 else 32


def unified_attention(q, k, window_size):
    TILE_SIZE_PREFILL = _get_tile_size(
        head_size, sliding_window_val, q.element_size(), is_prefill=True
    )
    TILE_SIZE_DECODE = _get_tile_size(
        head_size, sliding_window_val, q.element_size(), is_prefill=False
    )
    kernel_unified_attention[grid](
        output_ptr=out,
        TILE_SIZE=tile_size,
        HEAD_SIZE=head_size,
        BLOCK_M=BLOCK_M,
    )
'''
NAME = "vllm/v1/attention/ops/triton_unified_attention.py"
TILE16 = find_rule("tile16")


def made(root: Path, text: str | bytes = SMALL) -> Tree:
    path = root / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Tree(root, "9.9.9", "made")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return made(tmp_path / "site")


def beside(tree: Tree) -> list[str]:
    return sorted(one.name for one in policy_file(tree).parent.iterdir())


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {version: real_tree(version, tmp_path_factory.mktemp(version)) for version in VERSIONS}


@pytest.mark.index
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("rule", PATCHES, ids=lambda rule: rule.name)
def test_apply_then_revert_is_the_identity(real: dict[str, Path], version: str, rule: object) -> None:
    tree = find_tree(real[version])
    assert tree.version == version
    original, names = policy_file(tree).read_bytes(), beside(tree)
    first = apply(tree, rule)
    new = policy_file(tree).read_bytes()
    assert (first.action, first.sha256_before, first.sha256_after) == ("applied", digest(original), digest(new))
    assert new != original
    compile(new, "policy", "exec")
    again = apply(tree, rule)
    assert (again.action, again.changed) == ("nothing", False)
    assert policy_file(tree).read_bytes() == new
    assert (status(tree).state, status(tree).rule) == ("applied", rule.name)
    assert revert(tree).action == "reverted"
    assert policy_file(tree).read_bytes() == original
    assert beside(tree) == names
    assert (revert(tree).action, status(tree).state) == ("nothing", "not_applied")


@pytest.mark.index
def test_patched_files_choose_as_the_plugin_does(real: dict[str, Path]) -> None:
    """The same policy by both ways, in every version, for every row of the truth table."""
    pytest.importorskip("torch")
    rules = [rule.name for rule in PATCHES]
    jobs = [ProbeJob(spec_of(tree, version), ROWS, tuple(rules)) for version, tree in real.items()]
    for rule in rules:
        for version, root in real.items():
            whole = root.parent / f"{root.name}-{rule}"
            shutil.copytree(root, whole)
            apply(find_tree(whole), find_rule(rule))
            jobs.append(ProbeJob(spec_of(whole, version), ROWS))
    answers = probe(jobs)
    by_plugin, by_patch = answers[: len(real)], answers[len(real) :]
    for index, rule in enumerate(rules):
        for place, version in enumerate(real):
            (own,) = by_patch[index * len(real) + place]
            assert own == by_plugin[place][index], (rule, version)
            assert Launched(error="") not in own


@given(st.sampled_from(PATCHES), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.text(max_size=40))
def test_whatever_stands_round_it_stays(rule: object, end: str, last: bool, more: str) -> None:
    text = SMALL + "# " + more.replace("\r", " ").replace("\n", " ").replace("\0", " ").replace("\f", " ")
    data = (text + "\n" * last).replace("\n", end).encode("utf-8", "ignore")
    if b"# oortriage " in data:
        return
    new = patched(data, rule)
    kept = [line for line in new.splitlines(keepends=True) if line in data.splitlines(keepends=True)]
    assert b"".join(kept).count(b"kernel_unified_attention[grid](") == 1
    begin, stop = new.index(b"# oortriage"), new.rindex(b": end")
    start, after = new.rindex(b"\n", 0, begin) + 1, new.index(b"\n", stop) + 1
    assert new[:start] + new[after:] == data


def steps(tree: Tree, do: object) -> list[str]:
    seen: list[str] = []
    do(tree, seen.append)
    return seen


def _apply(tree: Tree, step: object) -> None:
    apply(tree, TILE16, step=step)


def _revert(tree: Tree, step: object) -> None:
    revert(tree, step=step)


@pytest.mark.parametrize("action", ["apply", "revert"])
def test_a_kill_at_every_step_leaves_a_whole_file(tmp_path: Path, action: str) -> None:
    """The process dies with no chance to clean up; the file is old or new, and both ways are open after it."""
    trial = made(tmp_path / "trial")
    names = steps(trial, _apply)
    if action == "revert":
        names = steps(trial, _revert)
    assert len(names) >= 6
    old, new = SMALL.encode(), patched(SMALL.encode(), TILE16)
    ended = set()
    for number in range(len(names)):
        tree = made(tmp_path / str(number))
        if action == "revert":
            apply(tree, TILE16)
        child = os.fork()
        if child == 0:  # what dies here runs neither `finally` nor exit handlers
            count = iter(range(len(names) + 1))

            def die(_name: str, count: Iterator[int] = count, number: int = number) -> None:
                if next(count) == number:
                    os._exit(9)

            (_apply if action == "apply" else _revert)(tree, die)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        found = policy_file(tree).read_bytes()
        assert found in (old, new), names[number]
        ended.add(found == new)
        assert status(tree).state == ("applied" if found == new else "not_applied")
        if number % 2:
            apply(tree, TILE16)
            assert policy_file(tree).read_bytes() == new
        revert(tree)
        assert policy_file(tree).read_bytes() == old
        assert beside(tree) == [policy_file(tree).name], names[number]
    assert ended == {True, False}


def test_two_at_once_take_turns(tree: Tree) -> None:
    code = (
        "import sys, time; from pathlib import Path; from oortriage.fix.rules import find_rule\n"
        "from oortriage.fix.source_patch import apply; from oortriage.fix.tree import Tree\n"
        f"tree = Tree(Path({str(tree.root)!r}), '9.9.9', 'made')\n"
        "print(apply(tree, find_rule('tile16'), step=lambda _: time.sleep(0.05)).action)"
    )
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in "ab"]
    said = sorted(one.communicate(timeout=60)[0].strip() for one in both)
    assert said == ["applied", "nothing"]
    assert policy_file(tree).read_bytes() == patched(SMALL.encode(), TILE16)
    revert(tree)
    assert beside(tree) == [policy_file(tree).name]


def test_a_lock_that_is_held_is_waited_for(tree: Tree) -> None:
    path = policy_file(tree)
    with locked(path), pytest.raises(Exception, match="did not end within"), locked(path, wait=0.1):
        pass


def refused(tree: Tree, rule: object = TILE16) -> str:
    before = policy_file(tree).read_bytes()
    with pytest.raises(RefusedError) as problem:
        apply(tree, rule)
    assert policy_file(tree).read_bytes() == before
    return str(problem.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("return 32\n    if is", "return 16\n    if is", "patched by someone else"),
        ("is_prefill=False", "is_prefill=True", "patched by someone else"),
        ("import current_platform", "import platform", "current_platform"),
        ("def unified_attention", "def other", "unknown file"),
        ("TILE_SIZE", "BLOCK_SIZE", "--block-size 16"),
        ("def unified_attention(", "def unified_attention((", "no Python"),
        ("    is_prefill: bool,\n", "    is_prefill: bool,\n    more: int,\n", "other parameters"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert words in refused(made(tmp_path, SMALL.replace(old, new)))


def test_a_foreign_edit_after_the_patch(tree: Tree) -> None:
    apply(tree, TILE16)
    path = policy_file(tree)
    path.write_bytes(path.read_bytes() + b"# mine\n")
    edited = path.read_bytes()
    with pytest.raises(RefusedError, match="changed since"):
        revert(tree)
    assert path.read_bytes() == edited
    assert status(tree).state == "changed_since"
    assert "already patched by oortriage" in refused(tree)


def test_an_upgrade_over_the_patch_can_be_patched_again(tree: Tree) -> None:
    apply(tree, TILE16)
    path = policy_file(tree)
    path.write_bytes(SMALL.encode() + b"# a newer release\n")
    assert apply(tree, TILE16).changed
    revert(tree)
    assert path.read_bytes().endswith(b"# a newer release\n")


def test_another_rule_needs_a_revert_first(tree: Tree) -> None:
    apply(tree, TILE16)
    assert "revert" in refused(tree, find_rule("warps2"))


def test_the_fitting_tile_is_the_plugins(tree: Tree) -> None:
    assert "OORTRIAGE_TILE_POLICY=fittile" in refused(tree, find_rule("fittile"))


def test_a_damaged_original_is_not_put_back(tree: Tree) -> None:
    apply(tree, TILE16)
    backup_of(policy_file(tree)).write_bytes(b"torn")
    with pytest.raises(RefusedError, match="gone or damaged"):
        revert(tree)


def test_a_file_that_the_installation_does_not_know(tree: Tree) -> None:
    info = tree.root / "vllm-9.9.9.dist-info"
    info.mkdir()
    stated = base64.urlsafe_b64encode(hashlib.sha256(SMALL.encode()).digest()).rstrip(b"=").decode()
    (info / "RECORD").write_text(f"{NAME},sha256={stated},{len(SMALL)}\n")
    assert apply(tree, TILE16).changed
    revert(tree)
    policy_file(tree).write_bytes(SMALL.encode() + b"\n")
    assert "someone else" in refused(tree)


def test_read_only_trees(tree: Tree) -> None:
    folder = policy_file(tree).parent
    folder.chmod(0o555)
    try:
        assert "read-only" in refused(tree)
        assert status(tree).state == "refused"
    finally:
        folder.chmod(0o755)


def test_links_into_another_tree(tree: Tree, tmp_path: Path) -> None:
    path = policy_file(tree)
    store = tmp_path / "store.py"
    path.rename(store)
    path.symlink_to(store)
    assert "is a link" in refused(tree)
    path.unlink()
    other = made(tmp_path / "other")
    path.parent.rmdir()
    path.parent.symlink_to(policy_file(other).parent)
    assert "is a link" in refused(tree)


def test_another_users_tree(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_patch.os, "geteuid", lambda: 4711)
    assert "another user" in refused(tree)


def test_no_vllm(tmp_path: Path) -> None:
    with pytest.raises(NoVllmError, match="no vLLM in there"):
        find_tree(tmp_path)
    with pytest.raises(NoVllmError, match="has no vLLM"):
        find_tree(python=Path(sys.executable))


def test_another_environments_vllm_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = made(tmp_path).root
    (root / "vllm" / "__init__.py").write_text("raise SystemExit('imported')")
    (root / "vllm-0.17.1.dist-info").mkdir()
    (root / "vllm-0.17.1.dist-info" / "METADATA").write_text("Name: vllm\nVersion: 0.17.1\n")
    monkeypatch.setenv("PYTHONPATH", str(root))
    found = find_tree(python=Path(sys.executable))
    assert (found.root, found.version) == (root, "0.17.1")
    assert find_tree(root).version == "0.17.1"
    assert find_tree(root / "vllm").root == root


def test_a_dry_run_writes_nothing(tree: Tree, tmp_path: Path) -> None:
    planned = apply(tree, TILE16, dry_run=True)
    assert beside(tree) == [policy_file(tree).name]
    assert (planned.action, planned.changed) == ("would_apply", False)
    (tmp_path / "p.diff").write_text(planned.diff)
    done = subprocess.run(
        ["patch", "-p1", "-i", str(tmp_path / "p.diff")], cwd=tree.root, check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert policy_file(tree).read_bytes() == patched(SMALL.encode(), TILE16)


def test_compiled_files_and_the_mode(tree: Tree) -> None:
    path = policy_file(tree)
    path.chmod(0o664)
    cached = path.parent / "__pycache__"
    cached.mkdir()
    (cached / "triton_unified_attention.cpython-311.pyc").write_bytes(b"stale")
    (cached / "other.cpython-311.pyc").write_bytes(b"another's")
    apply(tree, TILE16)
    assert [one.name for one in cached.iterdir()] == ["other.cpython-311.pyc"]
    assert path.stat().st_mode & 0o777 == 0o664


def test_the_manifest(tree: Tree) -> None:
    apply(tree, TILE16)
    stated = json.loads(manifest_of(policy_file(tree)).read_text())
    assert stated["sha256_before"] == digest(SMALL.encode())
    assert stated["sha256_after"] == digest(policy_file(tree).read_bytes())
    assert (stated["rule"], stated["vllm_version"], stated["file"]) == ("tile16", "9.9.9", NAME)
    assert stated["time"].endswith("+00:00")
