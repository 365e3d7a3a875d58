"""Patches the installed policy file, and takes it back to the byte: apply, status, revert."""

from __future__ import annotations

import base64
import csv
import difflib
import hashlib
import importlib.metadata
import os
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import msgspec

from oortriage.errors import OortriageError
from oortriage.fix.recognise import MARK, RefusedError, patched
from oortriage.fix.rules import Rule
from oortriage.fix.store import Step, digest, forget_compiled, locked, nothing, sweep, write_whole
from oortriage.fix.tree import Tree, policy_file

SCHEMA_VERSION = 1
State = Literal["not_applied", "applied", "changed_since", "refused"]


class Manifest(msgspec.Struct, frozen=True):
    """What was done to a file; it lies beside it."""

    schema_version: int
    file: str
    vllm_version: str
    rule: str
    sha256_before: str
    sha256_after: str
    backup: str
    time: str
    oortriage: str


class Status(msgspec.Struct, frozen=True):
    """How a file stands. ``detail`` says why where it is refused or changed."""

    state: State
    file: str
    vllm: str
    version: str
    sha256: str
    rule: str = ""
    detail: str = ""
    manifest: Manifest | None = None


class Change(msgspec.Struct, frozen=True):
    """What apply or revert did. ``changed`` is false where nothing was to be done."""

    action: Literal["applied", "reverted", "nothing", "would_apply"]
    changed: bool
    rule: str
    file: str
    vllm: str
    version: str
    sha256_before: str
    sha256_after: str
    backup: str = ""
    diff: str = ""
    notes: list[str] = []


def backup_of(path: Path) -> Path:
    """Say where a file's original is kept."""
    return path.with_name(f"{path.name}.oortriage-original")


def manifest_of(path: Path) -> Path:
    """Say where a file's manifest is kept."""
    return path.with_name(f"{path.name}.oortriage.json")


def apply(tree: Tree, rule: Rule, *, dry_run: bool = False, step: Step = nothing) -> Change:
    """Put a rule into a vLLM's policy file.

    Args:
        tree: the vLLM.
        rule: the rule.
        dry_run: write nothing, and return the diff.
        step: called between steps of the write.

    Raises:
        RefusedError: the file must not or cannot be patched; the message says which case it is.
    """
    path = policy_file(tree)
    if dry_run:
        return _planned(tree, rule, path)
    _refuse_place(tree, path)
    try:
        with locked(path):
            sweep(path)
            return _apply(tree, rule, path, step)
    except OSError as problem:
        raise RefusedError(_unwritable(path, problem)) from problem


def _planned(tree: Tree, rule: Rule, path: Path) -> Change:
    now, manifest = path.read_bytes(), _manifest(path)
    if manifest and digest(now) == manifest.sha256_after:
        return _done_before(tree, rule, path, manifest)
    new = _new(tree, rule, path, now)
    return _change("would_apply", tree, rule.name, path, now, new, diff=unified(tree, path, now, new))


def _apply(tree: Tree, rule: Rule, path: Path, step: Step) -> Change:
    now, manifest = path.read_bytes(), _manifest(path)
    if manifest and digest(now) == manifest.sha256_after:
        return _done_before(tree, rule, path, manifest)
    new = _new(tree, rule, path, now)
    backup = backup_of(path)
    stated = Manifest(
        SCHEMA_VERSION,
        _relative(tree, path),
        tree.version,
        rule.name,
        digest(now),
        digest(new),
        backup.name,
        datetime.now(timezone.utc).isoformat(timespec="seconds"),
        version("oortriage"),
    )
    write_whole(backup, now, step, like=path)
    write_whole(manifest_of(path), msgspec.json.format(msgspec.json.encode(stated)) + b"\n", step)
    forget_compiled(path)  # before as well: a kill after the write must not leave one that is taken for good
    write_whole(path, new, step, like=path)
    forget_compiled(path)
    notes = ["a vLLM that runs already keeps the file it has read: restart it"]
    return _change(
        "applied", tree, rule.name, path, now, new, backup=backup.name, diff=unified(tree, path, now, new), notes=notes
    )


def _new(tree: Tree, rule: Rule, path: Path, now: bytes) -> bytes:
    new = patched(now, rule)
    if _recorded(tree, path) not in ("", _record_digest(now)):
        raise RefusedError(
            f"{_relative(tree, path)} was patched by someone else: it is not the file that vLLM's own record of its "
            "installation states; reinstall vLLM, or use the plugin (OORTRIAGE_TILE_POLICY)"
        )
    return new


def _done_before(tree: Tree, rule: Rule, path: Path, manifest: Manifest) -> Change:
    if manifest.rule != rule.name:
        raise RefusedError(f"already patched with {manifest.rule}: `oortriage patch revert` first, then {rule.name}")
    now = path.read_bytes()
    return _change("nothing", tree, rule.name, path, now, now, backup=manifest.backup, notes=["it is applied already"])


def revert(tree: Tree, *, step: Step = nothing) -> Change:
    """Put the original bytes back.

    Raises:
        RefusedError: the file was changed since, or the original is gone or damaged.
    """
    path = policy_file(tree)
    _refuse_place(tree, path)
    try:
        with locked(path):
            sweep(path)
            return _revert(tree, path, step)
    except OSError as problem:
        raise RefusedError(_unwritable(path, problem)) from problem


