"""Finds the tile policy in a file by its syntax, and says where a rule's lines go; any other file is refused."""

from __future__ import annotations

import ast
import hashlib
from typing import NamedTuple

from oortriage.errors import OortriageError
from oortriage.fix.rules import Rule

#: Begins and ends what we insert; a file with it was patched by us.
BEGIN, END = "# oortriage {title}: begin", "# oortriage {title}: end"
MARK = b"# oortriage "
_FUNCTION, _WRAPPER = "_get_tile_size", "unified_attention"
_PARAMETERS = ["head_size", "sliding_window", "element_size", "is_prefill"]
_TILES = {"TILE_SIZE_PREFILL", "TILE_SIZE_DECODE"}
#: Digests of the policies there are, without their docstrings: of the function (0.13.0 to 0.33.0), and of the
#: two assignments (0.11.0 to 0.12.0).
_KNOWN_FUNCTION = "873c90bacf595a37"
_KNOWN_LITERALS = "d34e476eed3adbb6"
#: And of the two calls of the function.
_KNOWN_CALLS = "6d7cf28c9e5b1459"


class RefusedError(OortriageError):
    """The file is not one that can be patched; the message says which case it is."""


class Insertion(NamedTuple):
    """Lines (without their ends) that go before a line; counted from 0."""

    at: int
    lines: tuple[str, ...]


def insertions(data: bytes, rule: Rule, *, marked: bool = True) -> list[Insertion]:
    """Say which lines a rule adds to the file, and where.

    Args:
        data: the file as it is.
        rule: the rule.
        marked: whether the lines say that they are ours; a patch for upstream does not.

    Raises:
        RefusedError: the file is not one that this release knows, or the rule cannot be written into it.
    """
    tree = _parsed(data)
    if rule.change is None:
        raise RefusedError(
            f"{rule.title} asks the compiler at each shape's first launch, which no patch of this file can: start vLLM "
            f"with OORTRIAGE_TILE_POLICY={rule.name} instead (the plugin)"
        )
    wrapper = _function(tree, _WRAPPER)
    if wrapper is None:
        raise RefusedError("unknown file: it has no function unified_attention: not vLLM's Triton unified attention")
    if "TILE_SIZE" not in data.decode("utf-8", "replace"):
        raise RefusedError(
            "a vLLM without a tile policy (up to 0.10.2 the K/V tile is the KV cache's block): start it with "
            "--block-size 16 instead"
        )
    _refuse_without_platform(tree)
    policy = _function(tree, _FUNCTION)
    if policy is not None:
        _known(_digest(policy.body[_docstring(policy) :]), _KNOWN_FUNCTION, "_get_tile_size")
        _known(_digest(_assignments(wrapper)), _KNOWN_CALLS, "what is done with _get_tile_size")
        if [one.arg for one in policy.args.args] != _PARAMETERS:
            raise RefusedError("unknown file: _get_tile_size has other parameters than in vLLM 0.13.0 to 0.33.0")
    else:
        _known(_digest(_assignments(wrapper)), _KNOWN_LITERALS, "the choice of TILE_SIZE_PREFILL and TILE_SIZE_DECODE")
    if rule.change.num_warps is not None:
        return [_launch(call, rule, data, marked=marked) for call in _launches(wrapper)]
    if policy is not None:
        body = policy.body[_docstring(policy)]
        lines: tuple[str, ...] = (*_if(_condition(rule, "policy")), f"    return {rule.change.tile}")
        return [_block(_first_line(data, body.lineno), "    ", lines, rule, marked=marked)]
    last = _assignments(wrapper)[-1]
    lines = (
        *_if(_condition(rule, "wrapper")),
        *(f"    {name} = min({name}, {rule.change.tile})" for name in sorted(_TILES, reverse=True)),
    )
    return [_block((last.end_lineno or last.lineno), "    ", lines, rule, marked=marked)]


def _parsed(data: bytes) -> ast.Module:
    if MARK in data:
        raise RefusedError("already patched by oortriage, and the record of it is gone or of another file")
    try:
        return ast.parse(data)
    except (SyntaxError, ValueError) as problem:
        raise RefusedError(f"unknown file: it is no Python that can be read ({problem})") from problem


def _refuse_without_platform(tree: ast.Module) -> None:
    names = {
        name.asname or name.name for one in ast.walk(tree) if isinstance(one, ast.ImportFrom) for name in one.names
    }
    if "current_platform" not in names:
        raise RefusedError("unknown file: it does not import vLLM's current_platform, which the rule asks")


def _known(found: str, known: str, what: str) -> None:
    if found != known:
        raise RefusedError(
            f"{what} is not as in any vLLM from 0.11.0 to 0.33.0: the file was patched by someone else, or is of a "
            "release that this one does not know"
        )


def _function(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    found = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == name]
    return found[0] if len(found) == 1 else None


