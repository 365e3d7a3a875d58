"""What a release has is never said not to exist, in whichever of its forms it is written."""

from __future__ import annotations

import contextlib
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.errors import InputError
from oortriage.lint.surface import Flag
from oortriage.lint.tables import shipped_surface, tables
from tests.lint.linting import findings, result

#: What would be false of a command made of known options with legal values.
FALSE = (
    "LT101",
    "LT102",
    "LT103",
    "LT104",
    "LT105",
    "LT106",
    "LT107",
    "LT108",
    "LT111",
    "LT301",
    "LT302",
    "LT303",
    "LT304",
)
FALSE_VARIABLES = ("LT201", "LT202", "LT203", "LT204")


def legal(flag: Flag) -> list[str]:
    """Return values that the option takes, as far as its entry tells; empty is none at all."""
    low = 1
    if flag.choices:
        return [one for one in flag.choices if one != "None"] or ["None"]
    kinds = {
        "switch": [""], "pair": [""], "int": [str(low), "64"], "float": ["1", "0.5"], "size": ["64", "4k"],
        "size_or_auto": ["-1", "auto", "8K"], "json": ["{}", '{"a": [1, "b c"]}'], "list": ["a", "1"],
        "text": ["some"], "unknown": ["some"],
    }  # fmt: skip
    values = kinds[flag.kind]
    return [one for one in values if all(holds(one, bound) for bound in flag.bounds)] or values[:1]


def holds(value: str, bound: str) -> bool:
    how, _, edge = bound.partition(" ")
    try:
        one, other = float(value), float(edge)
    except ValueError:
        return True
    return {"gt": one > other, "ge": one >= other, "lt": one < other, "le": one <= other}[how]


def written(name: str, flag: Flag, value: str, form: str) -> list[str]:
    if flag.kind == "pair" and form == "no":
        return ["--no-" + name[2:]]
    if form == "under":
        name = "--" + name[2:].replace("-", "_")
    if form == "alias" and flag.aliases and not flag.aliases[0].startswith("-O"):
        name = flag.aliases[0]
    if value == "":
        return [name]
    return [f"{name}={value}"] if form in ("equals", "no") else [name, value]


def false(command: str, version: str) -> list[tuple[str, str]]:
    return [(one.code, one.subject) for one in findings(command, version) if one.code in FALSE]


def long(version: str) -> dict[str, Flag]:
    return {name: flag for name, flag in shipped_surface(version).flags.items() if name.startswith("--")}


@pytest.mark.parametrize("version", tables().read)
def test_every_option_of_a_release_is_known_to_it(version: str) -> None:
    words = ["vllm", "serve", "m"]
    for name, flag in long(version).items():
        words += written(name, flag, legal(flag)[0], "plain")
    assert false(shlex.join(words), version) == []


@pytest.mark.parametrize("version", tables().read)
def test_every_variable_of_a_release_is_known_to_it(version: str) -> None:
    settings_ = " ".join(f"{name}=1" for name in shipped_surface(version).variables)
    found = [one for one in findings(f"{settings_} vllm serve m", version) if one.code in FALSE_VARIABLES]
    assert found == []


@pytest.mark.parametrize("version", tables().read)
def test_every_keyword_of_a_release_is_known_to_it(version: str) -> None:
    call = ", ".join(f"{name}=x" for name in sorted(shipped_surface(version).keywords))
    assert [
        one for one in findings(f"from vllm import LLM\nLLM({call})\n", version, "a.py") if one.code == "LT111"
    ] == []


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_any_form_of_known_options_is_taken(data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(tables().read))
    known = long(version)
    names = data.draw(st.lists(st.sampled_from(sorted(known)), unique=True, max_size=8))
    words = ["vllm", "serve", "m"]
    for name in names:
        value = data.draw(st.sampled_from(legal(known[name])))
        form = data.draw(st.sampled_from(["plain", "equals", "under", "no", "alias"]))
        words += written(name, known[name], value, form)
    assert false(shlex.join(words), version) == []


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(tables().read), st.from_regex(r"--zz[a-z]{3,12}(-[a-z]{2,8})?", fullmatch=True))
def test_a_name_that_no_release_has_is_always_told(version: str, name: str) -> None:
    assert ("LT101", name) in [(one.code, one.subject) for one in findings(f"vllm serve m {name} 3", version)]


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=200))
def test_no_command_breaks_it(text: str) -> None:
    """Any text is read, and nothing raises."""
    for version in ("0.6.3", "0.33.0"):
        assert result(f"vllm serve m {text}", version).schema_version


@settings(max_examples=80, deadline=None)
@given(
    st.text(alphabet="ab{}[]:-&*<>|\n \"'$()=#\\`", max_size=120),
    st.sampled_from(["a.yaml", "Dockerfile", "a.sh", "a.py", "a.service", "a.env", "unnamed"]),
)
def test_no_file_breaks_it(text: str, name: str) -> None:
    with contextlib.suppress(InputError):
        assert result(f"{text}\nvllm serve m {text}", "0.17.1", name).inputs[0].name == name
