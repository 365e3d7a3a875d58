"""Writes what an upstream pull request needs: the diff, a test of the policy, and a text that promises nothing."""

from __future__ import annotations

import msgspec

from oortriage.errors import UsageError
from oortriage.fix.recognise import patched
from oortriage.fix.rules import Rule
from oortriage.fix.source_patch import original_bytes, unified
from oortriage.fix.tree import Tree, policy_file
from oortriage.fix.verify import Verification

#: Where vLLM keeps tests of its kernels.
TEST_NAME = "tests/kernels/attention/test_triton_unified_attention_tile_policy.py"


class Export(msgspec.Struct, frozen=True):
    """Three texts: for ``git apply``, for a file of its own, and for the pull request's first comment."""

    rule: str
    version: str
    diff: str
    test_name: str
    test: str
    text: str


def export(tree: Tree, rule: Rule, verification: Verification | None = None) -> Export:
    """Write a rule as a change to that vLLM's source.

    Args:
        tree: the vLLM.
        rule: the rule; one with a smaller tile, in a release with a policy function.
        verification: what was verified; left out, the text says that nothing was.

    Raises:
        RefusedError: the file cannot be patched.
        UsageError: no test can be written for this rule or release.
    """
    path = policy_file(tree)
    before = original_bytes(tree)
    after = patched(before, rule, marked=False)
    if rule.change is None or rule.change.tile is None or b"def _get_tile_size(" not in before:
        raise UsageError("an export is for a rule with a tile (tile16, tile16-full) and for vLLM 0.13.0 or later")
    module = path.relative_to(tree.root).with_suffix("").as_posix().replace("/", ".")
    diff = unified(tree, path, before, after)
    return Export(rule.name, tree.version, diff, TEST_NAME, _test(rule, module), _text(tree, rule, verification))


def _test(rule: Rule, module: str) -> str:
    """Write a test of the policy by itself; it needs no card."""
    windowed = "None" if any(one.fact == "window" for one in rule.conditions) else str(rule.change and rule.change.tile)
    return f'''\
# SPDX-License-Identifier: Apache-2.0
"""The K/V tile of Triton unified attention must fit the card's shared memory."""

import pytest

from {module} import _get_tile_size, current_platform

FULL, SLIDING = 0, 1024


@pytest.fixture
def capability(monkeypatch, request):
    number = request.param
    monkeypatch.setattr(
        type(current_platform),
        "is_device_capability",
        classmethod(lambda cls, asked, device_id=0: asked == number),
    )
    return number


@pytest.mark.parametrize("capability", [70, 75, 80, 86, 89, 90], indirect=True)
@pytest.mark.parametrize("head_size", [64, 128, 256, 512])
@pytest.mark.parametrize("element_size", [1, 2, 4])
@pytest.mark.parametrize("sliding_window", [FULL, SLIDING])
def test_only_the_shape_that_overflows_changes(
    capability, head_size, element_size, sliding_window
):
    tile = _get_tile_size(head_size, sliding_window, element_size, is_prefill=True)
    target = (capability, head_size, element_size) == (75, 256, 4)
    if target:
        smaller = {{FULL: {rule.change.tile if rule.change else 16}, SLIDING: {windowed}}}
        assert tile == (smaller[sliding_window] or 32)
    else:
        assert tile == 32
'''


def _text(tree: Tree, rule: Rule, verification: Verification | None) -> str:
    lines = [
        "# Triton unified attention: a K/V tile that fits compute capability 7.5 in FP32",
        "",
        "## Problem",
        rule.reason,
        "",
        "## Change",
        f"{rule.title}: {rule.summary}. Every other shape, type and card keeps its tile.",
        "",
        f"Answers: {', '.join(rule.reports)}",
        "",
        f"## Verified, against {tree.version or 'this version'}",
    ]
    if verification is None:
        lines.append("Nothing yet: `oortriage patch verify` fills this in.")
    else:
        done = [one for one in verification.layers if one.status == "passed"]
        lines += [f"- {one.name}: {one.detail}" for one in done] or ["- nothing"]
        failed = [f"- {one.name}: FAILED: {one.detail}" for one in verification.layers if one.status == "failed"]
        lines += [*failed, "", "## Not verified"]
        lines += [f"- {one.name}: {one.detail}" for one in verification.layers if one.status == "not_run"]
    if verification is None:
        lines += ["", "## Not verified", "- everything"]
    lines += [f"- {one}" for one in rule.cautions]
    lines += ["", "## Test", f"`pytest {TEST_NAME}` (no card needed)", ""]
    return "\n".join(lines)
