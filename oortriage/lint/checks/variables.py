"""LT2xx: environment variables that a release does not read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oortriage.lint.checks._interface import Case, Check, Hit
from oortriage.lint.checks.myths import VARIABLES as MYTHS
from oortriage.lint.checks.names import close_to
from oortriage.lint.checks.replacements import INSTEAD
from oortriage.lint.unit import Setting

_TABLE = "vllm/envs.py of every vLLM release from 0.5.4 to 0.33.0"
#: Variables that vLLM's images, builds and Kubernetes set or read outside envs.py; and any program's own.
_ELSEWHERE = re.compile(
    r"VLLM_(?:VERSION\w*|BUILD_\w+|DOCKER_\w+|TEST_\w+|WHEEL_\w*|IMAGE\w*|CI_\w*|COMMIT\w*|PRECOMPILED_\w+|USE_PRECOMPILED"
    r"|SERVICE_\w+|PORT_\d+\w*|\w+_SERVICE_(?:HOST|PORT)\w*|\w+_PORT_\d+_\w+)"
)
#: ``VLLM_ARGS`` and the like: a script's own variable, which is put into the command.
_OWN = re.compile(
    r"VLLM_(?:\w+_)?(?:ARGS?|OPTS|OPTIONS|EXTRA\w*|CMD|COMMAND|MODEL\w*|BIN|HOME|DIR|PATH|LOG_?FILE|PID\w*|NAME)"
)


#: What is read while the package is imported: vllm/logger.py configures logging there.
_AT_IMPORT = ("VLLM_LOGGING_", "VLLM_CONFIGURE_LOGGING")
_ELSE_EARLY = ("CUDA_VISIBLE_DEVICES", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


#: Plug-ins that take vLLM's prefix for variables of their own.
_PLUG_INS = re.compile(r"VLLM_(?:ASCEND|OMNI|SPYRE|GAUDI|HPU|METAL|NEURON|KUNLUN|MLU|MUSA)_\w+")


def _absent(case: Case) -> Iterator[Setting]:
    for setting in case.settings.values():
        name = setting.name
        if name.startswith("VLLM_") and name not in case.surface.variables and name not in MYTHS:
            yield setting


def _never(case: Case) -> Iterator[Hit]:
    for setting in _absent(case):
        name = setting.name
        if name in case.tables.variables or _ELSEWHERE.fullmatch(name) or _OWN.fullmatch(name):
            continue
        strict = case.on("--fail-on-environ-validation") is not None
        then = ", and --fail-on-environ-validation makes it an error" if strict else ""
        text = f"is in envs.py neither of vLLM {case.release.text} nor of any release read{then}"
        if _PLUG_INS.fullmatch(name):
            yield Hit(name, f"{text}; a plug-in may read it", setting.line, severity="error" if strict else "info")
            continue
        text += close_to(name, case.surface.variables)
        yield Hit(name, text, setting.line, severity="error" if strict else None)


def _gone(case: Case) -> Iterator[Hit]:
    for setting in _absent(case):
        since, until = case.tables.span(setting.name)
        if since and until and not case.at(until=until) and setting.name not in case.surface.unsure:
            instead = f": {INSTEAD[setting.name]}" if setting.name in INSTEAD else ""
            text = f"is ignored: vLLM read it from {since} to {until}{instead}"
            yield Hit(setting.name, text, setting.line, since, until)


def _not_yet(case: Case) -> Iterator[Hit]:
    for setting in _absent(case):
        since, until = case.tables.span(setting.name)
        if since and (not until or case.at(until=until)) and setting.name not in case.surface.unsure:
            came = f"it came with {since}" if not case.at(since) else f"only others from {since} on do"
            yield Hit(setting.name, f"vLLM {case.release.text} does not read it: {came}", setting.line, since, until)


def _unsure(case: Case) -> Iterator[Hit]:
    for setting in _absent(case):
        if setting.name in case.surface.unsure:
            text = f"could not tell whether vLLM {case.release.text} reads it: {case.surface.origin}"
            yield Hit(setting.name, text, setting.line, *case.tables.span(setting.name))


def _late(case: Case) -> Iterator[Hit]:
    for setting in case.unit.late:
        if setting.name.startswith(_AT_IMPORT):
            text = "comes too late: vLLM sets its logging up while it is imported; set it before the import"
            yield Hit(setting.name, text, setting.line, severity="warning")
        elif setting.name in case.surface.variables or setting.name in _ELSE_EARLY:
            text = (
                "is set after vLLM was imported: what is read at the import does not see it; set it before the import"
            )
            yield Hit(setting.name, text, setting.line)


CHECKS = (
    Check(
        "LT201",
        "warning",
        "A variable that no vLLM reads",
        "No release read has it in envs.py; it does nothing. From 0.17.1 on vLLM warns `Unknown vLLM environment "
        "variable detected`. A real name that is close to it is shown.",
        _TABLE,
        _never,
    ),
    Check(
        "LT202",
        "warning",
        "A variable that is not read any more",
        "Earlier releases read it; this one ignores it.",
        _TABLE,
        _gone,
    ),
    Check("LT203", "warning", "A variable that a later release brought", "This release ignores it.", _TABLE, _not_yet),
    Check(
        "LT204",
        "info",
        "A variable whose release could not be told",
        "The release lies between two that were read, and only one of them reads the variable.",
        _TABLE,
        _unsure,
    ),
    Check(
        "LT205",
        "info",
        "A variable that is set after vLLM was imported",
        "Values are read while modules are imported, by the child processes, and, from 0.11.1 on, once at the start.",
        "vLLM 0.11.1 envs.py, enable_envs_cache",
        _late,
    ),
)
