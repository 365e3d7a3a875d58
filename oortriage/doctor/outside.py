"""Programs of others, started so that none can hold us up: with a time limit, and left behind when they will not die.

A process that waits inside a sick driver cannot be killed; waiting for it would be the hang that it reports.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

#: Bytes of output that are kept.
MOST_OUTPUT = 16 << 20
_GRACE_SECONDS = 2.0

UnreadKind = Literal["missing", "denied", "timeout", "error"]


class Unread(msgspec.Struct, frozen=True):
    """Something that could not be read, and why; ``out`` is what a program wrote before it was ended."""

    reason: str
    kind: UnreadKind = "error"
    out: str = ""


class Ran(msgspec.Struct, frozen=True):
    """A program that ended: exit code, and what it wrote."""

    code: int
    out: str
    err: str


def run(command: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None) -> Ran | Unread:
    """Run a program without input; never raise, never wait longer than ``seconds`` and a little.

    Args:
        command: the program and its arguments.
        seconds: after these it is killed.
        environment: its variables; ours when left out.
    """
    name = os.path.basename(command[0])  # noqa: PTH119 (a name, not a path to open)
    try:
        child = subprocess.Popen(  # noqa: S603 (programs named in this package, and the interpreter the user names)
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )
    except FileNotFoundError:
        return Unread(f"{name} is not there", "missing")
    except PermissionError:
        return Unread(f"{name} may not be run", "denied")
    except (OSError, ValueError) as problem:
        return Unread(f"{name} cannot be run: {problem}")
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return Unread(f"{name} did not end within {seconds:g} s", "timeout", _end(child))
    except (OSError, ValueError) as problem:
        _end(child)
        return Unread(f"{name}: its output cannot be read: {problem}")
    return Ran(child.returncode, _text(out), _text(err))


def _end(child: subprocess.Popen[bytes]) -> str:
    """Kill a program and its children, and return what it wrote; leave it behind when even that does not help."""
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        child.kill()
    with contextlib.suppress(subprocess.TimeoutExpired, OSError, ValueError):
        return _text(child.communicate(timeout=_GRACE_SECONDS)[0])
    return ""


def _text(data: bytes) -> str:
    return data[:MOST_OUTPUT].decode("utf-8", "replace")
