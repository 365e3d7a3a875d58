"""Reads an allocated module's text: each operation that owns shared memory becomes a buffer.

Operations that hold a tensor in shared memory say its shape and type; a layout conversion or a
reduction only says where its scratch begins. How many bytes it takes is asked of the compiler: the
operation alone, in a module of its own, needs just its scratch.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod

import msgspec

from oortriage.gpu.virtual.locations import Locations, Place, source_line, variable_at
from oortriage.ledger.allocation import Buffer, Ledger, Role, overlaps

_OWNER = re.compile(
    r"^[ \t]*(?P<line>[^\n]*allocation\.offset = (?P<offset>\d+|\[[\d, ]+\])[^\n]*)$",
    re.MULTILINE,
)
_OPERATION = re.compile(r'^(?:(?P<results>%[\w$.#:, %]+?) = )?"?(?P<op>[a-z_]\w*\.[\w.]+)"?')
_MEMORY = re.compile(
    r"-> !ttg\.memdesc<(?P<shape>(?:\d+x)*)(?P<element>[\w.<>:!]+?), (?P<rest>.*?mutable|.*?)>\s*(?:loc\(|$)"
)
_TENSOR = re.compile(r"tensor<(?P<shape>(?:\d+x)*)(?P<element>!?[\w.]+(?:<[^<>]*>)?)(?:, [^<>]*(?:<.*?>)?)?>")
_LOCATION = re.compile(r" loc\((?P<where>(?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\s*$")
_SIZE = re.compile(r"allocation\.size = (\d+)")
_ATTRIBUTE = re.compile(r"(?:, )?\ballocation\.(?:offset|size) = (?:\d+ : i32|\[[^\]]*\])")
_SAME_VALUE = re.compile(
    r"%\S+ = (?:arith\.(?:extf|truncf|bitcast)|tt\.(?:fp_to_fp|trans)|ttg\.convert_layout) (%[\w$.]+)"
)
_HEAD = re.compile(r"^(?:#(?!loc)\S+ = .*|module .*\{)$", re.MULTILINE)
_TAKES_TURNS = ("ttng.init_barrier", "ttng.inval_barrier", "ttng.wait_barrier")

Measure = Callable[[str], int | None]


class _Owner(msgspec.Struct):
    """An operation with shared memory: its text (whole, for one with a body) and where it stands."""

    text: str
    line: str
    op: str
    offset: int
    place: Place


def read_ledger(module: str, shared_bytes: int, measure: Measure) -> Ledger:
    """Itemise an allocated module.

    Args:
        module: the module as text, with locations.
        shared_bytes: the compiler's own total.
        measure: gives the shared memory, in bytes, of a module that holds one operation.
    """
    owners = list(_owners(module))
    head = _head(module)
    sizes: dict[str, int | None] = {}
    buffers = []
    for owner in owners:
        alone = _alone(owner.text, head)
        if alone and alone not in sizes:
            sizes[alone] = measure(alone)
        stated = _SIZE.search(owner.line)
        size = int(stated.group(1)) if stated else sizes.get(alone)
        buffers.append(_buffer(owner, size, [one.offset for one in owners], shared_bytes, module))
    named = _distinct(buffers)
    return Ledger(tuple(_with_sharers(named)), shared_bytes)


def _owners(module: str) -> list[_Owner]:
    locations = Locations(module)
    found = []
    for match in _OWNER.finditer(module):
        line = match.group("line").strip()
        text = _whole(module, match.start(), line)
        operation = _OPERATION.match(text)
        where = _LOCATION.search(line)
        offset = match.group("offset").strip("[]").split(",")[0]
        place = locations.find(where.group("where")) if where else Place()
        value = _value_name(module, match.start(), text, locations)
        place = msgspec.structs.replace(place, name=value or _name_at(place))
        found.append(_Owner(text, line, operation.group("op") if operation else "", int(offset), place))
    return found


def _name_at(place: Place) -> str:
    return place.name or (variable_at(place.file, place.line, place.column) if place.file else "")


def _value_name(module: str, before: int, text: str, locations: Locations) -> str:
    """Name the value that a ``local_alloc`` stores; the allocation itself may stand at the line that reads it.

    Operations that only change a value's type or layout are seen through: Turing widens 16-bit operands
    right before its multiplication, and the buffer still holds Q.
    """
    found = re.match(r"%\S+ = ttg\.local_alloc (%[\w$.]+)", text)
    value, name = found.group(1) if found else "", ""
    while value and (start := module.rfind(f" {value} = ", 0, before)) >= 0:
        line = module[start + 1 : module.index("\n", start)]
        where = _LOCATION.search(line)
        name = _name_at(locations.find(where.group("where"))) if where else name
        deeper = _SAME_VALUE.match(line)
        value = deeper.group(1) if deeper else ""
    return name


def _whole(module: str, begin: int, line: str) -> str:
    """Return an operation's whole text: one with a body states its attributes behind the body."""
    if not line.startswith("})"):
        return line
    depth, index = 0, begin + module[begin:].index("})")
    for position in range(index, -1, -1):
        if module.startswith("})", position):
            depth += 1
        elif module.startswith("({", position):
            depth -= 1
            if depth == 0:
                start = module.rfind("\n", 0, position) + 1
                return module[start : module.index("\n", begin) if "\n" in module[begin:] else len(module)].strip()
    return line


