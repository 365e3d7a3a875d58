"""What loggers, launchers and collectors put in front of a message: peeled off, and kept as facts.

Each form is one regular expression with groups of a few known names: ``container`` (compose service,
pod, host), ``process`` (a worker's name), ``pid``, ``rank``, ``level``, ``time`` and ``place`` (the
source file that logged). Forms nest, so peeling goes on until none fits.
"""

from __future__ import annotations

import re

import msgspec

_LEVEL = r"TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL|EXCEPTION"
_ISO = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,6})?"
#: Ranks of data, tensor, pipeline, expert and context parallelism: ``DP1 TP5``.
_RANKS = r"(?P<rank>(?:(?:DP|TP|PP|EP|CP)\d+ ?){1,4})"
_IP = r"(?:, ip=(?P<container>[\d.]+))?"

_FORMS_BY_START: dict[str, tuple[str, ...]] = {
    "(": (
        # vLLM and Ray: (EngineCore_DP0 pid=270), (VllmWorker rank=7 pid=1), (main pid=9, ip=10.0.0.3)
        rf"\((?P<process>[A-Za-z_][\w.:/-]{{1,60}})(?: +rank=(?P<rank>\d+))?,? +pid=(?P<pid>\d+){_IP}\) ?",
        rf"\((?P<process>[A-Za-z_]\w{{1,60}}) +{_RANKS}pid=(?P<pid>\d+)\) ?",
        rf"\(pid=(?P<pid>\d+){_IP}\) ?",
        (
            r"\((?P<process>raylet|autoscaler[^),]{0,20}|gcs_server|APIServer|EngineCore\w{0,8}|Worker\w{0,24})"
            rf"{_IP}\) ?"
        ),
    ),
    "[": (
        r"\[rank(?P<rank>\d+)\]: ?(?=\[?[^\s\]]|\s|$)",
        r"\[resource\.labels\.\w+: (?P<container>[\w.-]+)\] ?",
        r"\[(?P<rank>\d+),\d+\]<std(?:out|err)>: ?",
        # SGLang: [2025-05-04 01:05:33 TP5] ; with DP and PP ranks too
        rf"\[(?P<time>{_ISO})(?: {_RANKS})?\] ?",
        rf"\[(?P<time>{_CLOCK}) {_RANKS}\] ?",
        # torch C++: [W1129 20:17:07.100251010 socket.cpp:207]
        r"\[(?P<level>[IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ (?P<place>[\w./-]+:\d+)\] ?",
        # TensorRT-LLM: [04/02/2026-18:45:45] [TRT-LLM] [W], and [TRT-LLM] [RANK 3] [E]
        (
            r"\[(?P<time>\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d)\] (?:\[[\w-]{2,16}\] )?"
            r"(?:\[RANK (?P<rank>\d+)\] )?(?:\[(?P<level>[IWEFVD])\] )?"
        ),
        r"\[RANK (?P<rank>\d+)\] ?",
        rf"\[[\w-]{{2,16}}\]\[(?P<level>{_LEVEL})\] ?",
        rf"\[(?P<time>\d\d-\d\d {_CLOCK}|{_CLOCK})\] ?(?:(?P<process>\w+)/(?P<level>{_LEVEL}) {{1,2}})?",
        rf"\[(?P<level>{_LEVEL})\] ?",
        rf"\[(?P<level>{_LEVEL})[ |]+(?P<time>{_ISO})[^\]]{{0,60}}\] ?",
        r"\[(?P<place>[\w./-]+\.(?:py|cpp|cc|cu|rs):\d+(?::[\w<>]+)?)\] ?",
        r"\[\d{1,3}/\d{1,3}(?:_\d+)?\] ",  # torch.compile frame ids [2/0]
        r"\[pod/(?P<container>[\w.-]+)/(?P<process>[\w.-]+)\] ?",
        rf"\[(?P<time>{_ISO})[,.]\d+ (?P<level>[A-Z]) \d+ (?P<pid>\d+)\] ?",
    ),
    "digit": (
        (
            rf"(?P<time>{_ISO})(?:,\d+)? - (?P<process>[\w.]+) - (?P<level>{_LEVEL}) - "
            r"(?:\[-\] - )?(?:(?P<place>[\w.]+:\d+) - )?"
        ),
        # Ray's driver: 2022-06-03 17:35:45,343<tab>INFO context.py:70 --
        rf"(?P<time>{_ISO})[\t ](?P<level>{_LEVEL})[\t ]+(?P<place>[\w./-]+:\d+) -- ",
        # absl and TensorFlow: 2023-08-28 03:06:51.319566: W external/xla/...cc:123]
        rf"(?P<time>{_ISO}): (?P<level>[IWEF]) (?P<place>[\w./-]+:\d+)\] ?",
        rf"(?P<time>{_ISO}) (?P<container>[\w.-]+) (?P<process>[\w./-]+)\[(?P<pid>\d+)\]: ?",
        # containerd / CRI: time stream F
        rf"(?P<time>{_ISO}) (?:stdout|stderr) [FP] ",
        rf"(?P<time>{_ISO}) \|? ?(?P<level>{_LEVEL}) *(?:\||:|-|(?=\[)) ?(?:(?P<place>[\w.<>]+:[\w.<>]+:\d+) - )?",
        rf"(?P<time>{_ISO}) (?P<level>{_LEVEL}) +(?:(?P<place>[\w./-]+:\d+)[\]:] ?)?",
        rf"(?P<time>{_ISO})(?: \||:|\t)? ?",
        rf"(?P<time>{_CLOCK}) (?P<level>{_LEVEL}) +",
        r"(?P<rank>\d{1,4}): (?= *\S)",  # srun --label
    ),
    "letter": (
        # vLLM: INFO 11-29 20:16:45 [utils.py:278]  and  ERROR 03-13 09:00:43 core.py:330]
        (
            rf"(?P<level>{_LEVEL}):? +(?P<time>(?:\d{{4}}-)?\d\d-\d\d {_CLOCK}) "
            r"\[?(?P<place>[\w./-]+:\d+)\] ?"
        ),
        rf"(?P<level>{_LEVEL}) (?P<time>\d\d-\d\d {_CLOCK}) ",
        rf"(?P<level>{_LEVEL}) +(?P<time>{_ISO})(?: \[?(?P<place>[\w./-]+:\d+)\])? ?",
        # glog: E0912 11:54:57.366000 1121181 torch/_inductor/select_algorithm.py:1517] [2/0]
        r"(?P<level>[IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +(?P<pid>\d+) (?P<place>[\w./<>-]+:\d+)\] ?",
        # NCCL: host:pid:tid [0] file:line NCCL WARN
        r"(?P<container>[A-Za-z][\w.-]{0,62}):(?P<pid>\d+):\d+ \[(?P<rank>\d+)\] ?(?=\S)",
        # syslog: Nov 29 21:13:39 host prog[pid]:
        (
            r"(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?P<container>[\w.-]+) "
            r"(?P<process>[\w./@-]+)(?:\[(?P<pid>\d+)\])?: ?"
        ),
        # docker compose, at the margin or after a time: vllm-1  | text
        r"(?:^|(?<=[\dZ] )|(?<=> ))(?P<container>[a-z][\w.-]{0,40}?) {1,30}\| ?",
        # logfmt: time=2026-02-11T20:41:13+01:00 level=WARN source=server.go:1041 msg=
        r"time=\"?(?P<time>[\dT:.+Z-]{10,40})\"? level=(?P<level>[A-Za-z]{4,8}) (?:source=(?P<place>[\w./-]+:\d+) )?",
        rf"(?P<level>{_LEVEL}):(?P<process>[\w.]+): ?",
        rf"(?P<level>{_LEVEL}): +(?=\S)",
        rf"(?P<level>{_LEVEL}) +(?:\[(?P<place>[^\]\s]{{1,60}})\] ?)?(?=[A-Z(\[])",
        r"E {2,3}(?=[a-zA-Z])",  # pytest's error lines
        r"(?:Error|stderr|stdout|STDERR|STDOUT): (?=Traceback|  File)",
    ),
    ">": (r">(?: |$)",),
    "@": (r"@E@",),
    "|": (r"\| ?(?=\S)",),
    "│": (r"│ ?",),
    "❱": (r"❱ ?",),
}


