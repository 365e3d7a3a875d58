"""What is to be compiled: put together from the command line, a diagnosis and a model's config, in that order."""

from __future__ import annotations

from typing import Any

import msgspec

from oortriage.capture.capsule import is_capsule, read_capsule
from oortriage.errors import UsageError
from oortriage.gpu.resolve import resolve, triton_target
from oortriage.gpu.specs import Architecture, by_capability, by_card, by_limit
from oortriage.gpu.virtual.adapter import Target
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels._interface import Parameter, Recipe, Shape, element_type
from oortriage.kernels.model_config import ModelConfig, read_model_config
from oortriage.kernels.registry import all_recipes, find_recipe, recipes_for
from oortriage.kernels.source import SourceSpec, find_source
from oortriage.kernels.user_kernel import is_user_kernel, user_recipe
from oortriage.replay.captured import notes_of, stated_by
from oortriage.replay.compiler_env import CompilerEnv, compiler_env, stated_triton
from oortriage.replay.options import OWN_OPTIONS, Options
from oortriage.triage.diagnosis import Diagnosis, StatedFact

#: Launch options of Triton that are whole numbers.
LAUNCH_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


class Selection(msgspec.Struct, frozen=True):
    """All that decides a compilation, and where each part comes from.

    ``origin`` says who set a parameter (``--head-size``, ``log line 7``); what it lacks was assumed, and
    ``assumptions`` says so. ``relaxable`` are parameters that only the log says, which may be tried
    otherwise where its figure does not come out.
    """

    kernel: str
    recipe: Recipe
    architecture: Architecture
    card: Card
    limit_from: str
    shape: Shape
    overrides: dict[str, Any]
    origin: dict[str, str]
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    env: CompilerEnv
    source: SourceSpec | None
    required_bytes: int
    relaxable: tuple[str, ...] = ()
    required_from: str = ""

    @property
    def source_name(self) -> str:
        """Say for people where the kernel's source is from."""
        if is_capsule(self.kernel):
            return "the capsule's source"
        return str(self.source) if self.source else "its own file" if is_user_kernel(self.kernel) else "built in"


def select(options: Options, diagnosis: Diagnosis | None = None) -> Selection:
    """Decide what to compile.

    Raises:
        UsageError: the kernel, the GPU or the library's release is not told; the message says by which flag.
        OortriageError: source or compiler are not to be had.
    """
    if options.kernel and is_capsule(options.kernel):
        return _select_captured(options)
    return _select(options, diagnosis)


def _select_captured(options: Options) -> Selection:
    """Let a capsule state what a log would; what it states is certain."""
    capsule = read_capsule(options.kernel)
    chosen = _select(options, stated_by(capsule, options.kernel))
    notes = [note.replace("the log", "the capsule") for note in chosen.notes]
    return msgspec.structs.replace(
        chosen,
        notes=(*notes, *notes_of(capsule)),
        limit_from=chosen.limit_from.replace("log", "capsule"),
        required_from=chosen.required_from.replace("log", "capsule"),
    )


def _select(options: Options, diagnosis: Diagnosis | None) -> Selection:
    notes: list[str] = []
    recipe, kernel = _recipe(options, diagnosis, notes)
    architecture, name = _gpu(options, diagnosis)
    limit, limit_from = _limit(options, diagnosis, architecture, notes)
    required, required_from = _required(options, diagnosis, notes)
    given, origin = _given(options, diagnosis, recipe, notes)
    shape: Shape
    if is_user_kernel(kernel):
        shape, assumed = dict(given), list[str]()
    else:
        shape, assumed = recipe.shape(given)
    backend, arch, warp = triton_target(architecture)
    env = _compiler(options, diagnosis, notes)
    return Selection(
        kernel=kernel,
        recipe=recipe,
        architecture=architecture,
        card=Card(Target(backend, arch, warp), limit, name, registers=architecture.registers_per_multiprocessor),
        limit_from=limit_from,
        shape=shape,
        overrides=constants(recipe, options.overrides, "--set"),
        origin=origin,
        assumptions=tuple(f"assumed: {one}" for one in assumed),
        notes=tuple(notes),
        env=env,
        source=_source(options, diagnosis, recipe),
        required_bytes=required,
        relaxable=tuple(name for name, where in origin.items() if where.startswith("log")),
        required_from=required_from,
    )


