"""The engine layer of a verification: run on request, for it takes a card and minutes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from oortriage.errors import OortriageError
from oortriage.fix.engine.check import EngineSpec, check_engine
from oortriage.fix.engine.run import EngineRun, Reader
from oortriage.fix.overlay import overlay
from oortriage.fix.recognise import patched
from oortriage.fix.rules import Rule
from oortriage.fix.source_patch import original_bytes
from oortriage.fix.tree import Tree, policy_file
from oortriage.fix.verify import Layer, Verification, proved


def with_engine(
    found: Verification,
    tree: Tree,
    rule: Rule,
    spec: EngineSpec,
    read: Reader,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Verification:
    """Run the engine layer and put it in the place of the one that says what it needs.

    Args:
        found: the other layers.
        tree: the vLLM, whole: an engine needs more than the policy's file.
        rule: the rule.
        spec: the failing card, and how the one that is here is used.
        read: reads the log of a run that failed.
        progress: called with (runs done, all).
    """
    try:
        original = original_bytes(tree)
        control = overlay(tree, original)
        fixed = None
        if found.by == "file":
            data = policy_file(tree).read_bytes() if found.applied else patched(original, rule)
            fixed = overlay(tree, data)
        check = check_engine(tree, rule, control, fixed, spec, read, progress=progress)
    except OortriageError as problem:
        return _with(found, Layer("engine", "not_run", f"needs a whole vLLM engine on a card: {problem}"), [])
    return _with(found, Layer("engine", "passed" if check.passed else "failed", check.detail), check.runs)


def _with(found: Verification, layer: Layer, runs: list[EngineRun]) -> Verification:
    layers = [layer if one.name == "engine" else one for one in found.layers]
    return msgspec.structs.replace(found, layers=layers, verified=proved(layers), engine=runs)
