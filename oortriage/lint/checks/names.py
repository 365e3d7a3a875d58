"""LT1xx: options and keywords that a release does not have, and how its parser takes the others."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Iterator

from oortriage.lint.checks._interface import Case, Check, Hit
from oortriage.lint.checks.replacements import INSTEAD
from oortriage.lint.invocation import Invocation, Option

_TABLE = "engine/arg_utils.py and cli_args.py of every vLLM release from 0.5.4 to 0.33.0"
_CLOSE = 0.78
#: Characters; a shorter beginning of a name says nothing.
_SHORTEST = 8
_LONGEST = 80


def close_to(name: str, names: Iterable[str]) -> str:
    """Say which real name one is close to; empty where none is."""
    return _close_to(name, tuple(sorted(names))) if len(name) < _LONGEST else ""


@functools.lru_cache(maxsize=4096)
def _close_to(name: str, names: tuple[str, ...]) -> str:
    found = difflib.get_close_matches(name, names, 1, _CLOSE)
    return f"; did you mean {found[0]}?" if found else ""


def _parsed(case: Case) -> Invocation | None:
    """Return the command where its options are those of the tables."""
    made = case.invocation
    return made if made and made.program in ("serve", "openai") else None


def _absent(case: Case) -> Iterator[tuple[Option, str, str]]:
    made = _parsed(case)
    for option in made.options if made else ():
        if option.how == "absent" and not (option.open and option.flag is None and "$" in option.written):
            name = option.name
            positive = "--" + name[5:] if name.startswith("--no-") else name
            name = positive if name not in case.tables.flags and positive in case.tables.flags else name
            yield option, name, _alias(case, name)


def _alias(case: Case, name: str) -> str:
    """Return the option that a name was another name or an abbreviation of, in any release."""
    if name in case.tables.flags:
        return name
    longer = [one for one in case.tables.flags if one.startswith(name)] if len(name) > _SHORTEST else []
    if len(longer) == 1:
        return longer[0]
    for one, spans in case.tables.flags.items():
        if any(name in span.flag.aliases for span in spans):
            return one
    return ""


def _never(case: Case) -> Iterator[Hit]:
    for option, name, known in _absent(case):
        if not known and name not in case.surface.flags:
            close = close_to(name, case.surface.flags)
            yield Hit(
                option.written,
                f"vLLM {case.release.text} has no option {name}, and no release read has one{close}",
                option.line,
            )


def _gone(case: Case) -> Iterator[Hit]:
    for option, name, known in _absent(case):
        if not known or known in case.surface.flags or known in case.surface.unsure:
            continue
        since, until = case.tables.span(known)
        if until and not case.at(until=until):
            instead = f": {INSTEAD[known]}" if known in INSTEAD else ""
            yield Hit(
                option.written,
                f"{name} is gone: vLLM had it from {since} to {until}{instead}",
                option.line,
                since,
                until,
            )


def _not_yet(case: Case) -> Iterator[Hit]:
    for option, name, known in _absent(case):
        if not known or known in case.surface.flags or known in case.surface.unsure:
            continue
        since, until = case.tables.span(known)
        if not until or case.at(until=until):
            came = (
                f"it came with {since}" if not case.at(since) else f"it is missing between {since} and {until or 'now'}"
            )
            close = close_to(name, case.surface.flags)
            text = f"vLLM {case.release.text} does not have {name} yet: {came}{close}"
            yield Hit(option.written, text, option.line, since, until)


def _unsure(case: Case) -> Iterator[Hit]:
    for option, name, known in _absent(case):
        if known and known in case.surface.unsure:
            since, until = case.tables.span(known)
            text = f"could not tell whether vLLM {case.release.text} has {name}: {case.surface.origin}"
            yield Hit(option.written, text, option.line, since, until)


def _prefix(case: Case) -> Iterator[Hit]:
    made = _parsed(case)
    for option in made.options if made else ():
        if option.how == "prefix":
            full = ("--no-" + option.name[2:]) if option.negated else option.name
            text = f"works only as an abbreviation of {full}, until a release adds another option that begins so"
            yield Hit(option.written, text, option.line, *case.tables.span(option.name))


def _ambiguous(case: Case) -> Iterator[Hit]:
    made = _parsed(case)
    for option in made.options if made else ():
        if option.how == "ambiguous":
            several = ", ".join(option.candidates[:6]) + (", ..." if len(option.candidates) > 6 else "")
            text = f"is no option of vLLM {case.release.text}, and as an abbreviation it could mean {several}"
            yield Hit(option.written, text, option.line)


def _no_pair(case: Case) -> Iterator[Hit]:
    made = _parsed(case)
    for option in made.options if made else ():
        if option.negated and option.flag and option.flag.kind not in ("pair", "unknown"):
            text = f"vLLM {case.release.text} has {option.name}, but no form of it with --no-"
            yield Hit(option.written, text, option.line, *case.tables.span(option.name))


def _value(case: Case) -> Iterator[Hit]:
    """Words where none may stand, and options without the value they need."""
    made = _parsed(case)
    for option in made.options if made else ():
        if option.flag is None or option.how == "ambiguous":
            continue
        switch = option.negated or option.flag.kind in ("switch", "pair")
        if switch and option.attached and not option.dotted:
            text = f"{option.name} takes no value; write it alone" + (
                f", or --no-{option.name[2:]}" if option.flag.kind == "pair" else ""
            )
            yield Hit(f"{option.written}={option.value}", text, option.line, *case.tables.span(option.name))
        elif not switch and option.value is None and not option.flag.optional and option.flag.kind != "unknown":
            yield Hit(option.written, f"{option.name} needs a value", option.line, *case.tables.span(option.name))
    for word in made.stray if made else ():
        text = "stands where no option takes it: vLLM ends with `unrecognized arguments`"
        switches = [one for one in made.options if one.line == word.line] if made else []
        if word.text.lower() in ("true", "false") and switches:
            text += "; a switch is written without a value"
        yield Hit(word.text, text, word.line or case.line)


def _twice(case: Case) -> Iterator[Hit]:
    made = _parsed(case)
    if made is None:
        return
    seen: dict[str, Option] = {}
    for option in made.options:
        flag = option.flag
        if flag is None or option.dotted or option.open or flag.kind in ("list", "json", "unknown"):
            continue
        before = seen.get(option.name)
        if before and (before.value, before.negated) != (option.value, option.negated):
            text = f"is given twice, as {_said(before)} and as {_said(option)}; the last one counts"
            yield Hit(option.name, text, option.line)
        seen[option.name] = option


def _said(option: Option) -> str:
    return f"{option.written} {option.value}" if option.value is not None else option.written


def _deprecated(case: Case) -> Iterator[Hit]:
    made = _parsed(case)
    for option in made.options if made else ():
        if option.flag and option.flag.deprecated and option.how in ("exact", "prefix"):
            since, until = case.tables.span(option.name)
            last = f"; the last release that has it is {until}" if until else ""
            instead = f"; {INSTEAD[option.name]}" if option.name in INSTEAD else ""
            yield Hit(
                option.name, f"is deprecated in vLLM {case.release.text}{last}{instead}", option.line, since, until
            )


def _keywords(case: Case) -> Iterator[Hit]:
    made = case.invocation
    if made is None or made.program != "llm":
        return
    for option in made.options:
        name = option.written
        if name in case.surface.keywords:
            continue
        since, until = case.tables.span(name)
        if name in case.surface.unsure:
            text = f"could not tell whether vLLM {case.release.text} takes {name}: {case.surface.origin}"
            yield Hit(name, text, option.line, since, until, severity="info")
            continue
        if since and not case.at(since):
            text = f"vLLM {case.release.text} does not take it yet: it came with {since}"
        elif since:
            text = f"is gone: vLLM took it from {since} to {until}"
        else:
            text = f"is no keyword of vLLM {case.release.text}, nor of any release read"
            text += close_to(name, case.surface.keywords)
        text += f": {INSTEAD[name]}" if name in INSTEAD else ""
        yield Hit(name, text, option.line, since, until)


def _dotted(case: Case) -> Iterator[Hit]:
    made = _parsed(case)
    for option in made.options if made else ():
        if option.dotted and option.flag and option.written.startswith("--"):
            text = f"a key after a dot came with 0.9.0; write {option.name} '{{...}}'"
            yield Hit(option.written, text, option.line, "0.9.0")


def _module(case: Case) -> Iterator[Hit]:
    made = case.invocation
    if made is None or not made.module:
        return
    since, until = case.tables.span(made.module)
    if made.module not in case.surface.modules and made.module not in case.surface.unsure:
        text = f"is gone: vLLM had it from {since} to {until}: {INSTEAD.get(made.module, 'write `vllm serve MODEL`')}"
        yield Hit(made.module, text, made.line, since, until)


def _demo(case: Case) -> Iterator[Hit]:
    made = case.invocation
    if made and made.program == "demo" and made.module in case.surface.modules:
        text = (
            "starts the demonstration server, which answers on /generate alone and says itself that it is not for "
            "production; write `vllm serve MODEL`"
        )
        yield Hit(made.module, text, made.line, *case.tables.span(made.module))


CHECKS = (
    Check(
        "LT101",
        "error",
        "An option that no vLLM has",
        "No release read has an option of this name; vLLM ends with `unrecognized arguments`. A real name that is "
        "close to it is shown.",
        _TABLE,
        _never,
    ),
    Check(
        "LT102",
        "error",
        "An option that is gone",
        "Earlier releases had it. The message says which was the last, and what to write instead where something took "
        "its place.",
        _TABLE,
        _gone,
    ),
    Check(
        "LT103",
        "error",
        "An option that a later release brought",
        "This release does not have it yet; a later one does.",
        _TABLE,
        _not_yet,
    ),
    Check(
        "LT104",
        "info",
        "An option that works as an abbreviation only",
        "Python's argparse takes the beginning of an option's name when only one option begins so. vLLM's own log "
        "prints `--kv-cache-memory`, which is such an abbreviation of `--kv-cache-memory-bytes`.",
        "Python's argparse, allow_abbrev; vLLM 0.10.2 v1/worker/gpu_worker.py",
        _prefix,
    ),
    Check(
        "LT105",
        "error",
        "An abbreviation that could mean several options",
        "argparse ends with `ambiguous option`.",
        "Python's argparse, allow_abbrev",
        _ambiguous,
    ),
    Check(
        "LT106",
        "info",
        "An option whose release could not be told",
        "The release lies between two that were read, and only one of them has the option.",
        _TABLE,
        _unsure,
    ),
    Check(
        "LT107",
        "error",
        "`--no-` before an option that has no such form",
        "Only truth values of the config classes have one, in most cases since 0.8.5.",
        _TABLE,
        _no_pair,
    ),
    Check(
        "LT108",
        "error",
        "A value where none belongs, or none where one must stand",
        "`--enforce-eager true` leaves the word `true` over, and vLLM ends with `unrecognized arguments`.",
        "Python's argparse",
        _value,
    ),
    Check(
        "LT109",
        "warning",
        "An option that is given twice with different values",
        "The last one counts.",
        "Python's argparse",
        _twice,
    ),
    Check(
        "LT110",
        "info",
        "A deprecated option",
        "It still works in this release, and vLLM warns of it.",
        _TABLE,
        _deprecated,
    ),
    Check(
        "LT111",
        "error",
        "A keyword that LLM or EngineArgs does not take",
        "Python ends with a TypeError, `unexpected keyword argument`.",
        "EngineArgs in engine/arg_utils.py and LLM in entrypoints/llm.py of every release from 0.5.4 to 0.33.0",
        _keywords,
    ),
    Check(
        "LT112",
        "error",
        "A module that this vLLM does not have",
        "`python -m` ends with `No module named ...`.",
        "vLLM 0.24.0 has entrypoints/api_server.py, 0.25.0 has not",
        _module,
    ),
    Check(
        "LT113",
        "warning",
        "The demonstration server in the place of the real one",
        "`vllm.entrypoints.api_server` is a demonstration with one route. The OpenAI-compatible server is `vllm serve "
        "MODEL`.",
        "vLLM 0.6.3.post1 entrypoints/api_server.py, its head",
        _demo,
    ),
    Check(
        "LT114",
        "error",
        "A key of a JSON option after a dot, before 0.9.0",
        "`--compilation-config.level 3` is read from 0.9.0 on.",
        "vLLM 0.9.0 utils.py, FlexibleArgumentParser.parse_args",
        _dotted,
        "",
        "0.8.5.post1",
    ),
)