def constants(recipe: Recipe, given: dict[str, Any], option: str) -> dict[str, Any]:
    """Name the kernel's constants as the kernel does.

    Raises:
        UsageError: one is named twice, or a launch option is no whole number.
    """
    named: dict[str, Any] = {}
    for short, value in given.items():
        name = recipe.levers.get(short, short)
        if name in named:
            raise UsageError(f"{option} {short}: {name} is given twice")
        levels = value if isinstance(value, list) else [value]
        wrong = [one for one in levels if not isinstance(one, int) or isinstance(one, bool) or one < 1]
        if name in LAUNCH_OPTIONS and wrong:
            raise UsageError(f"{option} {short}: {wrong[0]} is no whole number above 0")
        named[name] = value
    return named


def _required(options: Options, diagnosis: Diagnosis | None, notes: list[str]) -> tuple[int, str]:
    printed = _number(diagnosis, "required_bytes")
    if not options.required_bytes:
        return printed, "log" if printed else ""
    if printed and printed != options.required_bytes:
        notes.append(f"the log prints {printed:,} bytes; --required {options.required_bytes:,} is looked for")
    return options.required_bytes, "--required"


def _recipe(options: Options, diagnosis: Diagnosis | None, notes: list[str]) -> tuple[Recipe, str]:
    if options.kernel:
        if is_user_kernel(options.kernel):
            return user_recipe(options.kernel), options.kernel
        recipe = find_recipe(options.kernel)
        return recipe, recipe.name
    if diagnosis is None:
        raise UsageError(f"which kernel? Give a log, or --kernel: {', '.join(all_recipes())} or FILE.py:FUNCTION")
    if diagnosis.resource != "shared_memory":
        raise UsageError(
            f"{diagnosis.file}: the verdict is {diagnosis.resource}, not a block's shared memory: there is no kernel "
            "to compile (--kernel NAME chooses one all the same)"
        )
    name, file = _text(diagnosis, "kernel"), _text(diagnosis, "kernel_file")
    found = recipes_for(name, [file] if file else [])
    # Of equals, the library that the log or a flag states a release of.
    found.sort(key=lambda one: (not _of_file(one, file), not (one.library and _release(options, diagnosis, one))))
    if not found or (file and len(found) > 1 and not _of_file(found[0], file)):
        named = f"kernel {name!r}" if name else "the kernel (the log does not name it)"
        there = f" of {file}" if name and file else ""
        choice = [one.name for one in found] or list(all_recipes())
        raise UsageError(
            f"no recipe for {named}{there}; choose one with --kernel: {', '.join(choice)} or FILE.py:FUNCTION"
        )
    if file and not _of_file(found[0], file):
        notes.append(f"the log's kernel is in {file}; {found[0].name} compiles that of {', '.join(found[0].files)}")
    if len(found) > 1 and not _told_apart(found, name, file):
        notes.append(
            f"{name or file} may also be {', '.join(one.name for one in found[1:])}; {found[0].name} was taken"
        )
    return found[0], found[0].name


def _of_file(recipe: Recipe, file: str) -> bool:
    return any(file.replace("\\", "/").endswith(end) for end in recipe.files)


def _told_apart(found: list[Recipe], name: str, file: str) -> bool:
    return len([one for one in found if name in one.kernels and _of_file(one, file)]) == 1


def _gpu(options: Options, diagnosis: Diagnosis | None) -> tuple[Architecture, str]:
    if options.gpu:
        return resolve(options.gpu), options.gpu
    name = _text(diagnosis, "gpu")
    if found := _stated_gpu(diagnosis):
        return found, name or Target(*triton_target(found)).name
    limit = _number(diagnosis, "limit_bytes")
    possible = [Target(*triton_target(one)).name for one in by_limit(limit)] if limit else []
    hint = f"; a limit of {limit:,} bytes is that of {', '.join(possible)}" if possible else ""
    raise UsageError(f"which GPU? Say --gpu T4, --gpu sm_86 or --gpu gfx942{hint}")


def _stated_gpu(diagnosis: Diagnosis | None) -> Architecture | None:
    name, capability = _text(diagnosis, "gpu"), _text(diagnosis, "compute_capability")
    return (by_capability(capability) if capability else None) or (by_card(name) if name else None)


