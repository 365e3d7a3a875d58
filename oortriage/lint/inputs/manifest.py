"""YAML: Compose files, Kubernetes manifests, and files of options for ``vllm serve --config``."""

from __future__ import annotations

import re
from typing import Any

from oortriage.lint.image import image_version, is_server_image
from oortriage.lint.inputs.expand import expand
from oortriage.lint.inputs.shell import TALK, shell_units, words_unit
from oortriage.lint.inputs.yaml_nodes import UNKNOWN, Budget, compose, line_of, mapping, scalar, sequence, walk
from oortriage.lint.unit import Document, Kind, Setting, Unit, Word

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*$")
_OPTION = re.compile(r"[a-z][a-z0-9_-]*$")
#: Kubernetes puts variables in as ``$(NAME)``.
_KUBERNETES = re.compile(r"\$\(([A-Za-z_]\w*)\)")


def read_manifest(text: str) -> Document:
    """Read YAML; which kind it is, its own keys tell.

    Raises:
        InputError: it is no YAML, or expands without end.
    """
    budget = Budget()
    units: list[Unit] = []
    versions: list[str] = []
    notes: list[str] = []
    kind: Kind = "options"
    for document in compose(text):
        top = mapping(document, budget)
        services = mapping(top.get("services"), budget)
        if services and "kind" not in top:
            kind = "compose"
            for service in services.values():
                keys = mapping(service, budget)
                units += _service(keys, budget, versions)
                notes += _outside(keys, "env_file")
        elif "kind" in top or "apiVersion" in top or "containers" in top or "spec" in top:
            kind = "kubernetes"
            for node in walk(document, budget):
                keys = mapping(node, budget)
                if scalar(keys.get("kind")) == "ConfigMap":
                    units += _config_map(mapping(keys.get("data"), budget))
                for name in ("containers", "initContainers"):
                    for container in sequence(keys.get(name), budget):
                        inner = mapping(container, budget)
                        units += _container(inner, budget, versions)
                        notes += _outside(inner, "envFrom")
        elif "model" in top and all(_OPTION.match(key) for key in top):
            units.append(_options(top, budget))
    return Document(kind, tuple(units), tuple(versions), tuple(notes))


def _outside(keys: dict[str, Any], name: str) -> list[str]:
    """Say that variables come from somewhere that is not read."""
    return (
        [f"line {line_of(keys[name])}: the variables of {name} are not read; lint that file too"]
        if name in keys
        else []
    )


def _service(keys: dict[str, Any], budget: Budget, versions: list[str]) -> list[Unit]:
    """Take one service of a Compose file. ``$$`` is a dollar for the shell in the container."""
    image, settings = _image(keys, versions), _compose_environment(keys.get("environment"), budget)
    entry, command = (_command(keys.get(name), budget) for name in ("entrypoint", "command"))
    return _units(entry, command, settings, image)


def _container(keys: dict[str, Any], budget: Budget, versions: list[str]) -> list[Unit]:
    """Take one container of a manifest; its ``command`` is Docker's entry point, its ``args`` the command."""
    image = _image(keys, versions)
    settings = []
    for node in sequence(keys.get("env"), budget):
        entry = mapping(node, budget)
        name = scalar(entry.get("name"))
        if name:
            value = scalar(entry.get("value"))
            text, is_open = expand(value or "", {})
            settings.append(Setting(name, text, line_of(entry["name"]), is_open or value is None))
    known = {one.name: one.value for one in settings if not one.open}
    entry_words, args = ([_told(word, known) for word in _list(keys.get(name), budget)] for name in ("command", "args"))
    return _units(entry_words, args, tuple(settings), image)


def _config_map(data: dict[str, Any]) -> list[Unit]:
    """Take a ConfigMap: keys that are names of variables, and values that are scripts."""
    settings = [
        Setting(name, value, line_of(node))
        for name, node in data.items()
        if _VARIABLE.match(name) and (value := scalar(node)) is not None
    ]
    units = [Unit(settings=tuple(settings))] if settings else []
    for name, node in data.items():
        text = scalar(node) or ""
        if name.endswith((".sh", ".bash")) or text.startswith("#!"):
            units += shell_units(text, line_of(node) + 1)[0]
    return units


