"""One release put together: which of its files hold options, variables and keywords."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Protocol

from oortriage.errors import OortriageError
from oortriage.lint.extract.fields import Classes
from oortriage.lint.extract.flags import engine_flags, flags_of, frontend_flags
from oortriage.lint.extract.variables import variables_of
from oortriage.lint.surface import Flag, Surface

ENVS = "vllm/envs.py"
ENGINE = "vllm/engine/arg_utils.py"
LLM = "vllm/entrypoints/llm.py"
#: Where the options of the server stand: up to 0.28.0, 0.30.0, from 0.33.0 on.
FRONTEND = (
    "vllm/entrypoints/openai/cli_args.py",
    "vllm/entrypoints/launchers/cli_args.py",
    "vllm/entrypoints/common/cli_args.py",
)
#: Where the verb ``serve`` adds its own: up to 0.6.6, and from 0.7.3 on.
VERB = {"vllm/scripts.py": "serve_parser", "vllm/entrypoints/cli/serve.py": "serve_parser"}
QUANTIZATION = "vllm/model_executor/layers/quantization/__init__.py"
#: Files that ``python -m`` starts, whose coming and going is told.
MODULES = {
    "vllm.entrypoints.api_server": "vllm/entrypoints/api_server.py",
    "vllm.entrypoints.openai.api_server": "vllm/entrypoints/openai/api_server.py",
}
#: What no file says: argparse's own, and those that vLLM's parser takes.
_ALWAYS = {"--help": Flag("text", aliases=("-h",), optional=True), "--version": Flag("switch", aliases=("-v",))}


class Files(Protocol):
    """The files of a release, as :mod:`oortriage.kernels.source` opens them."""

    def has(self, path: str) -> bool:
        """Tell whether a file is there."""

    def names(self, folder: str) -> list[str]:
        """List a folder."""

    def fetch(self, path: str) -> Path:
        """Return a local copy of a file."""


def surface_of(files: Files, version: str, origin: str) -> Surface:
    """Read what a release accepts.

    Raises:
        OortriageError: it lacks the files, or they hold none of what is looked for.
    """
    if not files.has(ENVS) or not files.has(ENGINE):
        raise OortriageError(f"vLLM {version or '(version unknown)'}: it has no {ENVS} and {ENGINE}")
    try:
        flags = _flags(files)
        variables = variables_of(_text(files, ENVS))
        keywords = _keywords(files)
    except (SyntaxError, ValueError, RecursionError) as problem:
        raise OortriageError(f"vLLM {version}: its source cannot be read as Python: {problem}") from problem
    if "--model" not in flags or not variables:
        raise OortriageError(f"vLLM {version}: its options or its variables are written in a form that is not known")
    modules = frozenset(name for name, path in MODULES.items() if files.has(path))
    return Surface(version, flags, variables, keywords, modules, origin=origin)


def _flags(files: Files) -> dict[str, Flag]:
    folder = "vllm/config"
    configs = [path for path in [*files.names(folder), f"{folder}.py"] if path.endswith(".py") and files.has(path)]
    engine = _text(files, ENGINE)
    extra = [QUANTIZATION] if files.has(QUANTIZATION) else []
    classes = Classes([*(_text(files, path) for path in [*configs, *extra]), engine])
    flags = dict(_ALWAYS)
    for path in FRONTEND:
        if files.has(path):
            text = _text(files, path)
            flags |= frontend_flags(text) | flags_of(text, Classes([text]))
    for path, receiver in VERB.items():
        if files.has(path):
            flags |= flags_of(_text(files, path), classes, receiver)
    return flags | engine_flags(engine, classes)


def _keywords(files: Files) -> frozenset[str]:
    """Return what ``LLM(...)`` takes: its own arguments, and the fields of ``EngineArgs`` that it hands on."""
    engine = Classes([_text(files, ENGINE)])
    found = set(engine.fields("EngineArgs")) | set(engine.fields("AsyncEngineArgs"))
    if files.has(LLM):
        for node in ast.walk(ast.parse(_text(files, LLM))):
            if isinstance(node, ast.ClassDef) and node.name == "LLM":
                for one in node.body:
                    if isinstance(one, ast.FunctionDef) and one.name == "__init__":
                        found |= {arg.arg for arg in [*one.args.args, *one.args.kwonlyargs]} - {"self"}
    return frozenset(found)


def _text(files: Files, path: str) -> str:
    return files.fetch(path).read_text(encoding="utf-8", errors="replace")