def _docstring(function: ast.FunctionDef) -> int:
    return int(ast.get_docstring(function, clean=False) is not None)


def _assignments(wrapper: ast.FunctionDef) -> list[ast.stmt]:
    """Return the statements that choose the two tiles."""
    return [
        one
        for one in wrapper.body
        if isinstance(one, ast.Assign) and any(isinstance(name, ast.Name) and name.id in _TILES for name in one.targets)
    ]


def _digest(body: list[ast.stmt]) -> str:
    text = "\n".join(ast.unparse(one) for one in body)  # the same text in every Python, other than ast.dump
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _launches(wrapper: ast.FunctionDef) -> list[ast.Call]:
    """Find the launches of attention kernels: they have a tile and rows; the kernel that joins parts has no rows."""
    found = [
        one
        for one in ast.walk(wrapper)
        if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Subscript)
        and {"TILE_SIZE", "BLOCK_M", "HEAD_SIZE"} <= {word.arg for word in one.keywords}
    ]
    if not found:
        raise RefusedError("unknown file: no launch in it names TILE_SIZE, HEAD_SIZE and BLOCK_M")
    return sorted(found, key=lambda one: one.lineno)


def _launch(call: ast.Call, rule: Rule, data: bytes, *, marked: bool) -> Insertion:
    first = call.keywords[0]
    line = data.splitlines()[first.lineno - 1]
    indent = line[: first.col_offset]
    if call.args or indent.strip():
        raise RefusedError("unknown file: a launch's first argument does not begin its line")
    tile = next(ast.unparse(word.value) for word in call.keywords if word.arg == "TILE_SIZE")
    warps = rule.change.num_warps if rule.change else None
    lines = (
        "**(",
        f'    {{"num_warps": {warps}}}',
        f"    if {_condition(rule, 'launch', tile)[0]}",
        *(f"    and {one}" for one in _condition(rule, "launch", tile)[1:]),
        "    else {}",
        "),",
    )
    return _block(first.lineno - 1, indent.decode(), lines, rule, marked=marked)


def _block(at: int, indent: str, lines: tuple[str, ...], rule: Rule, *, marked: bool) -> Insertion:
    change = rule.change
    does = (
        f"{change.num_warps} warps" if change and change.num_warps else f"a K/V tile of {change.tile if change else 0}"
    )
    why = (
        "FP32 with head size 256 needs 81,920 bytes of shared memory with a",
        "K/V tile of 32 and 4 warps; compute capability 7.5 has 65,536.",
        f"With {does} it needs 49,152.",
    )
    head = (BEGIN.format(title=rule.title),) if marked else ()
    tail = (END.format(title=rule.title),) if marked else ()
    return Insertion(at, tuple(indent + one for one in (*head, *(f"# {one}" for one in why), *lines, *tail)))


def _first_line(data: bytes, number: int) -> int:
    """Go up over the comments that stand right above a statement; counted from 0."""
    lines = data.splitlines()
    at = number - 1
    while at and lines[at - 1].lstrip().startswith(b"#"):
        at -= 1
    return at


_EXPRESSIONS = {
    "policy": {"head_size": "head_size", "q_bytes": "element_size", "window": "sliding_window"},
    "wrapper": {
        "head_size": "head_size",
        "q_bytes": "q.element_size()",
        "kv_bytes": "k.element_size()",
        "window": "1 + window_size[0]",
    },
}


def _if(parts: list[str]) -> tuple[str, ...]:
    """Lay an ``if`` out as a formatter would."""
    return ("if (", f"    {parts[0]}", *(f"    and {one}" for one in parts[1:]), "):")


def _condition(rule: Rule, place: str, tile: str = "") -> list[str]:
    """Write a rule's conditions as expressions; the platform, which is asked last, costs most."""
    names = {**_EXPRESSIONS["policy" if place == "policy" else "wrapper"], **({"tile": tile} if tile else {})}
    parts = [f"{names[one.fact]} == {one.value}" for one in rule.conditions if one.fact in names]
    capability = next(one.value for one in rule.conditions if one.fact == "capability")
    if isinstance(capability, tuple):
        parts.append(f"current_platform.is_device_capability({capability[0] * 10 + capability[1]})")
    return parts


def patched(data: bytes, rule: Rule, *, marked: bool = True) -> bytes:
    """Return the file with a rule's lines in it; nothing of the file itself changes.

    Raises:
        RefusedError: as :func:`insertions`.
    """
    lines = data.splitlines(keepends=True)
    end = b"\r\n" if lines and lines[0].endswith(b"\r\n") else b"\n"
    for at, new in sorted(insertions(data, rule, marked=marked), reverse=True):
        lines[at:at] = [line.encode() + end for line in new]
    whole = b"".join(lines)
    ast.parse(whole)
    return whole
