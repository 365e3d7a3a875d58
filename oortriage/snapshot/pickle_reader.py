"""A pickle read as data: numbers, texts, lists, tuples and dictionaries, and nothing that could act.

Unpickling calls whatever the file names. This reader has no opcode that names or calls anything: it knows those
that build plain values, and refuses every other one. The opcodes and their arguments are those of Python's
``pickletools`` module, protocols 2 to 5.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from oortriage.errors import InputError

#: Steps one file may take, a few for each value. A snapshot of a million events takes about 40 million.
MAX_VALUES = 60_000_000
#: Open lists and dictionaries at a time; a snapshot has about ten.
MAX_DEPTH = 500
#: Bytes of one whole number; addresses and sizes have eight.
MAX_NUMBER_BYTES = 16

_U2, _U4, _U8 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q")
_I4, _F8 = struct.Struct("<i"), struct.Struct(">d")
#: Stands on the stack where a list or a dictionary begins.
_MARK: Any = object()
_SCALARS = frozenset({str, int, float, bool, type(None)})

#: Opcodes that name, call or fill objects, or reach outside of the file.
_ACTING = {
    0x52: "REDUCE",
    0x62: "BUILD",
    0x6F: "OBJ",
    0x81: "NEWOBJ",
    0x92: "NEWOBJ_EX",
    0x50: "PERSID",
    0x51: "BINPERSID",
    0x82: "EXT1",
    0x83: "EXT2",
    0x84: "EXT4",
    0x97: "NEXT_BUFFER",
    0x98: "READONLY_BUFFER",
}
_PROTOCOL_0 = frozenset(b"IJLFSVUTNplgd0123")


def read_pickle(data: bytes, *, max_values: int = MAX_VALUES) -> Any:
    """Read one pickle into plain Python values.

    Args:
        data: the whole file, uncompressed.
        max_values: how many values it may build.

    Raises:
        InputError: it is no pickle, is cut short, goes over a limit, or holds anything but plain values; then the
            message names the class or function that it wanted.
    """
    try:
        return _Machine(data, max_values).run()
    except (struct.error, IndexError):
        raise InputError(f"the pickle breaks off after {len(data):,} bytes: it is not complete") from None


class _Machine:
    """The stack and the memo of one pickle."""

    def __init__(self, data: bytes, max_values: int) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.left = max_values

    def run(self) -> Any:
        """Follow the opcodes until the pickle ends."""
        if self.data[:1] != b"\x80":
            raise InputError("not a pickle of protocol 2 or later, which is what PyTorch writes")
        data, stack, marks, memo, handlers = self.data, self.stack, self.marks, self.memo, _HANDLERS
        append, whole = stack.append, int.from_bytes
        limit, at = self.left, 0
        for _ in range(limit):
            code = data[at]
            at += 1
            # The opcodes that most of a snapshot consists of stand here, the most frequent first: a call each would
            # take most of the time. What is odd about one of them goes to its handler below, which refuses it.
            if code == 0x68 and data[at] in memo:  # BINGET
                append(memo[data[at]])
                at += 1
            elif code == 0x6A and (index := whole(data[at : at + 4], "little")) in memo:  # LONG_BINGET
                append(memo[index])
                at += 4
            elif code == 0x94 and stack and stack[-1] is not _MARK:  # MEMOIZE
                memo[len(memo)] = stack[-1]
            elif code == 0x4A and at + 4 <= len(data):  # BININT
                append(whole(data[at : at + 4], "little", signed=True))
                at += 4
            elif code == 0x8A and data[at] <= MAX_NUMBER_BYTES and at + data[at] < len(data):  # LONG1
                append(whole(data[at + 1 : at + 1 + data[at]], "little", signed=True))
                at += 1 + data[at]
            elif code == 0x4B:  # BININT1
                append(data[at])
                at += 1
            elif code == 0x28 and len(marks) < MAX_DEPTH:  # MARK
                marks.append(len(stack))
                append(_MARK)
            elif code == 0x7D:  # EMPTY_DICT
                append({})
            elif code == 0x2E:  # STOP
                self.at = at
                return self._result()
            else:
                self.at = at
                handler = handlers[code]
                if handler is None:
                    raise self._refused(code)
                handler(self)
                at = self.at
        raise InputError(
            f"the pickle takes more than {limit:,} steps: too large; record fewer events "
            "(torch.cuda.memory._record_memory_history(max_entries=100000))"
        )

    def _result(self) -> Any:
        if len(self.stack) != 1 or self.marks:
            raise InputError(f"the pickle ends at byte {self.at:,} in the middle of a value")
        return self.stack[0]

    def _refused(self, code: int) -> InputError:
        where = f"at byte {self.at - 1:,}"
        if code in (0x63, 0x69):  # GLOBAL, INST: two lines of text
            return InputError(f"refused {where}: it names {self._named()}; a memory snapshot holds plain values only")
        if code == 0x93:  # STACK_GLOBAL: two strings on the stack
            names = [one for one in self.stack[-2:] if isinstance(one, str)]
            wanted = ".".join(names)[:200] or "an object"
            return InputError(f"refused {where}: it names {wanted}; a memory snapshot holds plain values only")
        if code in _ACTING:
            return InputError(f"refused {where}: {_ACTING[code]} builds an object; a snapshot holds plain values only")
        if code in _PROTOCOL_0:
            return InputError(f"not understood {where}: an opcode of protocols 0 and 1 ({chr(code)!r})")
        return InputError(f"not understood {where}: 0x{code:02x} is no opcode of a snapshot")

    def _named(self) -> str:
        end = self.data.find(b"\n", self.at, self.at + 300)
        second = self.data.find(b"\n", end + 1, end + 300) if end >= 0 else -1
        if second < 0:
            return "an object"
        return self.data[self.at : second].replace(b"\n", b".").decode("utf-8", "replace")

    def take(self, count: int) -> bytes:
        """Take the next bytes; what a length claims is held against what is there before anything is made."""
        end = self.at + count
        if count < 0 or end > len(self.data):
            raise InputError(
                f"the pickle breaks off: at byte {self.at:,} it announces {count:,} bytes and "
                f"{len(self.data) - self.at:,} are left"
            )
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def number(self, form: struct.Struct) -> Any:
        """Read a number of a fixed form."""
        (value,) = form.unpack_from(self.data, self.at)
        self.at += form.size
        return value

    def items(self) -> list[Any]:
        """Take what stands on the stack above the last mark."""
        if not self.marks:
            raise InputError(f"not a pickle: byte {self.at - 1:,} closes what was never opened")
        start = self.marks.pop()
        items = self.stack[start + 1 :]
        del self.stack[start:]
        return items

    def pop(self) -> Any:
        """Take the value on top of the stack."""
        floor = self.marks[-1] + 1 if self.marks else 0
        if len(self.stack) <= floor:
            raise InputError(f"not a pickle: byte {self.at - 1:,} wants a value that is not there")
        return self.stack.pop()

    def top(self, kind: type) -> Any:
        """Look at the list or dictionary that is to be filled."""
        floor = self.marks[-1] + 1 if self.marks else 0
        if len(self.stack) <= floor or type(self.stack[-1]) is not kind:
            raise InputError(f"not a pickle: byte {self.at - 1:,} fills a {kind.__name__} that is not there")
        return self.stack[-1]

    def bad_key(self, key: Any) -> InputError:
        """Refuse a key that is no plain scalar: it could take for ever to hash."""
        return InputError(f"not a snapshot: at byte {self.at - 1:,} a {type(key).__name__} is used as a key")

    def remember(self, index: int) -> None:
        """Keep the value on top for later; the memo grows by what is there, whatever the index says."""
        if not self.stack or self.stack[-1] is _MARK:
            raise InputError(f"not a pickle: byte {self.at - 1:,} remembers a value that is not there")
        self.memo[index] = self.stack[-1]

    def recall(self, index: int) -> None:
        """Push a value that was kept."""
        if index not in self.memo:
            raise InputError(f"not a pickle: byte {self.at - 1:,} recalls value {index:,}, which was never kept")
        self.stack.append(self.memo[index])

    def text(self, count: int) -> None:
        """Push a text of so many bytes."""
        self.stack.append(self.take(count).decode("utf-8", "surrogatepass"))


def _mark(machine: _Machine) -> None:
    if len(machine.marks) >= MAX_DEPTH:
        raise InputError(f"the pickle nests more than {MAX_DEPTH} values: not a snapshot")
    machine.marks.append(len(machine.stack))
    machine.stack.append(_MARK)


def _append(machine: _Machine) -> None:
    value = machine.pop()
    machine.top(list).append(value)


def _appends(machine: _Machine) -> None:
    items = machine.items()
    machine.top(list).extend(items)


def _set_item(machine: _Machine) -> None:
    value = machine.pop()
    key = machine.pop()
    if type(key) not in _SCALARS:
        raise machine.bad_key(key)
    machine.top(dict)[key] = value


def _set_items(machine: _Machine) -> None:
    items = machine.items()
    if len(items) % 2:
        raise InputError(f"not a pickle: byte {machine.at - 1:,} has a key without a value")
    keys = items[::2]
    if set(map(type, keys)) - _SCALARS:
        raise machine.bad_key(next(key for key in keys if type(key) not in _SCALARS))
    machine.top(dict).update(zip(keys, items[1::2], strict=True))


def _tuple(machine: _Machine) -> None:
    machine.stack.append(tuple(machine.items()))


def _fixed_tuple(length: int) -> Callable[[_Machine], None]:
    def build(machine: _Machine) -> None:
        values = [machine.pop() for _ in range(length)]
        machine.stack.append(tuple(reversed(values)))

    return build


def _long(form: struct.Struct | None) -> Callable[[_Machine], None]:
    def read(machine: _Machine) -> None:
        size = machine.number(form) if form else machine.take(1)[0]
        if not 0 <= size <= MAX_NUMBER_BYTES:
            raise InputError(f"not a snapshot: at byte {machine.at:,} stands a number of {size:,} bytes")
        machine.stack.append(int.from_bytes(machine.take(size), "little", signed=True))

    return read


def _constant(value: Any) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(value)


def _number(form: struct.Struct) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.number(form))


def _text(form: struct.Struct | None) -> Callable[[_Machine], None]:
    def read(machine: _Machine) -> None:
        size = machine.number(form) if form else machine.take(1)[0]
        try:
            machine.text(size)
        except UnicodeDecodeError:
            raise InputError(f"not a snapshot: the text at byte {machine.at - size:,} is not UTF-8") from None

    return read


def _raw(form: struct.Struct | None) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.take(machine.number(form) if form else machine.take(1)[0]))


def _frame(machine: _Machine) -> None:
    """Pass over a frame's length: it is advice for readers of streams."""
    machine.number(_U8)