def _limit(
    options: Options, diagnosis: Diagnosis | None, architecture: Architecture, notes: list[str]
) -> tuple[int, str]:
    """Take the limit: the user's, the log's, the table's.

    A log that contradicts the table wins, and it is said; not where the user asks for another GPU than the log's.
    """
    printed = _number(diagnosis, "limit_bytes")
    if options.limit_bytes:
        if printed and printed != options.limit_bytes:
            notes.append(f"the log prints a limit of {printed:,} bytes; --limit {options.limit_bytes:,} is used")
        return options.limit_bytes, "--limit"
    table = architecture.shared_per_block
    own = _stated_gpu(diagnosis)
    if options.gpu and own and own != architecture:
        notes.append(
            f"the log is of {_text(diagnosis, 'gpu') or own.name}; --gpu {options.gpu} is compiled for"
            + (f", with its limit of {table:,} bytes instead of {printed:,}" if printed not in (0, table) else "")
        )
        return table, "table"
    if printed and printed != table:
        notes.append(
            f"the log prints a limit of {printed:,} bytes, the table has {table:,} for {architecture.name}; "
            "the log's is used"
        )
    return (printed, "log") if printed else (table, "table")


def _given(
    options: Options, diagnosis: Diagnosis | None, recipe: Recipe, notes: list[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Collect the recipe's parameters from flags, log and config, and who said each."""
    given: dict[str, Any] = {}
    origin: dict[str, str] = {}

    def take(name: str, value: Any, where: str) -> None:
        if value is None:
            return
        value = (element_type(value) or value) if name.endswith("dtype") else value
        if name not in given:
            given[name], origin[name] = value, where
        elif str(given[name]) != str(value):
            notes.append(f"{where} says {name} = {value}; {given[name]} is used, as {origin[name]} says")

    for name, value in options.settings.items():
        take(name, value, f"--{name.replace('_', '-')}" if name in OWN_OPTIONS else "--set")
    known = {parameter.name: parameter for parameter in recipe.parameters}
    for parameter in known.values():
        if diagnosis and parameter.fact and (fact := diagnosis.facts.get(parameter.fact)):
            take(parameter.name, _fact_value(parameter, fact), f"log line {fact.line}")
    if options.config:
        config = read_model_config(options.config)
        for name, value in _from_config(config, given).items():
            if name in known:
                take(name, value, options.config.name)
        notes.extend(config.notes)
    return given, origin


def _from_config(config: ModelConfig, given: dict[str, Any]) -> dict[str, Any]:
    """Choose the layer kind that the flags ask for, else the one with full attention."""
    window = given.get("window")
    wanted = [one for one in config.layers if window is None or (str(window) != "0") == bool(one.window)]
    layer = (wanted or list(config.layers))[0]
    values: dict[str, Any] = {
        "mla": config.latent,
        "head_size": layer.head_size,
        "v_head_size": layer.v_head_size or None,
        "window": layer.window,
        "q_per_kv": layer.q_per_kv,
        "kv_heads": layer.kv_heads,
        "softcap": config.softcap or None,
        "dtype": element_type(config.dtype).replace("auto", "") or None,
    }
    return values


def _fact_value(parameter: Parameter, fact: StatedFact) -> Any:
    value = fact.value
    if parameter.fact.endswith("dtype"):
        return element_type(value).replace("auto", "") or None
    if isinstance(parameter.default, int) and not isinstance(parameter.default, bool):
        try:
            return int(float(value))
        except (ValueError, OverflowError):
            return None
    return value


def _compiler(options: Options, diagnosis: Diagnosis | None, notes: list[str]) -> CompilerEnv:
    env = compiler_env(options.triton)
    stated = stated_triton(_text(diagnosis, "triton_version"), _text(diagnosis, "torch_version"))
    if stated and not options.triton and stated.split(".")[:2] != env.version.split(".")[:2]:
        notes.append(
            f"the log is of Triton {stated}, compiled with {env.version}; `--triton {stated}` compiles with its own"
        )
    return env


def _source(options: Options, diagnosis: Diagnosis | None, recipe: Recipe) -> SourceSpec | None:
    if not recipe.library:
        return None
    return find_source(recipe.library, _release(options, diagnosis, recipe), options.source)


def _release(options: Options, diagnosis: Diagnosis | None, recipe: Recipe) -> str:
    short = recipe.library.split("-", maxsplit=1)[0]
    return options.versions.get(recipe.library) or _text(diagnosis, f"{short}_version")


def _text(diagnosis: Diagnosis | None, name: str) -> str:
    fact = diagnosis.facts.get(name) if diagnosis else None
    return str(fact.value) if fact else ""


def _number(diagnosis: Diagnosis | None, name: str) -> int:
    return int(diagnosis.numbers.get(name, 0)) if diagnosis else 0
