"""Calls a library's wrapper whatever its release: signatures grew, and each gets what it has a parameter for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def call_with(function: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Call a function with those of the given arguments that it has parameters for, and return what it returns."""
    wanted = inspect.signature(function).parameters
    return function(**{name: value for name, value in given.items() if name in wanted})
