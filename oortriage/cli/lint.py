"""``oortriage lint``: what in a command that starts vLLM does not exist, is ignored or contradicts itself."""

from __future__ import annotations

import os
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oortriage.cli.output import Color, Sink, complain, style_for
from oortriage.cli.patch_options import Folder, Python

if TYPE_CHECKING:
    from oortriage.errors import InputError
    from oortriage.lint.checks import Card
    from oortriage.lint.surface import Surface
    from oortriage.lint.unit import Document


class LintFormat(str, Enum):
    """Formats of lint."""

    text = "text"
    json = "json"
    markdown = "markdown"
    sarif = "sarif"


def lint(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="['vllm serve ...'|FILE...|-- COMMAND...]",
            help="A command in quotes, files, - for standard input, or a command's words after --.",
            show_default=False,
        ),
    ] = None,
    vllm: Annotated[str, typer.Option("--vllm", help="The release of vLLM: 0.17.1.")] = "",
    vllm_source: Folder = None,
    python: Python = None,
    gpu: Annotated[str, typer.Option("--gpu", help="The card: T4, 'RTX 5090', sm_75.")] = "",
    config: Annotated[Path | None, typer.Option("--config", help="The model's config.json, or its folder.")] = None,
    list_checks: Annotated[bool, typer.Option("--list", help="List the checks.")] = False,
    format: Annotated[LintFormat, typer.Option("--format", "-f", help="Output format.")] = LintFormat.text,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    color: Annotated[Color, typer.Option("--color", help="Colours in text output.")] = Color.auto,
) -> None:
    """Say which flags, variables and values of a command or file are wrong for a release of vLLM; nothing is run.

    Files: shell scripts, Dockerfiles, Compose, Kubernetes, systemd, .env, Python, files for `vllm serve --config`.
    Ends with 0 when nothing worse than a remark is found, 1 with findings, 2 when an input cannot be read.

    Examples: `oortriage lint --vllm 0.6.3 "vllm serve m --block-size 64"`, `oortriage lint --vllm 0.17.1 -- vllm serve
    m --swap-space 4`, `oortriage lint deploy.yaml Dockerfile`.
    """
    from oortriage.errors import UsageError
    from oortriage.lint.run import Request, read_model
    from oortriage.lint.run import lint as check
    from oortriage.report.lint import check_list, lint_report

    if list_checks:
        if format is LintFormat.sarif:
            raise UsageError("--list has no form of SARIF")
        Sink(output).put(check_list(format.value))
        return
    if not target:
        raise UsageError("what is to be checked? A command in quotes, files, or -- COMMAND...")
    if vllm and (vllm_source or python):
        raise UsageError("--vllm names a release, --vllm-source and --python a tree: give one")
    documents, failed = _documents(target)
    request = Request(
        vllm,
        _tree(vllm_source, python) if vllm_source or python else None,
        None if vllm or vllm_source or python else _installed(),
        _card(gpu),
        read_model(config) if config else None,
    )
    result = check(documents, request)
    Sink(output).put(lint_report(result, format.value, style_for(color, output)))
    for problem in failed:
        complain(problem)
    raise typer.Exit(2 if failed else result.exit_code)


def _documents(target: list[str]) -> tuple[list[tuple[str, Document]], list[InputError]]:
    """Take what was given as files, where all of it are files, else as a command.

    Raises:
        InputError: nothing of it can be read.
    """
    from oortriage.errors import InputError
    from oortriage.lint.inputs.detect import LARGEST, read_document
    from oortriage.lint.inputs.shell import read_shell, words_unit
    from oortriage.lint.unit import Document, Word

    if target == ["-"]:
        return [("<stdin>", read_document(sys.stdin.buffer.read(LARGEST + 1), "<stdin>"))], []
    files = [_exists(one) for one in target]
    if all(files):
        return _read_files(target)
    if len(target) == 1:
        if " " not in target[0] and "\n" not in target[0]:
            raise InputError(f"{target[0]}: there is no such file; a command stands in quotes, or after --")
        return [("", read_shell(target[0][:LARGEST], "command"))], []
    if target[0] not in ("env", "exec") and files[0] and not os.access(target[0], os.X_OK):
        missing = next(one for one, there in zip(target, files, strict=True) if not there)
        raise InputError(f"{missing}: there is no such file")
    words = [Word(one, 1, open="{{" in one) for one in target]
    return [("", Document("command", tuple(words_unit(words))))], []


def _read_files(names: list[str]) -> tuple[list[tuple[str, Document]], list[InputError]]:
    """Read files; one that cannot be read does not keep the others from being checked."""
    from oortriage.errors import InputError
    from oortriage.lint.inputs.detect import read_bytes, read_document

    documents: list[tuple[str, Document]] = []
    failed: list[InputError] = []
    for name in names:
        try:
            documents.append((name, read_document(read_bytes(Path(name)), name)))
        except InputError as problem:
            failed.append(problem)
    if not documents:
        raise failed[0]
    return documents, failed


def _exists(name: str) -> bool:
    try:
        return len(name) < 4096 and Path(name).exists()
    except (OSError, ValueError):
        return False


def _tree(folder: Path | None, python: Path | None) -> Surface:
    from oortriage.fix.tree import find_tree
    from oortriage.kernels.source import open_source
    from oortriage.lint.extract.release import surface_of

    tree = find_tree(folder, python)
    return surface_of(open_source(tree.spec), tree.version or "0", f"read from the files of vLLM, {tree.found}")


def _installed() -> Surface | None:
    """Read the vLLM beside the tool, without importing it; one that cannot be read counts as none."""
    from oortriage.errors import OortriageError
    from oortriage.kernels.source import open_source
    from oortriage.kernels.source.folder import installed_spec
    from oortriage.lint.extract.release import surface_of

    spec = installed_spec("vllm")
    if spec is None:
        return None
    try:
        return surface_of(open_source(spec), spec.version, f"read from the files of the installed vLLM {spec.version}")
    except OortriageError:
        return None


def _card(gpu: str) -> Card | None:
    """Find the card; only NVIDIA's have a compute capability.

    Raises:
        UsageError: it is unknown, or of another maker.
    """
    from oortriage.errors import UsageError
    from oortriage.gpu.resolve import resolve
    from oortriage.lint.checks import Card

    if not gpu:
        return None
    found = resolve(gpu)
    major, dot, minor = found.name.partition(".")
    if not dot or not (major + minor).isdecimal():
        raise UsageError(f"--gpu {gpu}: the checks of cards know NVIDIA's alone")
    return Card(gpu, (int(major), int(minor)))