def _combined(forms: tuple[str, ...]) -> re.Pattern[str]:
    """Join forms into one expression, tried in order; group names get the form's number."""
    numbered = [form.replace("(?P<", f"(?P<f{number}_") for number, form in enumerate(forms)]
    return re.compile("|".join(f"(?:{form})" for form in numbered))


_COMPILED = {start: _combined(forms) for start, forms in _FORMS_BY_START.items()}
#: Inside a box or a table, ``name |`` is a cell and no container.
_IN_BOX = {
    start: _combined(tuple(form for form in forms if "(?P<container>" not in form) or ("(?!)",))
    for start, forms in _FORMS_BY_START.items()
}
_MAX_PEELS = 8


class Prefix(msgspec.Struct, frozen=True):
    """What stood in front of a message. ``length`` is in characters of the cleaned line.

    ``stream`` names the process the line belongs to; it is empty when the prefix names none.
    """

    length: int = 0
    container: str = ""
    process: str = ""
    pid: str = ""
    rank: str = ""
    level: str = ""
    time: str = ""
    place: str = ""
    quoted: bool = False
    boxed: bool = False
    stream: str = ""


NO_PREFIX = Prefix()


def peel(text: str) -> Prefix:
    """Read every prefix in front of a cleaned line; the message begins at ``length``."""
    at = 0
    fields: dict[str, str] = {}
    quoted = boxed = False
    for _ in range(_MAX_PEELS):
        indent = at
        while text[indent : indent + 1] == " " and indent - at < 4:
            indent += 1
        first = text[indent : indent + 1]
        kind = "digit" if first.isdigit() else "letter" if first.isalpha() else first
        forms = (_IN_BOX if boxed else _COMPILED).get(kind)
        found = forms.match(text, indent) if forms else None
        if found is None or found.end() == at:
            break
        quoted = quoted or first == ">"
        boxed = boxed or first in "│❱|"
        for name, value in found.groupdict().items():
            if value:
                fields.setdefault(name.partition("_")[2], value.strip())
        at = found.end()
    if not at:
        return NO_PREFIX
    return Prefix(length=at, quoted=quoted, boxed=boxed, stream=stream_of(fields), **fields)


def stream_of(fields: dict[str, str]) -> str:
    """Name a process by what is known of it: container, worker, rank, pid."""
    who = fields.get("process", "")
    for label in ("rank", "pid"):
        if value := fields.get(label):
            who = f"{who} {label}={value}" if who else f"{label}={value}"
    container = fields.get("container", "")
    return f"{container}/{who}" if container and who else container or who
