"""The options by which reproduce, experiment and fit are told what to compile."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from oortriage.capture.capsule import is_capsule
from oortriage.errors import InputError, UsageError
from oortriage.replay.options import OWN_OPTIONS, Options
from oortriage.triage.diagnosis import Diagnosis

Log = Annotated[
    str | None,
    typer.Argument(
        metavar="[LOG|REPORT.json|CAPSULE.json]",
        help=(
            "A crash log, - for standard input, what `analyze --format json` wrote, or a capsule of `oortriage run` "
            "(its source is run to compile it: give only capsules you trust). May be left out with --kernel."
        ),
        show_default=False,
    ),
]
Kernel = Annotated[
    str,
    typer.Option(
        "--kernel", help="A recipe (`oortriage kernels` lists them), FILE.py:FUNCTION for your own, or a capsule."
    ),
]
Gpu = Annotated[str, typer.Option("--gpu", help="The card: T4, 'RTX 5090', MI300X, sm_75, gfx942.")]
Limit = Annotated[int, typer.Option("--limit", min=0, help="The limit of one block in bytes, instead of the card's.")]
Vllm = Annotated[str, typer.Option("--vllm", help="The vLLM release the kernel is of.")]
Sglang = Annotated[str, typer.Option("--sglang", help="The SGLang release the kernel is of.")]
Release = Annotated[
    list[str] | None, typer.Option("--release", help="The release of another library: NAME=VERSION; may be repeated.")
]
Source = Annotated[
    Path | None,
    typer.Option("--source", "--vllm-source", help="A folder that holds the library's source, instead of a release."),
]
Config = Annotated[Path | None, typer.Option("--config", help="The model's config.json, or its folder.")]
Triton = Annotated[
    str, typer.Option("--triton", help="Compile with this Triton release, in an environment of its own.")
]
Dtype = Annotated[str | None, typer.Option("--dtype", help="Element type: float16, bfloat16, float32.")]
HeadSize = Annotated[int | None, typer.Option("--head-size", min=1, help="Elements of an attention head.")]
Window = Annotated[int | None, typer.Option("--window", min=0, help="Sliding window in tokens; 0 is full attention.")]
Phase = Annotated[str | None, typer.Option("--phase", help="prefill or decode.")]
BlockSize = Annotated[int | None, typer.Option("--block-size", min=1, help="Tokens a page of the KV cache.")]
Tile = Annotated[int | None, typer.Option("--tile", min=1, help="Force the kernel's K/V tile.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="NAME=VALUE: a parameter of the recipe, or a constant of the kernel (num_warps=2)."),
]
Arg = Annotated[
    list[str] | None,
    typer.Option(
        "--arg", help="NAME=VALUE for a kernel of your own: *fp16 a pointer, 128, true, fp32; may be repeated."
    ),
]
Required = Annotated[int, typer.Option("--required", min=0, help="The figure to reproduce, where no log prints it.")]
Seconds = Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds one compilation may take.")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Compile again what was compiled before.")]
WithRegisters = Annotated[
    bool, typer.Option("--registers", help="Go on to machine code: registers, spills, occupancy (seconds a cell).")
]
Live = Annotated[
    str,
    typer.Option(
        "--live",
        metavar="[auto|native|emulated]",
        help="Run on the local NVIDIA card too: as it is when it is the failing kind, else playing that card.",
    ),
]
Device = Annotated[int, typer.Option("--device", min=0, help="Which device --live runs on.")]
#: The options every selecting verb has; None is "not said", where zero would mean something.
_SHARED: dict[str, tuple[Any, Any]] = {
    "kernel": (Kernel, ""),
    "gpu": (Gpu, ""),
    "limit": (Limit, 0),
    "vllm": (Vllm, ""),
    "sglang": (Sglang, ""),
    "release": (Release, None),
    "source": (Source, None),
    "config": (Config, None),
    "triton": (Triton, ""),
    "dtype": (Dtype, None),
    "head_size": (HeadSize, None),
    "window": (Window, None),
    "phase": (Phase, None),
    "block_size": (BlockSize, None),
    "tile": (Tile, None),
    "set_": (Set, None),
    "arg": (Arg, None),
    "required": (Required, 0),
}
#: What a verb gets that is no option of its own.
_MADE = ("log", "options")


def selecting(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options of this file.

    The verb itself takes ``log`` (the diagnosis or None), ``options`` and its own options; on the command
    line it has all of these instead.
    """
    own = {name: one for name, one in inspect.signature(verb, eval_str=True).parameters.items() if name not in _MADE}

    @functools.wraps(verb)
    def command(**given: Any) -> None:
        shared = {name: given.pop(name) for name in _SHARED}
        log = given.pop("log")
        if log is not None and not shared["kernel"] and is_capsule(log):
            log, shared["kernel"] = None, log
        verb(read_diagnosis(log), options_of(**shared), **given)

    first = inspect.Parameter("log", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Log)
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _SHARED.items()
    ]
    every = [first, *shared, *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own.values())]
    command.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in every}
    del command.__wrapped__  # typer would look through it
    return command