def _units(entry: list[Word], command: list[Word], settings: tuple[Setting, ...], image: str) -> list[Unit]:
    words = entry + command
    if not words:
        return [Unit(settings=settings, image=image)] if settings else []
    server = not entry and is_server_image(image)
    found = [Unit(tuple(words), settings, image, server)]
    if entry and _is_shell(entry[0].text):
        found = [
            Unit(one.words, (*settings, *one.settings), image)
            for word in words[1:] if any(char in word.text for char in " \n")
            for one in shell_units(word.text, word.line)[0]
        ] or found  # fmt: skip
    elif not entry and not server and _is_shell(words[0].text):
        return _units(words, [], settings, image)
    elif not server:
        found = [Unit(one.words, (*settings, *one.settings), image) for one in words_unit(words)] or found
    return found


def _is_shell(text: str) -> bool:
    return text.rpartition("/")[2] in ("sh", "bash", "dash", "zsh", "ash") and text not in TALK


def _image(keys: dict[str, Any], versions: list[str]) -> str:
    image, is_open = expand(scalar(keys.get("image")) or "", {})
    if not is_open and (version := image_version(image)):
        versions.append(version)
    return image


def _compose_environment(node: Any, budget: Budget) -> tuple[Setting, ...]:
    """Read both forms: a mapping, or a list of NAME=VALUE; a name alone takes its value from outside."""
    found: list[Setting] = []
    for name, value in mapping(node, budget).items():
        text = scalar(value)
        found.append(_setting(name, text, line_of(value)))
    for one in sequence(node, budget):
        name, mark, value = (scalar(one) or "").partition("=")
        found.append(_setting(name, value if mark else None, line_of(one)))
    return tuple(found)


def _setting(name: str, value: str | None, line: int) -> Setting:
    text, is_open = expand(value or "", {})
    return Setting(name, text, line, is_open or not value)


def _command(node: Any, budget: Budget) -> list[Word]:
    """Read a command: a list of words, or one text that Compose splits like a shell."""
    words = _list(node, budget)
    if words or not (text := scalar(node)):
        return words
    style = getattr(node, "style", None)
    start = line_of(node) + (1 if style in ("|", ">") else 0)
    units, _ = shell_units(" ".join(text.replace("\\\n", " ").split("\n")), start)
    return [word for unit in units[:1] for word in unit.words]


def _list(node: Any, budget: Budget) -> list[Word]:
    made = []
    for one in sequence(node, budget):
        text = scalar(one)
        if text is not None:
            value, is_open = expand(text.replace("$$", "$"), {})
            made.append(Word(value, line_of(one), is_open))
    return made


def _told(word: Word, known: dict[str, str]) -> Word:
    """Put Kubernetes' ``$(NAME)`` in where the container's own env tells it."""
    text = _KUBERNETES.sub(lambda found: known.get(found[1], found.group()), word.text)
    return Word(text, word.line, "$(" in text or (word.open and "$(" not in word.text))


def _options(top: dict[str, Any], budget: Budget) -> Unit:
    """Make words of a file for ``--config``: ``key: value`` is ``--key value``."""
    words = [Word("vllm"), Word("serve")]
    for key, node in top.items():
        text = scalar(node)
        values = [text] if text is not None else [scalar(one) or "" for one in sequence(node, budget)]
        line = line_of(node)
        if key == "model":
            words.append(Word(values[0] if values else "", line))
        elif text in ("true", "True"):
            words.append(Word(f"--{key}", line))
        elif text not in ("false", "False"):
            words.append(Word(f"--{key}", line))
            words += [Word(value, line, UNKNOWN in value) for value in values]
            if not values:
                words.append(Word("{}", line, open=True))
    return Unit(tuple(words))
