"""What each rule makes of each vLLM release: recognised, patched and taken back, bytes before and after.

``python benchmarks/policy_table.py`` compiles 0.11.0 and the last patch of every minor release from 0.10 on, without
and with each rule, and writes ``docs/evidence/policy.md`` and ``policy.json``; ``--versions 0.11.0,0.17.1`` asks for others,
``--out FOLDER`` writes elsewhere. A rule for the file is compiled from the patched file, and again from the original
with the plugin's hooks, which must give the same; FITTILE, which no file can hold, by the plugin alone, against every
tile compiled without hooks. It needs Triton, torch (a CPU build) and the package index, and no GPU. It ends with 1
where a row is not as it must be.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import platform
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from oortriage.errors import OortriageError
from oortriage.fix.hooked import pairs
from oortriage.fix.impact import CARDS, Impact, card_of, measured_impact, shapes
from oortriage.fix.overlay import overlay
from oortriage.fix.probe import ProbeJob, Row, probe
from oortriage.fix.recognise import RefusedError, patched
from oortriage.fix.rules import RULES, Rule
from oortriage.fix.source_patch import apply, revert
from oortriage.fix.tree import Tree, materialise, policy_file
from oortriage.kernels.source.wheel import released_versions
from oortriage.replay.compiler_env import compiler_env

FOLDER = Path(__file__).parent.parent / "docs" / "evidence"
#: The columns: FP32, head size 256, prefill.
SHOWN = (("T4", 0, "sm_75 full"), ("T4", 1024, "sm_75 sliding"), ("A10", 1024, "sm_86 sliding"))
#: What a row of the data holds.
ROW = ("gpu", "dtype", "head_size", "window", "phase", "before_bytes", "after_bytes", "change")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--versions", default="")
    parser.add_argument("--out", type=Path, default=FOLDER)
    args = parser.parse_args()
    versions = [one for one in args.versions.split(",") if one] or _versions()
    triton = compiler_env("").version
    results = []
    for version in versions:
        results += _release(version)
        print(version, "; ".join(f"{one['rule']}: {_verdict(one)}" for one in results if one["version"] == version))
    about = {
        "date": str(dt.datetime.now(dt.timezone.utc).date()),
        "triton": triton,
        "python": platform.python_version(),
        "gpu": "none",
        "cards": {name: f"{card_of(name).target.name}, {card_of(name).limit_bytes:,} bytes" for name in CARDS},
    }
    lines = ",\n".join(json.dumps(one) for one in results)
    head = json.dumps({**about, "row": ROW}, indent=1).removesuffix("\n}")
    (args.out / "policy.json").write_text(f'{head},\n "results": [\n{lines}\n]}}\n', encoding="utf-8")
    (args.out / "policy.md").write_text(_page(about, results), encoding="utf-8")
    return 1 if any(one["wrong"] for one in results) else 0


def _versions() -> list[str]:
    """List the releases: 0.11.0 was the first with a tile of its own, and is no minor release's last patch."""
    oldest, *later = released_versions("vllm", "0.10")
    return [oldest, "0.11.0", *later]


def _release(version: str) -> list[dict[str, Any]]:
    """Ask one release for every rule."""
    tree = Tree(materialise(version), version, "its wheel's files")
    rows = tuple(Row(card, shape) for card in map(card_of, CARDS) for shape in shapes(card))
    names = [rule.name for rule in RULES if rule.change is not None]
    (hooked,) = probe([ProbeJob(overlay(tree, policy_file(tree).read_bytes()), rows, tuple(names), compile=True)])
    by_plugin = {name: [one.required_bytes for one in answers] for name, answers in zip(names, hooked, strict=True)}
    return [_rule(tree, rule, by_plugin.get(rule.name)) for rule in RULES]


def _rule(tree: Tree, rule: Rule, hooked: list[int | None] | None) -> dict[str, Any]:
    """Compile one rule's table for one release.

    Args:
        tree: the release.
        rule: the rule.
        hooked: bytes a row as the plugin's hooks launch it; None for a rule that only the plugin has.
    """
    env = compiler_env("")
    original = policy_file(tree).read_bytes()
    control = overlay(tree, original)
    told: dict[str, Any] = {"version": tree.version, "rule": rule.name, "by": "file and plugin", "refused": ""}
    wrong: list[str] = []
    if hooked is None:
        told["by"] = "plugin"
        found = pairs(rule, CARDS, control, env)
        table = [one.impact for one in found]
        wrong += [
            f"{one.named}: not as compiled without hooks"
            for one in found
            if (one.plain, one.hooked) != (one.plain_expected, one.expected)
        ]
    else:
        try:
            table = measured_impact(rule, CARDS, control, overlay(tree, patched(original, rule)), env)
            wrong += [] if _comes_back(tree, rule) else ["the original does not come back"]
        except RefusedError as problem:
            return {**told, "refused": str(problem), "wrong": [], "rows": []}
        told["plugin_same"] = hooked == [one.after_bytes for one in table]
        wrong += [] if told["plugin_same"] else ["the plugin launches other than the patched file"]
    wrong += [f"{one.gpu} {one.dtype} {one.head_size} {one.window} {one.phase}" for one in table if not one.as_expected]
    if not any(one.changes for one in table):
        told["refused"] = "the hooks change nothing: this vLLM has no tile of its own"
    changed = sum(one.changes for one in table)
    identical = sum(not one.changes and one.before_bytes == one.after_bytes for one in table)
    told |= {"changed": changed, "identical": identical, "wrong": wrong}
    return {**told, "shown": _shown(table), "rows": [[getattr(one, name) for name in ROW] for one in table]}


