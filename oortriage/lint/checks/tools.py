"""LT6xx: other programs of a launch script: dcgmi, nvidia-smi, nvprof, exporters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oortriage.lint.checks._interface import Case, Check, Hit
from oortriage.lint.unit import Word

_DCGM = "NVIDIA/DCGM dcgmlib/dcgm_fields.h"
_DMON = "docs.nvidia.com/datacenter/dcgm, dcgmi dmon"
#: Fields have smaller numbers than this: DCGM_FI_MAX_FIELDS.
_FIELDS = 1504
_METRIC = re.compile(r"nvidia_dcgm_fb_used_bytes")


def _dmon(case: Case) -> tuple[Word, ...]:
    """Return the words after ``dcgmi dmon``."""
    words = () if case.unit.talk else case.unit.words
    for place, word in enumerate(words[:-1]):
        if word.text.rpartition("/")[2] == "dcgmi" and words[place + 1].text == "dmon":
            return words[place + 2 :]
    return ()


def _value(words: tuple[Word, ...], *names: str) -> Word | None:
    for place, word in enumerate(words):
        name, mark, value = word.text.partition("=")
        if name in names:
            if mark:
                return Word(value, word.line, word.open)
            return words[place + 1] if place + 1 < len(words) else None
    return None


def _fields(case: Case) -> Iterator[Hit]:
    word = _value(_dmon(case), "-e", "--field-id")
    if word is None or word.open:
        return
    for one in word.text.split(","):
        if not one.strip().isdecimal() or len(one.strip()) > 9 or int(one) < _FIELDS:
            continue
        known = {"2004": "memory in use is 252 (MiB)", "2005": "the share of time memory was busy is 204"}
        subject = f"dcgmi dmon -e {one.strip()}"
        if one.strip() in known:
            yield Hit(subject, f"is no field: ids stay below {_FIELDS}; {known[one.strip()]}", word.line)
        else:
            text = f"is above the highest id of the header that was read, {_FIELDS - 1}; `dcgmi dmon -l` lists yours"
            yield Hit(subject, text, word.line, severity="warning")


def _delay(case: Case) -> Iterator[Hit]:
    word = _value(_dmon(case), "-d", "--delay")
    if word and not word.open and word.text.isdecimal() and len(word.text) < 9 and int(word.text) < 100:
        text = f"is {int(word.text)} ms: the delay is in milliseconds; one second is -d 1000"
        yield Hit(f"dcgmi dmon -d {word.text}", text, word.line)


def _header(case: Case) -> Iterator[Hit]:
    for word in _dmon(case):
        if word.text == "--no-header":
            yield Hit("dcgmi dmon --no-header", "is no option of dmon; drop lines that begin with # instead", word.line)


def _apps(case: Case) -> Iterator[Hit]:
    for word in case.unit.words if _starts(case, "nvidia-smi") else ():
        found = re.match(r"--(query-compute-apps|query-gpu|format)(?=[a-z])", word.text)
        if found:
            yield Hit(word.text, f"lost its equals sign: write --{found[1]}=...", word.line)


def _nvprof(case: Case) -> Iterator[Hit]:
    if not _starts(case, "nvprof"):
        return
    line = case.unit.words[0].line
    if case.card is None:
        text = "profiles nothing on compute capability 8.0 and higher; use nsys profile"
        yield Hit("nvprof", text, line, severity="info")
    elif case.card.capability >= (8, 0):
        yield Hit("nvprof", f"profiles nothing on {case.card.said}; use nsys profile", line)


def _metric(case: Case) -> Iterator[Hit]:
    for word in case.unit.words:
        if _METRIC.search(word.text):
            text = "is no metric of dcgm-exporter; it exports DCGM_FI_DEV_FB_USED, in MiB"
            if "$4" in word.text:
                text += "; and of dcgmi dmon's columns $1 and $2 name the card, $3 is the first field asked for"
            yield Hit("nvidia_dcgm_fb_used_bytes", text, word.line)


def _starts(case: Case, program: str) -> bool:
    return bool(case.unit.words) and case.unit.words[0].text.rpartition("/")[2] == program


CHECKS = (
    Check(
        "LT601",
        "error",
        "A dcgmi field that does not exist",
        "`dcgmi dmon -e 2004,2005` is handed on by articles; FB_USED is 252, MEM_COPY_UTIL is 204.",
        _DCGM,
        _fields,
    ),
    Check("LT602", "warning", "A dcgmi delay in seconds", "`-d` counts milliseconds.", _DMON, _delay),
    Check("LT603", "error", "`dcgmi dmon --no-header`", "There is no such option.", _DMON, _header),
    Check(
        "LT604",
        "error",
        "A query of nvidia-smi without its equals sign",
        "Copied pages lose it: `--query-compute-apps=pid,used_memory --format=csv`.",
        "nvidia-smi --help-query-compute-apps",
        _apps,
    ),
    Check(
        "LT605",
        "warning",
        "nvprof on a card it does not support",
        "With --gpu; a remark without it.",
        "nvprof's own warning: not supported on devices with compute capability 8.0 and higher",
        _nvprof,
    ),
    Check(
        "LT606",
        "warning",
        "A metric that no exporter has",
        "In a script that writes it.",
        "NVIDIA/dcgm-exporter etc/default-counters.csv",
        _metric,
    ),
)
