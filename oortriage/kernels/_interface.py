"""What a kernel recipe is: how to call a library's own wrapper with the shapes of a crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from oortriage.errors import UsageError

Value = int | float | str | bool | None
Shape = dict[str, Any]


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


def _converted(parameter: Parameter, value: Any) -> Any:
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
    except (KeyError, ValueError) as problem:
        raise UsageError(f"{parameter.name}: {value!r} is no {kind.__name__}") from problem
    if parameter.choices and converted not in parameter.choices:
        raise UsageError(f"{parameter.name}: {value!r} is none of {', '.join(parameter.choices)}")
    return converted


def first_known(values: Sequence[Any], default: Any) -> Any:
    """Return the first value that is not None."""
    return next((value for value in values if value is not None), default)
