"""JSON, version 1: one object for one log, an array where several were asked for. The schema ships with the tool."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from oortriage.report._interface import Style
from oortriage.triage.diagnosis import Diagnosis


class Format:
    """Indented JSON. The shape depends on what was asked for: a folder is an array also with one log in it."""

    def __init__(self, style: Style) -> None:
        """Take from the style only whether several logs were asked for."""
        self._many = style.many
        self._held: list[str] = []

    def begin(self) -> str:
        """Nothing is written before it is known how many logs there are."""
        return ""

    def render(self, diagnosis: Diagnosis, *, first: bool) -> str:
        """Hold the object back until the end."""
        self._held.append(encode(diagnosis, indent=2))
        return ""

    def end(self, diagnoses: int) -> str:
        """Write one object, or an array of them."""
        if len(self._held) == 1 and not self._many:
            return self._held[0] + "\n"
        return "[\n" + ",\n".join(self._held) + "\n]\n"


def encode(diagnosis: Diagnosis, *, indent: int | None = None) -> str:
    """Encode a diagnosis as JSON text; lone surrogates and control characters come out escaped."""
    return json.dumps(msgspec.to_builtins(diagnosis), indent=indent)


def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of one diagnosis."""
    described = msgspec.json.schema(Diagnosis)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "oortriage diagnosis, version 1",
        **described,
    }