def _revert(tree: Tree, path: Path, step: Step) -> Change:
    now, manifest, backup = path.read_bytes(), _manifest(path), backup_of(path)
    if manifest is None:
        if MARK in now:
            raise RefusedError("it is patched by oortriage, and the manifest is gone: reinstall vLLM")
        backup.unlink(missing_ok=True)
        return _change("nothing", tree, "", path, now, now, notes=["no patch is applied"])
    before = now
    if digest(now) == manifest.sha256_after:
        original = backup.read_bytes() if backup.is_file() else b""
        if digest(original) != manifest.sha256_before:
            raise RefusedError(
                f"the original ({backup.name}) is gone or damaged: reinstall vLLM {manifest.vllm_version}"
            )
        forget_compiled(path)
        write_whole(path, original, step, like=path)
        forget_compiled(path)
        now = original
    elif digest(now) != manifest.sha256_before:
        raise RefusedError(
            f"{_relative(tree, path)} changed since it was patched (an upgrade, or another edit): nothing is taken "
            f"back; the original is in {backup.name}"
        )
    step("before the manifest goes")
    manifest_of(path).unlink(missing_ok=True)
    step("before the original goes")
    backup.unlink(missing_ok=True)
    changed = before != now
    return _change("reverted" if changed else "nothing", tree, manifest.rule, path, before, now)


def status(tree: Tree) -> Status:
    """Say how a vLLM's policy file stands; nothing is written."""
    path = policy_file(tree)
    now, manifest = path.read_bytes(), _manifest(path)

    def stands(state: State, rule: str = "", detail: str = "") -> Status:
        return Status(state, _relative(tree, path), tree.named, tree.version, digest(now), rule, detail, manifest)

    if manifest and digest(now) == manifest.sha256_after:
        return stands("applied", manifest.rule)
    if manifest and digest(now) != manifest.sha256_before:
        return stands("changed_since", manifest.rule, "the file is neither what was written nor the original")
    from oortriage.fix.rules import RULES

    try:
        _new(tree, RULES[0], path, now)
        _refuse_place(tree, path)
    except RefusedError as problem:
        return stands("refused", detail=str(problem))
    return stands("not_applied")


def original_bytes(tree: Tree) -> bytes:
    """Return the policy file as it was before a patch, or as it is.

    Raises:
        RefusedError: it is patched, and the original is gone.
    """
    path = policy_file(tree)
    now, manifest = path.read_bytes(), _manifest(path)
    if manifest is None or digest(now) != manifest.sha256_after:
        return now
    kept = backup_of(path)
    original = kept.read_bytes() if kept.is_file() else b""
    if digest(original) != manifest.sha256_before:
        raise RefusedError(f"the original ({kept.name}) is gone or damaged")
    return original


def unified(tree: Tree, path: Path, before: bytes, after: bytes) -> str:
    """Write the difference as ``git apply`` and ``patch -p1`` take it."""
    name = _relative(tree, path)
    old, new = (one.decode("utf-8", "surrogateescape").splitlines(keepends=True) for one in (before, after))
    return "".join(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"))


def _refuse_place(tree: Tree, path: Path) -> None:
    """Refuse a tree that is not ours to write: links out of it, another's files, one without write permission."""
    root = tree.root.resolve()
    if path.is_symlink() or path.resolve() != root / path.relative_to(tree.root):
        raise RefusedError(
            f"{_relative(tree, path)} is a link, or lies behind one: the file belongs to another tree (a package "
            "manager's store?), which others may share; use the plugin (OORTRIAGE_TILE_POLICY)"
        )
    stat, folder = path.stat(), path.parent.stat()
    if os.geteuid() not in (0, stat.st_uid):
        raise RefusedError(f"{_relative(tree, path)} belongs to another user; use the plugin (OORTRIAGE_TILE_POLICY)")
    if not folder.st_mode & 0o222 or not os.access(path.parent, os.W_OK):
        raise RefusedError(_unwritable(path, None))


def _unwritable(path: Path, problem: OSError | None) -> str:
    why = f" ({problem.strerror or problem})" if problem else ""
    return f"{path.parent} is read-only{why}: use the plugin, which writes nothing (OORTRIAGE_TILE_POLICY)"


def _manifest(path: Path) -> Manifest | None:
    try:
        return msgspec.json.decode(manifest_of(path).read_bytes(), type=Manifest)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as problem:
        raise OortriageError(f"{manifest_of(path).name}: cannot be read: {problem}") from problem


def _own_version() -> str:
    try:
        return importlib.metadata.version("oortriage")
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        return ""


def _relative(tree: Tree, path: Path) -> str:
    return path.relative_to(tree.root).as_posix()


def _recorded(tree: Tree, path: Path) -> str:
    """Return what the installation's record states of a file; empty without a record, or an entry in it."""
    for record in sorted(tree.root.glob("vllm-*.dist-info/RECORD")):
        with record.open(encoding="utf-8", errors="replace", newline="") as file:
            for row in csv.reader(file):
                if len(row) >= 2 and row[0] == _relative(tree, path) and row[1].startswith("sha256="):
                    return row[1]
    return ""


def _record_digest(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _change(
    action: Literal["applied", "reverted", "nothing", "would_apply"],
    tree: Tree,
    rule: str,
    path: Path,
    before: bytes,
    after: bytes,
    *,
    backup: str = "",
    diff: str = "",
    notes: list[str] | None = None,
) -> Change:
    return Change(
        action,
        action in ("applied", "reverted"),
        rule,
        _relative(tree, path),
        tree.named,
        tree.version,
        digest(before),
        digest(after),
        backup,
        diff,
        list(notes or ()),
    )
