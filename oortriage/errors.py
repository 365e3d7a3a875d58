"""Exceptions that reach the user; each carries the exit code the command ends with."""

from __future__ import annotations


class OortriageError(Exception):
    """An error with a message for the user, and the exit code that goes with it."""

    exit_code = 2


class InputError(OortriageError):
    """The input cannot be read at all: missing, a directory without logs, no permission."""


class RuleError(OortriageError):
    """A rule file is not valid. The message names the file, and the line where it is known."""


class UsageError(OortriageError):
    """The command line asks for something that does not exist or does not go together."""