def _buffer(owner: _Owner, size: int | None, offsets: list[int], total: int, module: str) -> Buffer:
    memory = _MEMORY.search(owner.line)
    if memory and owner.op.endswith("local_alloc"):
        shape = tuple(int(one) for one in memory.group("shape").split("x") if one)
        element = memory.group("element")
        plain = prod(shape) * _bits(element) // 8
        role: Role = "barrier" if _is_barrier(owner, module) else "operand"
        copies = 1
        if (
            role == "operand"
            and "mutable" in memory.group("rest")
            and len(shape) > 1
            and "local_alloc %" not in owner.text
        ):
            role, copies, shape = "pipeline", shape[0], shape[1:]
        bytes_ = size if size is not None else plain
        exact, padding = size is not None or plain > 0, max(0, bytes_ - plain)
    else:
        tensor = _TENSOR.search(owner.line)
        shape = tuple(int(one) for one in tensor.group("shape").split("x") if one) if tensor else ()
        element = tensor.group("element") if tensor else ""
        role, copies, padding, exact = "scratch", 1, 0, size is not None
        bytes_ = (
            size if size is not None else min([one for one in offsets if one > owner.offset] + [total]) - owner.offset
        )
    place = owner.place
    return Buffer(
        name=place.name or owner.op.rsplit(".", 1)[-1],
        role=role,
        op=owner.op,
        shape=shape,
        dtype=element,
        bytes=bytes_,
        offset=owner.offset,
        file=place.file,
        line=place.line,
        column=place.column,
        text=source_line(place.file, place.line),
        copies=copies,
        padding=padding,
        exact=exact,
    )


def _is_barrier(owner: _Owner, module: str) -> bool:
    """Tell a buffer that barriers live in: 64-bit integers that only barrier operations touch."""
    result = re.match(r"(%[\w$.]+) = ", owner.text)
    if not result or "xi64" not in owner.line:
        return False
    return any(f"{op} {result.group(1)}" in module for op in _TAKES_TURNS) or "ttng.init_barrier" in module


def _bits(element: str) -> int:
    """Size of an element type as MLIR names it: ``f32``, ``bf16``, ``i8``, ``f8E4M3FN``."""
    number = re.match(r"[a-z]+(\d+)", element)
    return int(number.group(1)) if number else 64


def _head(module: str) -> str:
    """Return the layout aliases and the opening line of the module, for modules of one operation."""
    return "\n".join(re.sub(r",? ?\"?ttg\.shared\"? = \d+ : i32", "", line) for line in _HEAD.findall(module))


def _alone(text: str, head: str) -> str:
    """Put an operation into a module of its own; empty where its operands cannot be told from its text."""
    bare = _strip_locations(_ATTRIBUTE.sub("", text)).replace(" {}", "")
    operands, types = _operands(bare)
    if operands is None or len(operands) != len(types):
        return ""
    arguments = []
    for index, (name, type_) in enumerate(zip(operands, types, strict=True)):
        arguments.append(f"%arg{index}: {type_}")
        bare = re.sub(rf"{re.escape(name)}(?![\w$#])", f"%arg{index}", bare, count=1)
    return f"{head}\n  tt.func public @alone({', '.join(arguments)}) {{\n    {bare}\n    tt.return\n  }}\n}}\n"


def _operands(text: str) -> tuple[list[str] | None, list[str]]:
    """Return the operands of an operation in the order of their types, and those types."""
    outside = text
    if "({" in text:  # the body names values of its own
        outside = text[: text.index("({")] + text[text.rindex("})") + 2 :]
    signature = outside.rfind(" : ")
    if signature < 0:
        return None, []
    left, right = outside[:signature], outside[signature + 3 :]
    arrow = _top_level(right, "->")
    given = right[:arrow].strip() if arrow >= 0 else right.strip()
    if given.startswith("("):
        given = given[1:-1]
    equals = left.find(" = ")
    names = re.findall(r"%[\w$.]+(?:#\d+)?", left[equals + 3 :] if equals >= 0 and left.startswith("%") else left)
    return names, [part for part in _split(given) if part]


def _top_level(text: str, wanted: str) -> int:
    depth = 0
    for index, letter in enumerate(text):
        if depth == 0 and text.startswith(wanted, index):
            return index
        if letter in "<([{":
            depth += 1
        elif letter in ">)]}" and text[index - 1 : index + 1] != "->":
            depth -= 1
    return -1


def _split(text: str) -> list[str]:
    parts, depth, begin = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter in "<([{") - (letter in ">)]}")
        if letter == "," and depth == 0:
            parts.append(text[begin:index].strip())
            begin = index + 1
    return [*parts, text[begin:].strip()]


def _strip_locations(text: str) -> str:
    return re.sub(r" loc\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", "", text)


def _distinct(buffers: list[Buffer]) -> list[Buffer]:
    """Number buffers of one name, so that ``shares_with`` can name them."""
    count: dict[str, int] = {}
    for buffer in buffers:
        count[buffer.name] = count.get(buffer.name, 0) + 1
    seen: dict[str, int] = {}
    named = []
    for buffer in buffers:
        seen[buffer.name] = seen.get(buffer.name, 0) + 1
        name = buffer.name if count[buffer.name] == 1 else f"{buffer.name}.{seen[buffer.name]}"
        named.append(msgspec.structs.replace(buffer, name=name))
    return named


def _with_sharers(buffers: list[Buffer]) -> list[Buffer]:
    return [
        msgspec.structs.replace(
            one,
            shares_with=tuple(other.name for other in buffers if other is not one and overlaps(one, other)),
        )
        for one in buffers
    ]