def options_of(**given: Any) -> Options:
    """Put the shared options together.

    Raises:
        UsageError: a NAME=VALUE without a name.
    """
    named = {name: given[name] for name in OWN_OPTIONS if name != "tile"}
    settings = {name: value for name, value in named.items() if value is not None}
    free = pairs(given["set_"], "--set")
    if twice := [name for name in free if name in settings or (name == "tile" and given["tile"] is not None)]:
        raise UsageError(f"--set {twice[0]}: it is given by its own option as well")
    tile = {} if given["tile"] is None else {"tile": given["tile"]}
    more, overrides = _sorted_out(given["kernel"], tile | free)
    return Options(
        kernel=given["kernel"],
        gpu=given["gpu"],
        limit_bytes=given["limit"],
        versions=releases(given["vllm"], given["sglang"], given["release"]),
        source=given["source"],
        config=given["config"],
        triton=given["triton"],
        settings={**settings, **more, **pairs(given["arg"], "--arg")},
        overrides=overrides,
        required_bytes=given["required"],
    )


def with_live_value(arguments: list[str]) -> list[str]:
    """Give a bare ``--live`` its value: what follows it may be another option, a log, or nothing."""
    own = arguments.index("--") if "--" in arguments else len(arguments)  # what follows is another program's
    whole: list[str] = []
    for argument, after in zip(arguments[:own], [*arguments[1:own], ""], strict=True):
        bare = argument == "--live" and after not in ("auto", "native", "emulated")
        whole.append("--live=auto" if bare else argument)
    return whole + arguments[own:]


def releases(vllm: str, sglang: str, others: list[str] | None) -> dict[str, str]:
    """Map libraries to the releases that were named."""
    named = {"vllm": vllm, "sglang": sglang}
    return {**pairs(others, "--release"), **{name: version for name, version in named.items() if version}}


def _sorted_out(kernel: str, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tell parameters of a recipe from constants of its kernel; with the recipe still unknown, any recipe's count."""
    from oortriage.kernels.registry import all_recipes, find_recipe
    from oortriage.kernels.user_kernel import is_user_kernel

    if kernel and is_user_kernel(kernel):
        return {}, {name: _number(value) for name, value in given.items()}
    recipes = [find_recipe(kernel)] if kernel else list(all_recipes().values())
    known = {parameter.name for recipe in recipes for parameter in recipe.parameters}
    levers = {lever for recipe in recipes if not kernel for lever in recipe.levers}
    settings = {name: value for name, value in given.items() if name in known - levers}
    return settings, {name: _number(value) for name, value in given.items() if name not in settings}


def _number(value: Any) -> Any:
    text = str(value)
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return {"true": True, "false": False}.get(text.lower(), value)


def pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """Read ``NAME=VALUE`` texts.

    Raises:
        UsageError: one is something else, or a name comes twice.
    """
    found = {}
    for text in texts or ():
        name, mark, value = text.partition("=")
        if not mark or not name.strip():
            raise UsageError(f"{option} {text}: write NAME=VALUE")
        if name.strip() in found:
            raise UsageError(f"{option} {name.strip()} is given twice")
        found[name.strip()] = value.strip()
    return found


def read_diagnosis(log: str | None) -> Diagnosis | None:
    """Diagnose a log, or read a diagnosis that was written before.

    Raises:
        InputError: the file cannot be read, or is JSON of another kind.
    """
    if log is None:
        return None
    if log.endswith(".json") and (written := _written(Path(log))) is not None:
        return written
    from oortriage.api import Analyzer
    from oortriage.config import find_config

    return Analyzer(find_config().rule_folders).file(log, name="<stdin>" if log == "-" else log)


def _written(path: Path) -> Diagnosis | None:
    """Decode a report; None where the file is a log in JSON lines."""
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror or problem}") from problem
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(data, type=Diagnosis)
    with contextlib.suppress(msgspec.DecodeError):
        several = msgspec.json.decode(data, type=list[Diagnosis])
        if len(several) != 1:
            raise InputError(f"{path}: it holds {len(several)} diagnoses; give one")
        return several[0]
    return None
