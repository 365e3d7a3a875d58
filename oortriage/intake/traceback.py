"""Python tracebacks: which lines are frames and source code, and how exceptions hang together."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from oortriage.intake.line import Kind, Line

_HEAD = re.compile(r"Traceback \(most recent call (?:last|first)\):?|\+ Exception Group Traceback|╭─+ Traceback")
_FRAME = re.compile(
    r'^(?P<indent>[ \t|]*)File "(?P<file>[^"]{1,400})", line (?P<line>\d+)(?:, in (?P<function>.{1,200}))?'
)
#: IPython and Jupyter: ``File ~/x.py:330, in f(...)`` and ``Cell In[7], line 4``.
_NOTEBOOK_FRAME = re.compile(
    r"^(?:File (?P<file>[^\s:]{1,300}\.py):(?P<line>\d+)|Cell In\s?\[\d+\], line (?P<cell>\d+))"
    r"(?:, in (?P<function>[^\n]{1,200}))?"
)
_NOTEBOOK_CODE = re.compile(r"^(?:-+>\s*\d+|\s*\d+)(?:\s|$)")
_CARETS = re.compile(r"^\s*[~^]{2,}[\s~^]*$|^\s*\^\s*$")
_REPEATED = re.compile(r"^\s*\[Previous line repeated \d+ more times?\]")
_EXCEPTION = re.compile(
    r"^(?P<type>(?:[A-Za-z_]\w*\.)*(?:_?[A-Z]\w*?(?:Error(?:_\w{1,60})?|Exception|Exit|Interrupt|Warning|Resources|"
    r"Failed|Failure|Timeout|Iteration|Group|Expired|Cancelled\w*|Killed|Overload|Closed|Died|Dead|"
    r"outofresources)|BackendCompilerFailed|Unsupported|Full|Empty|Abort|SystemExit|Exception|Broken\w+)"
    r"(?:(?<=TaskError)\([\w.]{1,200}\))?)"  # Ray names the cause: RayTaskError(OutOfMemoryError)
    r"(?P<colon>:(?: (?P<message>.*))?)?$",
    re.DOTALL,
)
_CHAIN = re.compile(
    r"^(?:During handling of the above exception, another exception occurred:"
    r"|The above exception was the direct cause of the following exception:)"
)
#: Code that stands in a log without a frame above it: cut tracebacks, quoted source, diffs.
_CODE = re.compile(
    r"^\s*(?:raise |raise_\(|return |assert |def \w|class \w+[(:]|elif |except\b.*:\s*$|"
    r"import \w+$|from [\w.]+ import |if .{1,120}:\s*$|else:\s*$|try:\s*$|self\.(?![\w.]+=[^=\s])\w|"
    r"logger\.\w+\(|logging\.\w+\(|print\(|TORCH_CHECK\(|C10_CUDA_CHECK\(|#include|@\w|with .{1,120}:\s*$)"
)
_RICH_CODE = re.compile(r"^\s*(?:❱ ?)?\d{1,5} (?:│ |\|)|^\s*❱")
_RICH_FRAME = re.compile(r"^(?P<file>(?:[A-Za-z]:)?[^\s:]{1,300}\.py):(?P<line>\d+) in(?: (?P<function>\S+))?")
_RICH_SOURCE = re.compile(r"^\s*\d{1,5} (?:│ ?)*")


class Frame(msgspec.Struct, frozen=True):
    """One frame: the file as printed, its 1-based line, the function's name, the line's text."""

    file: str
    line: int
    function: str
    source: str = ""


class Raised(msgspec.Struct, frozen=True):
    """An exception at the end of a traceback; ``type`` is empty where its line is cut off.

    ``first`` and ``last`` index the stream's lines.
    """

    type: str
    message: str
    frames: tuple[Frame, ...]
    first: int
    last: int
    #: How it hangs on the exception before it: "", "during" or "cause".
    chain: str = ""


def parse(lines: Sequence[Line]) -> list[Raised]:
    """Mark the lines of one stream as frames, code and exceptions, and return what was raised.

    Lines of source code inside a traceback, and code that stands alone, get ``Kind.CODE``: they
    quote messages without any having been printed.
    """
    raised: list[Raised] = []
    chain = ""
    index = 0
    while index < len(lines):
        body = lines[index].body
        if _HEAD.search(body):
            lines[index].kind = Kind.TRACEBACK if body.lstrip().startswith(("Tra", "+", "╭")) else Kind.MESSAGE
            one, index = _one(lines, index + 1, index, chain)
            if one:
                raised.append(one)
            chain = ""
        elif _FRAME.match(body) and index + 1 < len(lines):
            one, index = _one(lines, index, index, chain)
            if one:
                raised.append(one)
            chain = ""
        elif found := _CHAIN.match(body.strip()):
            chain = "during" if found.group().startswith("During") else "cause"
            lines[index].kind = Kind.TRACEBACK
            index += 1
        else:
            if _is_code(body) or (lines[index].prefix.boxed and _RICH_CODE.match(body)):
                lines[index].kind = Kind.CODE
            elif _EXCEPTION.match(body.strip()):
                lines[index].kind = Kind.EXCEPTION
            if body.strip():
                chain = ""
            index += 1
    return raised


def _is_code(body: str) -> bool:
    return bool(_CODE.match(body)) and not _EXCEPTION.match(body.strip())


def _one(lines: Sequence[Line], index: int, first: int, chain: str) -> tuple[Raised | None, int]:
    """Read the frames from ``index`` on and the exception that ends them."""
    reader = _Reader()
    while index < len(lines):
        line = lines[index]
        stripped = line.body.strip()
        if reader.takes_frame(line) or reader.takes_code(line):
            index += 1
        elif _HEAD.search(line.body) or _CHAIN.match(stripped):
            break
        elif found := _EXCEPTION.match(stripped):
            line.kind = Kind.EXCEPTION
            message = (found["message"] or "").strip()
            return Raised(found["type"], message, tuple(reader.frames), first, index, chain), index + 1
        elif reader.takes_code_without_indent(line):
            index += 1
        else:
            break
    if not reader.frames:
        return None, index
    # The exception's own line is missing, but where it happened is known.
    return Raised("", "", tuple(reader.frames), first, index - 1, chain), index


class _Reader:
    """The frames of one traceback, in the styles of Python, notebooks and rich."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self._indent = 0
        self._wants_source = False

    def takes_frame(self, line: Line) -> bool:
        """Take a line that names a file, a line and a function."""
        if found := _FRAME.match(line.body):
            self._add(found["file"], found["line"], (found["function"] or "").strip())
            self._indent = len(found["indent"])
        elif found := _NOTEBOOK_FRAME.match(line.body):
            function = (found["function"] or "").partition("(")[0].rpartition(".")[2]
            self._add(found["file"] or "<cell>", found["line"] or found["cell"], function)
            self._wants_source = False
        elif found := _RICH_FRAME.match(line.body.strip()):
            self._add(found["file"], found["line"], found["function"] or "")
        else:
            return False
        line.kind = Kind.FRAME
        return True

    def takes_code(self, line: Line) -> bool:
        """Take a line that its shape marks as source code, or as decoration of it."""
        body, stripped = line.body, line.body.strip()
        if not stripped:
            return True
        if _CARETS.match(body) or _REPEATED.match(body):
            pass
        elif line.prefix.boxed or stripped[0] in "╰╭" or _RICH_CODE.match(body):
            if "❱" in line.pieces[0].raw:
                self._source(_RICH_SOURCE.sub("", stripped.lstrip("❱ ")).strip("│ "))
        elif self.frames and not self._indent and (found := _NOTEBOOK_CODE.match(body)):
            if body.startswith("-"):
                self._source(body[found.end() :].strip())
        elif self.frames and len(body) - len(body.lstrip()) > self._indent and (self._indent or self._wants_source):
            if self._wants_source:
                self._source(stripped)
        else:
            return False
        line.kind = Kind.CODE
        return True

    def takes_code_without_indent(self, line: Line) -> bool:
        """Take the line after a frame whose indentation was lost on the way, and bare statements."""
        if not self._wants_source and not _is_code(line.body):
            return False
        if self._wants_source:
            self._source(line.body.strip())
        line.kind = Kind.CODE
        return True

    def _add(self, file: str, number: str, function: str) -> None:
        self.frames.append(Frame(file, int(number), function))
        self._wants_source = True

    def _source(self, text: str) -> None:
        if self.frames:
            self.frames[-1] = msgspec.structs.replace(self.frames[-1], source=text)
        self._wants_source = False
