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
    r"^(?P<type>(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*?(?:Error|Exception|Exit|Interrupt|Warning|Resources|"
    r"Failed|Failure|Timeout|Iteration|Group|Expired|Cancelled\w*|Killed|Overload|Closed|Died|Dead|"
    r"outofresources)|BackendCompilerFailed|Unsupported|Full|Empty|Abort|SystemExit))"
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
    r"import \w+$|from [\w.]+ import |if .{1,120}:\s*$|else:\s*$|try:\s*$|self\.\w|"
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
    frames: list[Frame] = []
    indent = 0
    after_frame = False
    while index < len(lines):
        line = lines[index]
        body = line.body
        stripped = body.strip()
        if found := _FRAME.match(body):
            frames.append(Frame(found["file"], int(found["line"]), (found["function"] or "").strip()))
            indent = len(found["indent"])
            line.kind = Kind.FRAME
            after_frame = True
        elif found := _NOTEBOOK_FRAME.match(body):
            number = int(found["line"] or found["cell"])
            function = (found["function"] or "").partition("(")[0].rpartition(".")[2]
            frames.append(Frame(found["file"] or "<cell>", number, function))
            line.kind = Kind.FRAME
            after_frame = False
        elif frames and not indent and (found := _NOTEBOOK_CODE.match(body)):
            line.kind = Kind.CODE
            if body.startswith("-"):
                frames[-1] = msgspec.structs.replace(frames[-1], source=body[found.end() :].strip())
        elif not stripped or _CARETS.match(body) or _REPEATED.match(body):
            line.kind = Kind.CODE if stripped else line.kind
        elif found := _RICH_FRAME.match(stripped):
            frames.append(Frame(found["file"], int(found["line"]), found["function"] or ""))
            line.kind = Kind.FRAME
        elif line.prefix.boxed or stripped[:1] in "╰╭" or _RICH_CODE.match(body):
            line.kind = Kind.CODE
            if frames and "❱" in line.pieces[0].raw:
                source = _RICH_SOURCE.sub("", stripped.lstrip("❱ "))
                frames[-1] = msgspec.structs.replace(frames[-1], source=source.strip("│ "))
        elif frames and len(body) - len(body.lstrip()) > indent and (indent or after_frame):
            line.kind = Kind.CODE
            if after_frame:
                frames[-1] = msgspec.structs.replace(frames[-1], source=stripped)
            after_frame = False
        elif _HEAD.search(body) or _CHAIN.match(stripped):
            break
        elif found := _EXCEPTION.match(stripped):
            line.kind = Kind.EXCEPTION
            message = (found["message"] or "").strip()
            return Raised(found["type"], message, tuple(frames), first, index, chain), index + 1
        elif after_frame:
            # Indentation was lost on the way: the line after a frame is its source.
            line.kind = Kind.CODE
            after_frame = False
        elif _is_code(body):
            line.kind = Kind.CODE
        else:
            break
        index += 1
    if not frames:
        return None, index
    # The exception's own line is missing, but where it happened is known.
    return Raised("", "", tuple(frames), first, index - 1, chain), index