def _comes_back(tree: Tree, rule: Rule) -> bool:
    """Patch a copy as a user's is patched, take it back, and compare the bytes."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(tree.root / "vllm", Path(folder, "vllm"))
        copy = Tree(Path(folder), tree.version, "a copy")
        before = policy_file(copy).read_bytes()
        done = apply(copy, rule)
        after = policy_file(copy).read_bytes()
        revert(copy)
        return done.changed and before != after and policy_file(copy).read_bytes() == before


def _shown(table: list[Impact]) -> dict[str, tuple[int | None, int | None, int]]:
    found = {}
    for gpu, window, title in SHOWN:
        asked = (gpu, "float32", 256, window, "prefill")
        (row,) = (one for one in table if (one.gpu, one.dtype, one.head_size, one.window, one.phase) == asked)
        found[title] = (row.before_bytes, row.after_bytes, row.limit_bytes)
    return found


def _verdict(result: dict[str, Any]) -> str:
    if result["wrong"]:
        return f"WRONG: {result['wrong'][0]}"
    return "refused" if result["refused"] else "as it must be"


def _cell(result: dict[str, Any], title: str) -> str:
    before, after, limit = result["shown"][title] if "shown" in result else (None, None, 0)
    if before is None or after is None:
        return "-"
    over = " (over)" if after > limit else ""
    return f"{before:,}{over}" if before == after else f"{before:,} -> {after:,}{over}"


def _page(about: dict[str, Any], results: list[dict[str, Any]]) -> str:
    good = [one for one in results if not one["wrong"] and not one["refused"]]
    refused = [one for one in results if one["refused"]]
    wrong = [one for one in results if one["wrong"]]
    releases = list(dict.fromkeys(one["version"] for one in good))
    asked = sum(len(one["rows"]) for one in good)
    changed = sum(one["changed"] for one in good)
    cards = ", ".join(f"{name} ({told})" for name, told in about["cards"].items())
    lines = [
        "# The rules, release by release",
        "",
        f"{about['date']}, Triton {about['triton']}, Python {about['python']}, no GPU. Written by",
        "`python benchmarks/policy_table.py`; `policy.json` holds every row.",
        "",
        f"{len(releases)} releases ({releases[0]} to {releases[-1]}), {asked:,} rows compiled from vLLM's own files before and",
        f"after: {changed} changed, the other {asked - changed:,} identical to the byte; {len(wrong)} results are not as they must be.",
        "",
        "Bytes of shared memory a block, FP32, head size 256, prefill; sliding is a window of 1,024; (over) is more than the",
        "card has, with the rule too. Cards:",
        f"{cards}.",
        "The rows beside those shown: FP16, head size 128 and decode on the T4, decode on the others; for FITTILE head",
        'size 512 as well. "Patched" means that the file was recognised and patched in a copy, and came back to the byte;',
        "then the plugin's hooks on the original file launched the same bytes, row by row. FITTILE is by plugin alone,",
        "held against every tile compiled without hooks.",
        "",
        "| vLLM | rule | patched | sm_75 full (65,536) | sm_75 sliding (65,536) | sm_86 sliding (101,376) "
        "| rows changed | others identical |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for one in results:
        how = "no" if one["refused"] else "by plugin" if one["by"] == "plugin" else "yes, and by plugin"
        if one["wrong"]:
            how = f"WRONG: {one['wrong'][0]}"
        cells = " | ".join(_cell(one, title) for _, _, title in SHOWN)
        counts = f"{one.get('changed', '-')} | {one.get('identical', '-')}"
        lines.append(f"| {one['version']} | {one['rule']} | {how} | {cells} | {counts} |")
    if refused:
        whys: dict[str, list[str]] = {}
        for one in refused:
            whys.setdefault(one["refused"], []).append(f"{one['version']} {one['rule']}")
        lines += ["", "Not patched, and why:", "", *(f"- {', '.join(who)}: {why}" for why, who in whys.items())]
    lines += [
        "",
        "What this does not say: that a kernel runs or is right (`h200.md`), or how fast it is on a T4: no real one has",
        "run it.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OortriageError as problem:
        sys.exit(str(problem))
