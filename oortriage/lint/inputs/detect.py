"""Which kind of input a file is: by its name, else by what it holds; and the limits of what is read."""

from __future__ import annotations

import re
from pathlib import Path

from oortriage.errors import InputError
from oortriage.lint.inputs.dockerfile import read_dockerfile
from oortriage.lint.inputs.dotenv import read_dotenv
from oortriage.lint.inputs.python import read_python
from oortriage.lint.inputs.shell import read_shell
from oortriage.lint.inputs.systemd import read_systemd
from oortriage.lint.unit import Document

#: Bytes. A launch script of a megabyte is none.
LARGEST = 1 << 20
_PYTHON = re.compile(r"^#!.*python|^(?:import|from) \w", re.MULTILINE)
_DOCKER = re.compile(r"^\s*FROM\s+\S+", re.MULTILINE)
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?[A-Za-z_]\w*=\S*\s*$")
_YAML = re.compile(r"^(?:apiVersion|kind|services|version|model|spec)\s*:", re.MULTILINE)


def read_bytes(path: Path) -> bytes:
    """Read a file that may be linted.

    Raises:
        InputError: it is not there, a folder, or too large.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder; name its files")
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror or problem}") from problem


def read_document(data: bytes, name: str) -> Document:
    """Read a file's bytes as what it is.

    Raises:
        InputError: it is too large, no text, or not what its name says.
    """
    if len(data) > LARGEST:
        raise InputError(f"{name}: is larger than {LARGEST:,} bytes; nobody starts vLLM with that")
    if b"\0" in data:
        encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        if not encoding:
            raise InputError(f"{name}: is no text")
        text = data.decode(encoding, "replace")
    else:
        text = data.decode("utf-8-sig", "replace")
    text = text.replace("\r\n", "\n")
    try:
        return _read(text, Path(name))
    except InputError as problem:
        raise InputError(f"{name}: {problem}") from problem
    except RecursionError as problem:
        raise InputError(f"{name}: is nested too deeply") from problem


def _read(text: str, path: Path) -> Document:
    name, suffix = path.name.lower(), path.suffix.lower()
    if suffix in (".yaml", ".yml", ".json"):
        return _manifest(text)
    if name.startswith(("dockerfile", "containerfile")) or suffix in (".dockerfile", ".containerfile"):
        return read_dockerfile(text)
    if suffix in (".service", ".container"):
        return read_systemd(text)
    if suffix == ".env" or name.startswith(".env"):
        return read_dotenv(text)
    if suffix == ".py":
        return read_python(text)
    if suffix in (".sh", ".bash", ".zsh", ".slurm", ".sbatch"):
        return read_shell(text)
    return _by_content(text)


def _by_content(text: str) -> Document:
    if re.search(r"^\[(?:Service|Unit)\]\s*$", text, re.MULTILINE):
        return read_systemd(text)
    if text.startswith("#!") and "python" not in text.partition("\n")[0]:
        return read_shell(text)
    if _DOCKER.search(text):
        return read_dockerfile(text)
    if _YAML.search(text):
        return _manifest(text)
    if _PYTHON.search(text):
        return read_python(text)
    lines = [one for one in text.splitlines() if one.strip() and not one.lstrip().startswith("#")]
    if lines and all(_ASSIGNMENT.match(one) for one in lines):
        return read_dotenv(text)
    return read_shell(text)


def _manifest(text: str) -> Document:
    from oortriage.lint.inputs.manifest import read_manifest

    return read_manifest(text)
