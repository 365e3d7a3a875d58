"""Puts it together: a document, what its vLLM accepts, every check on every process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from oortriage.errors import InputError, UsageError
from oortriage.lint.checks import CHECKS, Card, Case, Check, Hit, Model
from oortriage.lint.finding import SCHEMA_VERSION, Finding, Input, Lint
from oortriage.lint.image import image_version, is_image
from oortriage.lint.invocation import invocation_of, settings_of
from oortriage.lint.surface import Surface
from oortriage.lint.tables import shipped_surface, tables
from oortriage.lint.unit import Document, Unit
from oortriage.lint.versions import Release

#: Programs other than vLLM that a check knows.
_TOOLS = ("dcgmi", "nvidia-smi", "nvprof")
_PARTS = ("text_config", "language_config", "llm_config", "thinker_config")
_PLAIN_ROPE = ("default", "none", "")
_MOST = 1 << 24
#: Commands that start vLLM, of one input, that are checked.
_COMMANDS = 200
#: Findings of one input that are told.
_FINDINGS = 500
#: Characters. An input may hold a name of a megabyte.
_SUBJECT, _MESSAGE = 300, 2000


class Request(msgspec.Struct, frozen=True):
    """What the user says besides the input.

    ``vllm`` is a release, empty where it is not said; ``surface`` is read from a source tree, and wins over all but
    ``vllm``; ``installed`` is the one beside the tool, which an input's own word wins over.
    """

    vllm: str = ""
    surface: Surface | None = None
    installed: Surface | None = None
    card: Card | None = None
    model: Model | None = None


def lint(documents: list[tuple[str, Document]], request: Request) -> Lint:
    """Check documents; each is given with its name, empty for a command line.

    Raises:
        UsageError: a version is none.
    """
    inputs: list[Input] = []
    findings: list[Finding] = []
    for name, document in documents:
        made, found = _document(name, document, request)
        inputs.append(made)
        findings += found
    return Lint(SCHEMA_VERSION, tuple(inputs), tuple(findings))


def _document(name: str, document: Document, request: Request) -> tuple[Input, list[Finding]]:
    surface, notes = _surface(document, request)
    commands = 0
    found: dict[tuple[str, str, str, int], Finding] = {}
    last: object = None
    for unit in document.units:
        own, note = _own_surface(unit, surface, request)
        if note and note not in notes:
            notes.append(note)
        invocation = invocation_of(unit, own)
        commands += invocation is not None
        if commands > _COMMANDS:
            notes.append(f"only the first {_COMMANDS} commands that start vLLM were checked")
            break
        options = invocation.last("--config") if invocation else None
        if options and invocation and invocation.program != "llm":
            notes.append(f"the options in {options.value} are not read; lint that file too")
        if invocation is None and unit.settings is last and not _worth(unit):
            continue
        last = unit.settings
        case = Case(
            unit, own, tables(), Release(own.version), {one.name: one for one in settings_of(unit)}, invocation,
            request.card, request.model,
        )  # fmt: skip
        for finding in _checked(case, name):
            found.setdefault((finding.code, finding.subject, finding.message, finding.line), finding)
            if len(found) == _FINDINGS:
                notes.append(f"only the first {_FINDINGS} findings are told")
                break
        if len(found) == _FINDINGS:
            break
    ordered = sorted(found.values(), key=lambda one: (one.line, one.code))
    told = (*document.notes, *notes)
    return Input(name, document.kind, surface.version, surface.origin, commands, told), ordered


def _checked(case: Case, name: str) -> Iterator[Finding]:
    for check in CHECKS:
        if case.at(check.since, check.until):
            for hit in check.run(case):
                yield _finding(check, hit, name)


def _finding(check: Check, hit: Hit, name: str) -> Finding:
    return Finding(
        check.code,
        hit.severity or check.severity,
        shorten(hit.subject, _SUBJECT),
        shorten(hit.message, _MESSAGE),
        hit.since or check.since,
        hit.until or check.until,
        hit.source or check.source,
        name,
        hit.line if name else 0,
    )


def _worth(unit: Unit) -> bool:
    """Tell whether a command that starts no vLLM has words that a check looks at."""
    first = unit.words[0].text if unit.words else ""
    if unit.talk:
        return any("nvidia_dcgm" in word.text for word in unit.words)
    return "=" in first or any(
        word.text.rpartition("/")[2] in _TOOLS or word.text in ("-e", "--env") or "nvidia_dcgm" in word.text
        for word in unit.words
    )


def shorten(text: str, limit: int) -> str:
    """Cut a text to a number of characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _surface(document: Document, request: Request) -> tuple[Surface, list[str]]:
    """Choose the vLLM: what the user says, else what the input says, else the installed one, else the newest read."""
    if request.surface is not None:
        return request.surface, []
    if request.vllm:
        return shipped_surface(request.vllm), []
    named = sorted({Release(one).text for one in document.versions if _readable(one)}, key=Release)
    if named:
        made = shipped_surface(named[-1])
        told = f"names several releases of vLLM, {', '.join(named)}: a command with an image is judged by its own"
        several = [f"{told}, all else by {named[-1]}"] if named[1:] else []
        return msgspec.structs.replace(made, origin=f"named in the input; {made.origin}"), several
    if request.installed is not None:
        return request.installed, []
    newest = shipped_surface(tables().read[-1])
    return newest, [f"no release of vLLM is named: judged by the newest in the table, {newest.version} (--vllm V)"]


def _own_surface(unit: Unit, surface: Surface, request: Request) -> tuple[Surface, str]:
    """Return what the release of a command's own image accepts, where the user names none; and what to say of it."""
    if request.vllm or request.surface is not None:
        return surface, ""
    images = [one for one in (unit.image, *(word.text for word in unit.words)) if "vllm" in one and is_image(one)]
    version = next((found for one in images if (found := image_version(one))), "")
    if version and _readable(version):
        return shipped_surface(version), ""
    newest = tables().read[-1]
    if not images or surface.version == newest:
        return surface, ""
    return shipped_surface(newest), f"{images[0]} names no release: judged by the newest in the table, {newest}"


def _readable(version: str) -> bool:
    try:
        Release(version)
    except UsageError:
        return False
    return True


def read_model(path: Path) -> Model:
    """Read heads, positions (tokens) and type of a model's ``config.json``, or of the one in its folder.

    Raises:
        InputError: it is not there, or no JSON object.
    """
    file = path / "config.json" if path.is_dir() else path
    try:
        top = json.loads(file.read_bytes()[: 1 << 24])
    except OSError as problem:
        raise InputError(f"{file}: cannot be read: {problem.strerror or problem}") from problem
    except (ValueError, RecursionError) as problem:
        raise InputError(f"{file}: is no JSON") from problem
    if not isinstance(top, dict):
        raise InputError(f"{file}: is no model's config")
    part: dict[str, Any] = next((top[name] for name in _PARTS if isinstance(top.get(name), dict)), {})
    whole = {**top, **part}
    rope = whole.get("rope_scaling") or whole.get("rope_parameters") or {}
    kind = str(rope.get("rope_type", rope.get("type", "scaled"))) if isinstance(rope, dict) and rope else ""
    return Model(
        _count(whole.get("num_attention_heads")),
        _count(whole.get("max_position_embeddings")),
        kind not in _PLAIN_ROPE,
        str(whole.get("dtype") or whole.get("torch_dtype") or ""),
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST else 0
