"""Goes through structs, lists and dicts, and redacts the strings in them."""

from __future__ import annotations

import dataclasses
import enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from oortriage.report.redaction.families.assignments import names_secret
from oortriage.report.redaction.families.hosts import is_host
from oortriage.report.redaction.families.people import is_account
from oortriage.triage.diagnosis import Evidence

if TYPE_CHECKING:
    from oortriage.report.redaction.pattern import Kind
    from oortriage.report.redaction.redactor import Redactor

#: Deeper than any report; what lies below does not leave the machine.
_DEEPEST = 100
_HOST_NAMES = frozenset({"hostname", "host_name", "nodename", "node_name", "host", "node", "master_addr"})
_USER_NAMES = frozenset({"user", "username", "user_name", "logname", "login", "owner", "sudo_user"})


class Walk:
    """One way through a value."""

    def __init__(self, redactor: Redactor) -> None:
        """Keep what redacts the strings."""
        self._redactor = redactor

    def value(self, value: Any, depth: int = 0) -> Any:
        """Return a value of the same type, redacted; numbers, enums and whatever holds no text come back as they are."""
        if isinstance(value, enum.Enum):
            return value
        if isinstance(value, str):
            return self._redactor.text(value)
        if isinstance(value, (bytes, bytearray)):
            text = bytes(value).decode("utf-8", "surrogateescape")
            return type(value)(self._redactor.text(text).encode("utf-8", "surrogateescape"))
        if isinstance(value, PurePath):
            return type(value)(self._redactor.text(str(value)))
        if depth > _DEEPEST and isinstance(value, (list, tuple, dict, set, frozenset, msgspec.Struct)):
            return type(value)() if isinstance(value, (list, tuple, dict, set, frozenset)) else None
        return self._container(value, depth + 1)

    def _container(self, value: Any, depth: int) -> Any:
        if isinstance(value, msgspec.Struct):
            return self._struct(value, depth)
        if isinstance(value, dict):
            return {self.value(key, depth): self._named(key, one, depth) for key, one in value.items()}
        if isinstance(value, tuple):
            items = self._items(value, depth)
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(value, list):
            return self._items(value, depth)
        if isinstance(value, (set, frozenset)):
            return type(value)(self.value(one, depth) for one in value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {
                one.name: self.value(getattr(value, one.name), depth) for one in dataclasses.fields(value) if one.init
            }
            return dataclasses.replace(value, **fields)
        return value

    def _struct(self, value: msgspec.Struct, depth: int) -> msgspec.Struct:
        changed: dict[str, Any] = {}
        for name in value.__struct_fields__:
            old = getattr(value, name)
            new = self._named(name, old, depth)
            if new is not old:
                changed[name] = new
        if isinstance(value, Evidence) and "text" in changed:
            changed["offset"] = self._offset(value, changed["text"])
        return msgspec.structs.replace(value, **changed) if changed else value

    def _offset(self, evidence: Evidence, text: str) -> int:
        """Return where the message begins now that the text before it is longer or shorter."""
        message = self._redactor.peek(evidence.text[evidence.offset :])
        if text.endswith(message):
            return len(text) - len(message)
        return min(len(text), len(self._redactor.peek(evidence.text[: evidence.offset])))

    def _items(self, values: Any, depth: int) -> list[Any]:
        done: list[Any] = []
        name: Any = ""
        for one in values:  # a command as a list: a flag, and behind it its value
            flag = isinstance(name, str) and name.startswith("-")
            done.append(self._named(name, one, depth) if flag else self.value(one, depth))
            name = one
        return done

    def _named(self, name: Any, value: Any, depth: int) -> Any:
        """Redact a value whose name tells what it is, as that of an environment variable does."""
        kind = _kind_of(name, value) if isinstance(name, str) and type(value) is str else None
        return self.value(value, depth) if kind is None else self._redactor.secret(kind, value)


def _kind_of(name: str, value: str) -> Kind | None:
    if names_secret(name, value):
        return "token"
    low = name.lower().lstrip("-").replace("-", "_")
    if low in _HOST_NAMES and is_host(value) and " " not in value:
        return "host"
    return "user" if low in _USER_NAMES and is_account(value) and " " not in value else None
