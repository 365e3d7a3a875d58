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
    windows = "(FULL,)" if any(one.fact == "window" for one in rule.conditions) else "(FULL, SLIDING)"
    return f'''\
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vLLM project
"""The K/V tile of Triton unified attention must fit the card's shared memory."""

import pytest

from {module} import _get_tile_size, current_platform

FULL, SLIDING = 0, 1024
# Compute capability, head size, bytes an element: with a tile of 32 a block needs
# 81,920 bytes of shared memory, and the card has 65,536.
TARGET = (75, 256, 4)
WINDOWS = {windows}
SMALLER = {rule.change.tile if rule.change else 16}


@pytest.fixture
def on(monkeypatch):
    """Let the platform answer for a card of another compute capability."""

    def answer_for(number):
        monkeypatch.setattr(
            type(current_platform),
            "is_device_capability",
            classmethod(lambda cls, asked, device_id=0: asked in (number, divmod(number, 10))),
        )

    return answer_for


@pytest.mark.parametrize("capability", [70, 75, 80, 86, 89, 90, 100, 120])
@pytest.mark.parametrize("head_size", [64, 128, 256, 512])
@pytest.mark.parametrize("element_size", [1, 2, 4])
@pytest.mark.parametrize("sliding_window", [FULL, SLIDING])
@pytest.mark.parametrize("is_prefill", [True, False])
def test_only_the_shape_that_overflows_changes(
    on, capability, head_size, element_size, sliding_window, is_prefill
):
    on(80)
    elsewhere = _get_tile_size(head_size, sliding_window, element_size, is_prefill)
    assert elsewhere == 32 or not is_prefill

    on(capability)
    tile = _get_tile_size(head_size, sliding_window, element_size, is_prefill)
    overflows = (capability, head_size, element_size) == TARGET
    if overflows and sliding_window in WINDOWS:
        assert tile == min(elsewhere, SMALLER)
    else:
        assert tile == elsewhere
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