def _proto(machine: _Machine) -> None:
    version = machine.take(1)[0]
    if not 2 <= version <= 5:
        raise InputError(f"a pickle of protocol {version}; 2 to 5 are understood")


_HANDLERS: list[Callable[[_Machine], None] | None] = [None] * 256
for _code, _handler in {
    0x80: _proto,
    0x95: _frame,
    0x28: _mark,
    0x4E: _constant(None),
    0x88: _constant(True),
    0x89: _constant(False),
    0x4A: _number(_I4),
    0x4B: lambda machine: machine.stack.append(machine.take(1)[0]),
    0x4D: _number(_U2),
    0x47: _number(_F8),
    0x8A: _long(None),
    0x8B: _long(_I4),
    0x8C: _text(None),
    0x58: _text(_U4),
    0x8D: _text(_U8),
    0x43: _raw(None),
    0x42: _raw(_U4),
    0x8E: _raw(_U8),
    0x5D: lambda machine: machine.stack.append([]),
    0x7D: lambda machine: machine.stack.append({}),
    0x29: _constant(()),
    0x61: _append,
    0x65: _appends,
    0x73: _set_item,
    0x75: _set_items,
    0x74: _tuple,
    0x85: _fixed_tuple(1),
    0x86: _fixed_tuple(2),
    0x87: _fixed_tuple(3),
    0x94: lambda machine: machine.remember(len(machine.memo)),
    0x71: lambda machine: machine.remember(machine.take(1)[0]),
    0x72: lambda machine: machine.remember(machine.number(_U4)),
    0x68: lambda machine: machine.recall(machine.take(1)[0]),
    0x6A: lambda machine: machine.recall(machine.number(_U4)),
    0x30: lambda machine: machine.pop(),  # POP
}.items():
    _HANDLERS[_code] = _handler
