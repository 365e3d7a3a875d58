"""Reads an allocated module's text: each operation that owns shared memory becomes a buffer.

Operations that hold a tensor in shared memory say its shape and type; a layout conversion or a
reduction only says where its scratch begins. How many bytes it takes is asked of the compiler: the
operation alone, in a module of its own, needs just its scratch. (Its results are returned there: an
atomic operation whose result nobody reads has none.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import prod

import msgspec

from oortriage.gpu.virtual.locations import Locations, Place, source_line, variable_at
from oortriage.ledger.allocation import Buffer, Ledger, Role, overlaps

_OWNER = re.compile(
    r"^[ \t]*(?P<line>[^\n]*allocation\.offset = (?P<offset>\d{1,12}|\[[\d, ]+\])[^\n]*)$",
    re.MULTILINE,
)
_OPERATION = re.compile(r'^(?:(?P<results>%[\w$.#:, %]+?) = )?"?(?P<op>[a-z_]\w*\.[\w.]+)"?')
_MEMORY = re.compile(
    r"-> !ttg\.memdesc<(?P<shape>(?:\d{1,9}x)*)(?P<element>[\w.<>:!]+?), (?P<rest>.*?mutable|.*?)>\s*(?:loc\(|$)"
)
_TENSOR = re.compile(r"tensor<(?P<shape>(?:\d{1,9}x)*)(?P<element>!?[\w.]+(?:<[^<>]*>)?)(?:, [^<>]*(?:<.*?>)?)?>")
_LOCATION = re.compile(r" loc\((?P<where>(?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\s*$")
_SIZE = re.compile(r"allocation\.size = (\d{1,12})")
_FUNCTION = re.compile(r'^[ \t]*tt\.func (?P<reach>public|private)? ?@(?P<name>"[^"\n]*"|[\w.$-]+)', re.MULTILINE)
_CALL = re.compile(r'tt\.call @("[^"\n]*"|[\w.$-]+)')
_PARTITION = re.compile(r"^[ \t]*partition\d+\(.*\) num_warps\((\d{1,4})\)", re.MULTILINE)
_VALUE = re.compile(r"%[\w$.]+(?:#\d+)?")
_ATTRIBUTE = re.compile(r"\ballocation\.(?:offset|size) = (?:\d+ : i32|\[[^\]]*\])(?:, )?")
_SAME_VALUE = re.compile(
    r"%\S+ = (?:arith\.(?:extf|truncf|bitcast)|tt\.(?:fp_to_fp|trans)|ttg\.convert_layout) (%[\w$.]+)"
)
_HEAD = re.compile(r"^(?:#(?!loc)\S+ = .*|module .*\{)$", re.MULTILINE)
#: Functions times the places they are called from; more would be a broken module.
_MOST_CALLS = 256
_TAKES_TURNS = ("ttng.init_barrier", "ttng.inval_barrier", "ttng.wait_barrier")
_NAMES = {"tt.func": "warp_states"}

Measure = Callable[[str], int | None]


class _Owner(msgspec.Struct):
    """An operation with shared memory: its text (whole, for one with a body) and where it stands.

    ``alone`` is a module that needs as much as the operation, and ``besides`` bytes more; ``size`` is in
    bytes where the module states it. ``begin`` is where its line begins in the module.
    """

    text: str
    line: str
    op: str
    offset: int
    place: Place
    begin: int
    alone: str = ""
    besides: int = 0
    size: int | None = None


def read_ledger(module: str, shared_bytes: int, measure: Measure) -> Ledger:
    """Itemise an allocated module.

    Args:
        module: the module as text, with locations.
        shared_bytes: the compiler's own total.
        measure: gives the shared memory, in bytes, of a module that holds one operation.
    """
    owners = _with_callees(list(_owners(module)), module)
    sizes: dict[str, int | None] = {}
    buffers = []
    for owner in owners:
        size = owner.size
        if size is None and owner.alone:
            if owner.alone not in sizes:
                sizes[owner.alone] = measure(owner.alone)
            measured = sizes[owner.alone]
            size = None if measured is None else max(0, measured - owner.besides)
        buffers.append(_buffer(owner, size, [one.offset for one in owners], shared_bytes, module))
    named = _distinct(buffers)
    return Ledger(tuple(_with_sharers(named)), shared_bytes)


def _owners(module: str) -> Iterator[_Owner]:
    locations = Locations(module)
    head = _head(module)
    for match in _OWNER.finditer(module):
        line = match.group("line").strip()
        begin = match.start()
        text = _whole(module, begin, line)
        operation = _OPERATION.match(text)
        op = operation.group("op") if operation else ""
        offset = re.search(r"\d{1,12}", match.group("offset"))
        stated = _SIZE.search(line)
        where, alone, besides = _LOCATION.search(line), "", 0
        size = int(stated.group(1)) if stated else None
        if op == "ttg.warp_specialize":
            alone, besides, where = _specialised(module, begin, line, head)
        elif op == "tt.func":
            size = _warp_states(module, begin) if size is None else size
        else:
            alone = _alone(text, head)
        place = locations.find(where.group("where")) if where else Place()
        value = _value_name(module, begin, text, locations)
        place = msgspec.structs.replace(place, name=value or _name_at(place))
        yield _Owner(text, line, op, int(offset.group()) if offset else 0, place, begin, alone, besides, size)


def _with_callees(owners: list[_Owner], module: str) -> list[_Owner]:
    """Put what functions that are called (``noinline``) hold where their callers hold it.

    Within a function offsets count from where the call's own space begins, so that a function that is
    called at two places holds its buffers twice.
    """
    functions = [(found.start(), found.group("name"), found.group("reach")) for found in _FUNCTION.finditer(module)]
    if len(functions) < 2:
        return owners

    def home(owner: _Owner) -> str:
        return next((name for start, name, _ in reversed(functions) if start <= owner.begin), "")

    calls = [(home(owner), found.group(1), owner.offset) for owner in owners if (found := _CALL.search(owner.line))]
    called = {callee for _, callee, _ in calls}
    bases = {(name, 0) for _, name, reach in functions if reach == "public" or name not in called}
    fresh = set(bases)
    while fresh and len(bases) < _MOST_CALLS:
        fresh = {(callee, base + at) for name, base in fresh for caller, callee, at in calls if caller == name} - bases
        bases |= fresh
    filled = {home(owner) for owner in owners}
    return [
        msgspec.structs.replace(owner, offset=owner.offset + base)
        for owner in owners
        if not ((found := _CALL.search(owner.line)) and found.group(1) in filled)
        for base in sorted(base for name, base in bases if name == home(owner))
    ]


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
        before = start  # a value stands behind those it is made of
        line = module[start + 1 :].split("\n", maxsplit=1)[0]
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
        tensors = list(_TENSOR.finditer(owner.line))  # of addresses and what is written there, the latter
        tensor = next((one for one in tensors if "ptr" not in one.group("element")), tensors[0] if tensors else None)
        shape = tuple(int(one) for one in tensor.group("shape").split("x") if one) if tensor else ()
        element = tensor.group("element") if tensor else ""
        role, copies, padding, exact = "scratch", 1, 0, size is not None
        following = min([one for one in offsets if one > owner.offset] + [max(total, owner.offset)])
        bytes_ = size if size is not None else following - owner.offset
    place = owner.place
    return Buffer(
        name=place.name or _NAMES.get(owner.op) or owner.op.rsplit(".", 1)[-1],
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
    bare = _strip_locations(_ATTRIBUTE.sub("", text)).replace(", }", "}").replace(" {}", "")
    names, operands, results = _signature(bare)
    if names is None or len(names) != len(operands):
        return ""
    named, equals, body = bare.partition(" = ") if bare.startswith("%") else ("", "", bare)
    count = 0

    def numbered(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"%arg{count - 1}" if count <= len(operands) else found.group()

    body = _VALUE.sub(numbered, body)
    arguments = ", ".join(f"%arg{index}: {type_}" for index, type_ in enumerate(operands))
    if not equals:
        return _module(head, arguments, body)
    several = named.partition(":")[2]
    body = f"%result{':' if several else ''}{several} = {body}"
    if not results or any("memdesc" in one or "async" in one for one in results):
        return _module(head, arguments, body)
    returned = [f"%result#{index}" for index in range(len(results))] if several else ["%result"]
    return _module(head, arguments, body, f"{', '.join(returned)} : {', '.join(results)}", ", ".join(results))


def _module(head: str, arguments: str, body: str, returned: str = "", types: str = "") -> str:
    arrow = f" -> ({types})" if types else ""
    return f"{head}\n  tt.func public @alone({arguments}){arrow} {{\n    {body}\n    tt.return {returned}\n  }}\n}}\n"


def _specialised(module: str, begin: int, line: str, head: str) -> tuple[str, int, re.Match[str] | None]:
    """Put a division of labour between warps into a module of its own, with nothing for them to do.

    Its scratch hands the values it captures to the warps; the function's own, a byte for each of them,
    is there as well.

    Returns:
        the module, the bytes that the function itself needs, and where the location is told.
    """
    indent = module[begin:].split("ttg.", maxsplit=1)[0].rpartition("\n")[2]
    end = re.compile(rf"^{re.escape(indent)}}} : \((?P<types>.*)\) -> .*$", re.MULTILINE).search(module, begin)
    if end is None or indent.strip():
        return "", 0, None
    types = [one for one in _split(_strip_locations(end.group("types"))) if one]
    warps = [int(one) for one in _PARTITION.findall(module, begin, end.start())]
    outer = ", ".join(f"%arg{index}: {one}" for index, one in enumerate(types))
    inner = ", ".join(f"%in{index}: {one}" for index, one in enumerate(types))
    parts = [f"partition{index}({inner}) num_warps({one}) {{ ttg.warp_return }}" for index, one in enumerate(warps)]
    captured = ", ".join(f"%arg{index}" for index in range(len(types)))
    body = (
        f"ttg.warp_specialize({captured}) default {{ ttg.warp_yield }} {' '.join(parts)} : ({', '.join(types)}) -> ()"
    )
    return _module(head, outer, body), sum(warps), _LOCATION.search(end.group()) or _LOCATION.search(line)


def _warp_states(module: str, begin: int) -> int | None:
    """Count the bytes by which a function tells its warps what to do: one for each that waits for work."""
    following = _FUNCTION.search(module, begin + 1)
    end = following.start() if following else len(module)
    groups = re.split(r"^[ \t]*ttg\.warp_specialize\b", module[begin:end], flags=re.MULTILINE)[1:]
    return max((sum(int(one) for one in _PARTITION.findall(group)) for group in groups), default=0) or None


def _signature(text: str) -> tuple[list[str] | None, list[str], list[str]]:
    """Return the operands of an operation in the order of their types, those types, and the results' types."""
    outside = text
    if "({" in text and "})" in text:  # the body names values of its own
        outside = text[: text.index("({")] + text[text.rindex("})") + 2 :]
    signature = outside.rfind(" : ")
    if signature < 0:
        return None, [], []
    left, right = outside[:signature], outside[signature + 3 :]
    arrow = _top_level(right, "->")
    given = right[:arrow].strip() if arrow >= 0 else right.strip()
    gotten = right[arrow + 2 :].strip() if arrow >= 0 else ""
    equals = left.find(" = ") if left.startswith("%") else -1
    names = _VALUE.findall(left[equals + 3 :] if equals >= 0 else left)
    return names, _types(given), _types(gotten)


def _types(text: str) -> list[str]:
    bare = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    return [part for part in _split(bare) if part]


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
