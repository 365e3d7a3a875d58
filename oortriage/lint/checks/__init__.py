"""One file a theme, one row a check."""

from __future__ import annotations

from oortriage.lint.checks import conflicts, myths, names, tools, values, variables
from oortriage.lint.checks._interface import Card, Case, Check, Hit, Model

CHECKS: tuple[Check, ...] = tuple(
    sorted(
        (*names.CHECKS, *variables.CHECKS, *values.CHECKS, *conflicts.CHECKS, *myths.CHECKS, *tools.CHECKS),
        key=lambda one: one.code,
    )
)

__all__ = ["CHECKS", "Card", "Case", "Check", "Hit", "Model"]
