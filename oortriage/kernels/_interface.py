"""What a kernel recipe is: how to call a library's own wrapper with the shapes of a crash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from oortriage.errors import UsageError
from oortriage.kernels.live import Live

Value = int | float | str | bool | None
Shape = dict[str, Any]

#: Element types by their full names; ``auto`` is the model's own.
ELEMENT_TYPES = (
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "int8",
    "uint8",
    "auto",
)
_SHORT = {
    "half": "float16",
    "fp16": "float16",
    "bf16": "bfloat16",
    "float": "float32",
    "fp32": "float32",
    "fp64": "float64",
    "fp8": "float8_e4m3fn",
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
}


class Parameter(msgspec.Struct, frozen=True):
    """One thing a recipe needs to know.

    ``default`` is assumed where neither the log, a model config nor the user says it; ``tries`` are
    the values that are possible and tried when a printed figure is to be reproduced. ``fact`` is the
    name under which a log's facts carry it.
    """

    name: str
    default: Value
    help: str
    tries: tuple[Value, ...] = ()
    fact: str = ""
    choices: tuple[str, ...] = ()


class Library(Protocol):
    """The Python package whose kernel it is, importable in the child process."""

    version: str
    files: dict[str, str]
    """The source files that were read, with their SHA-256."""

    def module(self, *names: str) -> Any:
        """Import the first of these modules that the library has.

        Raises:
            LookupError: it has none of them.
        """

    def data(self, folder: str, *words: str) -> list[str]:
        """Make the data files of a folder local whose names contain all words, and return their paths."""


class Recipe(msgspec.Struct, frozen=True):
    """How to make one family of kernels launch.

    Args:
        name: as in ``--kernel``: ``vllm.unified_attention``.
        title: one line for people.
        library: the distribution the source comes from; empty for kernels of our own.
        kernels: names of the Triton functions it launches; a log that names one leads here.
        parameters: what it needs to know.
        levers: short names of constants that people vary, to the names in the kernel.
        vary: the grid that ``experiment`` runs when none is given.
        needs_torch: whether the wrapper works on torch tensors.
        call: launches it; runs in the child, on the virtual GPU.
        live: makes a batch that is run in earnest on a card, with a reference; None where there is none.
        files: endings of source paths that a traceback shows; a log with one leads here as well.
        real: patterns (of the whole dotted name) of the library's modules that must be the real files,
            beside those its library always has.
        since: first library version the recipe knows, and ``until`` the last; empty for no bound.
    """

    name: str
    title: str
    call: Callable[[Library, Shape], None]
    parameters: tuple[Parameter, ...]
    library: str = ""
    kernels: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    levers: dict[str, str] = {}
    vary: dict[str, tuple[int, ...]] = {}
    live: Live | None = None
    needs_torch: bool = True
    real: tuple[str, ...] = ()
    since: str = ""
    until: str = ""

    def shape(self, given: dict[str, Any]) -> tuple[Shape, list[str]]:
        """Fill in defaults and return the shape with a sentence for each assumption.

        Raises:
            UsageError: a name that the recipe does not have, or a value of the wrong kind.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        if unknown := [name for name in given if name not in known]:
            raise UsageError(f"{self.name} has no parameter {', '.join(unknown)}; it has {', '.join(known)}")
        shape: Shape = {}
        assumed = []
        for name, parameter in known.items():
            if given.get(name) is not None:
                shape[name] = _converted(parameter, given[name])
            else:
                shape[name] = parameter.default
                assumed.append(f"{name} = {parameter.default} ({parameter.help})")
        return shape, assumed


def element_type(text: Any) -> str:
    """Return the full name of an element type as logs, configs and flags write it; empty when it is none."""
    plain = str(text).strip().lower().removeprefix("torch.")
    name = _SHORT.get(plain, plain)
    return name if name in ELEMENT_TYPES else ""


def _converted(parameter: Parameter, value: Any) -> Any:
    if parameter.name.endswith("dtype") and not parameter.choices:  # a parameter with choices has names of its own
        value = _known_type(parameter, value)
    kind = type(parameter.default)
    try:
        if kind is bool:
            converted: Any = (
                value
                if isinstance(value, bool)
                else {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[str(value).lower()]
            )
        elif kind in (int, float):
            converted = kind(value)
        else:
            converted = str(value)
    except (KeyError, ValueError, OverflowError) as problem:
        raise UsageError(f"{parameter.name}: {value!r} is no {_KINDS[kind]}") from problem
    zero = not parameter.default or 0 in parameter.tries
    if kind in (int, float) and not (0 if zero else 1e-9) <= converted < _TOO_LARGE:
        raise UsageError(f"{parameter.name}: {value} is out of range")
    if parameter.choices and converted not in parameter.choices:
        raise UsageError(f"{parameter.name}: {value!r} is none of {', '.join(parameter.choices)}")
    return converted


def _known_type(parameter: Parameter, value: Any) -> str:
    known = element_type(value)
    if not known or (known == "auto" and parameter.default != "auto"):
        names = [name for name in ELEMENT_TYPES if name != "auto" or parameter.default == "auto"]
        raise UsageError(f"{parameter.name}: {value!r} is no element type; there are {', '.join(names)}")
    return known


_KINDS = {bool: "true or false", int: "whole number", float: "number"}
_TOO_LARGE = 1 << 31
