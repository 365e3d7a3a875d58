"""Runs the user's command as if nobody stood between: output live and unchanged, signals on, its own exit code.

Each output that is a terminal becomes a terminal for the command as well, so that programs go on drawing
progress bars; what both outputs share (``2>&1``) they go on sharing, so that the order stays. Input is not
touched.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import msgspec

from oortriage.capture.tail import Tail
from oortriage.errors import OortriageError

#: How long an output is still read that processes left behind hold open, after their last word (seconds).
LINGER_SECONDS = 1.0
_CHUNK = 1 << 16
#: Signals that are handed on; where the terminal sent it, the command has it already.
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGBREAK")
_FROM_TERMINAL = ("SIGINT", "SIGQUIT")


class CommandError(OortriageError):
    """The command cannot be started; its exit code is the shell's for that."""

    def __init__(self, message: str, exit_code: int) -> None:
        """Set the code: 127 not found, 126 not to be executed."""
        super().__init__(message)
        self.exit_code = exit_code


class Ended(msgspec.Struct, frozen=True):
    """How the command ended: its code as a shell gives it (128 and the signal's number), and its output."""

    code: int
    signal: int
    output: bytes

    @property
    def interrupted(self) -> bool:
        """Whether the user ended it."""
        return self.signal == signal.SIGINT or self.code == 128 + signal.SIGINT


def run_command(command: Sequence[str], variables: Mapping[str, str]) -> Ended:
    """Run a command to its end.

    Args:
        command: the program and its arguments.
        variables: added to the environment.

    Raises:
        CommandError: it cannot be started.
    """
    kept = Tail()
    with _Signals() as signals:
        channels = _channels()
        try:
            child = subprocess.Popen(  # noqa: S603 (running the user's command is what this is for)
                list(command),
                stdout=channels[0].inner,
                stderr=channels[-1].inner,
                env={**os.environ, **variables},
            )
        except OSError as problem:
            for channel in channels:
                channel.close()
            code = 127 if isinstance(problem, FileNotFoundError) else 126
            raise CommandError(f"{command[0]}: cannot be started: {problem.strerror or problem}", code) from problem
        signals.started(child, channels)
        for channel in channels:
            channel.start(kept)
        code = child.wait()
        _drain(channels)
    return Ended(code if code >= 0 else 128 - code, max(0, -code), kept.text())


class _Channel:
    """One way out: read from the command, written where it would have gone."""

    def __init__(self, outer: int) -> None:
        self._outer = outer
        self._thread: threading.Thread | None = None
        self.last = time.monotonic()
        self._read, self.inner = _terminal(outer) or os.pipe()

    def start(self, kept: Tail) -> None:
        """Begin to read; the end that the command writes to is now its alone."""
        os.close(self.inner)
        self._thread = threading.Thread(target=self._pump, args=(kept,), daemon=True)
        self._thread.start()

    def _pump(self, kept: Tail) -> None:
        """Read to the end; where nobody reads us, stop too, so that the command learns it as it would have."""
        while data := self._next():
            self.last = time.monotonic()
            kept.add(data)
            if not _write(self._outer, data):
                break
        os.close(self._read)

    def _next(self) -> bytes:
        try:
            return os.read(self._read, _CHUNK)
        except OSError:  # what a terminal says when nobody is left on the other side
            return b""

    def done(self) -> bool:
        """Tell whether all was read."""
        return self._thread is None or not self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Wait for the rest."""
        if self._thread:
            self._thread.join(seconds)

    def close(self) -> None:
        """Close both ends of one that was not started."""
        for end in (self.inner, self._read):
            with contextlib.suppress(OSError):
                os.close(end)

    def resize(self) -> None:
        """Give the command's terminal the size of ours."""
        with contextlib.suppress(Exception):
            _copy_size(self._outer, self._read)


def _channels() -> list[_Channel]:
    """Make one channel an output, or one for both where they are the same file."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    if _same_file(1, 2):
        return [_Channel(1)]
    return [_Channel(1), _Channel(2)]


def _same_file(one: int, other: int) -> bool:
    """Tell whether two outputs are one file; two openings of one file on disk have places of their own."""
    try:
        if not os.path.sameopenfile(one, other):
            return False
        if not stat.S_ISREG(os.fstat(one).st_mode):
            return True
        return os.lseek(one, 0, os.SEEK_CUR) == os.lseek(other, 0, os.SEEK_CUR)
    except OSError:
        return False


def _write(outer: int, data: bytes) -> bool:
    """Write all of it; False when nobody reads any more."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(outer, view) :]
        except BlockingIOError:
            time.sleep(0.005)
        except OSError:
            return False
    return True


def _terminal(outer: int) -> tuple[int, int] | None:
    """Make a terminal for the command where our own output is one; None where it is not, or cannot be made."""
    if not os.isatty(outer):
        return None
    try:
        import pty
        import termios

        read, inner = pty.openpty()
        state = termios.tcgetattr(outer)
        state[1] &= ~termios.OPOST  # the real terminal turns line ends into its own, once
        termios.tcsetattr(inner, termios.TCSANOW, state)
        _copy_size(outer, inner)
    except (ImportError, OSError):
        return None
    return read, inner


def _copy_size(source: int, target: int) -> None:
    import fcntl
    import termios

    size = fcntl.ioctl(source, termios.TIOCGWINSZ, b"\0" * 8)
    fcntl.ioctl(target, termios.TIOCSWINSZ, size)


def _drain(channels: Sequence[_Channel]) -> None:
    """Read what is left; processes that the command left behind do not keep us longer than they talk."""
    ended = time.monotonic()
    for channel in channels:
        while not channel.done() and time.monotonic() - max(ended, channel.last) < LINGER_SECONDS:
            channel.wait(0.02)


class _Signals:
    """Hands signals on to the command for as long as it runs; what was ignored stays ignored."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._channels: Sequence[_Channel] = ()
        self._before: dict[int, Any] = {}
        self._early: list[int] = []

    def __enter__(self) -> _Signals:  # noqa: PYI034 (nothing is derived from it)
        for number in self._numbers(_FORWARDED):
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._hand_on)
        for number in self._numbers(("SIGWINCH",)):
            self._before[number] = signal.signal(number, self._resize)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def started(self, child: subprocess.Popen[bytes], channels: Sequence[_Channel]) -> None:
        """Hand on what came while the command was being started."""
        self._child, self._channels = child, channels
        for number in self._early:
            self._hand_on(number, None)

    def _hand_on(self, number: int, _frame: FrameType | None) -> None:
        if self._child is None:
            self._early.append(number)
        elif number not in self._numbers(_FROM_TERMINAL) or not _terminal_is_ours():
            with contextlib.suppress(OSError, ValueError):
                self._child.send_signal(number)

    def _resize(self, _number: int, _frame: FrameType | None) -> None:
        for channel in self._channels:
            channel.resize()

    @staticmethod
    def _numbers(names: Sequence[str]) -> Iterator[int]:
        return (int(getattr(signal, name)) for name in names if hasattr(signal, name))


def _terminal_is_ours() -> bool:
    """Tell whether a terminal sends its signals to this whole process group: then the command has it too."""
    try:
        with open("/dev/tty", "rb", buffering=0) as terminal:  # noqa: PTH123
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except (OSError, AttributeError):
        return False
