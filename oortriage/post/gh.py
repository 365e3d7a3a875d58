"""Requests through the command ``gh``, with its login."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import msgspec

from oortriage.post._interface import Request, Response
from oortriage.post.errors import UncertainError
from oortriage.post.rest import HEADERS, decoded
from oortriage.post.retry import UnreachableError

_SECONDS = 60.0
_STATUS = re.compile(rb"HTTP/[\d.]+ (\d{3})[^\n]*\n")
_BLANK = re.compile(rb"\r?\n\r?\n")
#: What gh says where nobody heard it, so that the request can be sent again.
_UNHEARD = ("connection refused", "no such host", "error connecting to", "dial tcp", "network is unreachable")
_QUIET = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}
#: Settings that would add to what gh prints.
_LOUD = ("GH_DEBUG", "DEBUG", "GH_FORCE_TTY", "CLICOLOR_FORCE")


def logged_in(host: str) -> str | None:
    """Return the path of ``gh`` where it is installed and has a login for a host; it stays in there."""
    path = shutil.which("gh")
    if path is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 (a program of the user's, found on their path)
            [path, "auth", "token", "--hostname", host],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return path if done.returncode == 0 else None


class GhTransport:
    """Sends requests with ``gh api``."""

    def __init__(self, path: str, *, seconds: float = _SECONDS) -> None:
        """Keep the path of ``gh`` and how long one answer may take, in seconds."""
        self._path, self._seconds = path, seconds

    def send(self, request: Request) -> Response:
        """Send one request.

        Raises:
            UnreachableError: gh could not be run, or had no connection.
            UncertainError: no answer came back.
        """
        headers = [word for name, value in HEADERS.items() for word in ("--header", f"{name}: {value}")]
        command = [self._path, "api", "--include", "--method", request.method, *headers, request.url]
        data = b"" if request.body is None else msgspec.json.encode(request.body)
        try:
            done = subprocess.run(  # noqa: S603 (no shell; the text of the report goes by standard input)
                command if request.body is None else [*command, "--input", "-"],
                input=data,
                capture_output=True,
                env=_environment(),
                timeout=self._seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as problem:
            raise UncertainError(f"gh gave no answer in {self._seconds:.0f} s") from problem
        except OSError as problem:
            raise UnreachableError(f"gh cannot be run: {problem.strerror or problem}") from problem
        found = _read(done.stdout)
        if found is not None:
            return found
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[:300] or f"it ended with {done.returncode}"
        heard = not any(words in said.lower() for words in _UNHEARD)
        raise (UncertainError if heard else UnreachableError)(f"gh: {said}")


def _read(output: bytes) -> Response | None:
    """Read the status, the headers and the body that ``gh api --include`` prints."""
    first = _STATUS.match(output)
    if not first:
        return None
    head, *rest = _BLANK.split(output[first.end() - 1 :], maxsplit=1)
    pairs = (line.partition(":") for line in head.decode("utf-8", "replace").splitlines())
    headers = {name.strip().lower(): value.strip() for name, mark, value in pairs if mark}
    return Response(int(first[1]), headers, decoded(rest[0]) if rest else None)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _LOUD} | _QUIET
