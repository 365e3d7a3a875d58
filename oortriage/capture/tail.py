"""Keeps the beginning and the end of an output that may have any length."""

from __future__ import annotations

from collections import deque
from threading import Lock

HEAD, TAIL = 256 << 10, 4 << 20
_CUT = b"\n[oortriage: output left out here]\n"


class Tail:
    """Takes bytes from several threads; what was left out between beginning and end is said in the text."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        """Begin empty."""
        self._head_size, self._tail_size = head, tail
        self._head, self._end = bytearray(), deque[bytes]()
        self._held = 0
        self._cut = False
        self._lock = Lock()

    def add(self, data: bytes) -> None:
        """Take what comes next."""
        with self._lock:
            room = self._head_size - len(self._head)
            if room > 0:
                self._head += data[:room]
                data = data[room:]
            if data:
                self._end.append(data)
                self._held += len(data)
            while self._held > self._tail_size and len(self._end) > 1:
                self._held -= len(self._end.popleft())
                self._cut = True

    def text(self) -> bytes:
        """Return what was kept, whole lines at the cut."""
        with self._lock:
            end = b"".join(self._end)
            if len(end) > self._tail_size:
                end, self._cut = end[-self._tail_size :], True
            if not self._cut:
                return bytes(self._head) + end
            return bytes(self._head).rpartition(b"\n")[0] + _CUT + end.partition(b"\n")[2]
