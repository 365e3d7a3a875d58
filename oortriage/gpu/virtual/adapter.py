"""What differs between Triton releases, in one place; 3.4 to 3.9 were read and compiled with.

The pipeline of a release is not copied here. Its own ``make_llir`` is run, and stopped at the pass
that allocates shared memory: whatever a release runs before that pass, runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from oortriage.errors import OortriageError
from oortriage.gpu.virtual import front_end

Stages = dict[str, Callable[[Any, dict[str, Any]], Any]]
#: Before 3.4 the pass pipeline and the launch path have another shape.
OLDEST = (3, 4)


class UnsupportedTritonError(OortriageError):
    """Triton is not installed, or is a release that this adapter does not know."""


class Target(msgspec.Struct, frozen=True):
    """What Triton compiles for: ``backend`` is ``cuda`` or ``hip``, ``arch`` 75 or ``gfx942``."""

    backend: str
    arch: int | str
    warp_size: int

    @property
    def name(self) -> str:
        """The name people type: ``sm_75``, ``gfx942``."""
        return f"sm_{self.arch}" if self.backend == "cuda" else str(self.arch)


class Allocation(msgspec.Struct, frozen=True):
    """A kernel after its shared memory was allocated.

    ``shared_bytes`` is ``ttg.shared``, the figure a launch compares with the limit;
    ``tensor_memory_columns`` is Blackwell's. ``text`` is the module with locations, ``measure`` asks
    the same pass for the size of a module given as text (bytes). ``warps`` are those of a block: more
    than ``num_warps`` where the kernel divides its labour between warps.
    """

    shared_bytes: int
    tensor_memory_columns: int
    text: str
    measure: Callable[[str], int | None]
    metadata: dict[str, Any]
    warps: int = 4


def version() -> str:
    """Return the version of the Triton that is there.

    Raises:
        UnsupportedTritonError: none is, or it is too old.
    """
    try:
        import triton
    except ImportError as problem:
        if isinstance(problem, ModuleNotFoundError) and problem.name == "triton":
            raise UnsupportedTritonError(
                "Triton is not installed: `pip install 'oortriage[triton]'` (Linux; no GPU is needed)"
            ) from problem
        raise UnsupportedTritonError(f"Triton is installed and cannot be imported: {problem}") from problem
    numbers = re.findall(r"\d+", triton.__version__)
    if tuple(int(one) for one in numbers[:2]) < OLDEST:
        raise UnsupportedTritonError(
            f"Triton {triton.__version__} is older than {OLDEST[0]}.{OLDEST[1]}, the first that this version "
            "of oortriage can compile with; `--triton 3.6.0` uses another one beside it"
        )
    return str(triton.__version__)


def gpu_target(target: Target) -> Any:
    """Make Triton's own target."""
    from triton.backends.compiler import GPUTarget

    return GPUTarget(target.backend, target.arch, target.warp_size)


def lower(source: Any, target: Target, options: dict[str, Any]) -> tuple[Any, Any, dict[str, Any], Any]:
    """Run a kernel's front end and the passes on the tensor level, up to Triton's GPU dialect.

    Args:
        source: an ``ASTSource``: the function, its signature, constants and attributes.
        target: what to compile for.
        options: ``num_warps``, ``num_stages`` and the like, as given at launch.

    Returns:
        the module, the remaining stages, the metadata collected so far, and the MLIR context (which
        must outlive the module).
    """
    from triton._C.libtriton import ir
    from triton.compiler.compiler import make_backend

    backend = make_backend(gpu_target(target))
    parsed = backend.parse_options(dict(options, **source.parse_options()))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    metadata: dict[str, Any] = {"target": target.name, **parsed.__dict__}
    stages: Stages = {}
    backend.add_stages(stages, parsed, source.language)
    module = _front_end(source, target, backend, parsed, context, metadata)
    stages.pop("ttir", None)
    for name in list(stages)[: list(stages).index("llir")]:
        module = stages.pop(name)(module, metadata)
    return module, stages, metadata, context


def _front_end(source: Any, target: Target, backend: Any, options: Any, context: Any, metadata: dict[str, Any]) -> Any:
    """Turn the function into IR on tensors, or take that of a cell that the front end cannot tell from this one."""
    key = f"{target.name} {source.hash()}"
    if (kept := front_end.take(key, options, context)) is not None:
        return kept
    watched = front_end.Watched(options)
    functions, modules = backend.get_codegen_implementation(watched), backend.get_module_map()
    try:
        module = source.make_ir(gpu_target(target), watched, functions, modules, context)
    except TypeError as problem:
        if "positional argument" not in str(problem):
            raise
        module = source.make_ir(watched, functions, modules, context)  # up to 3.4, without the target
    stages: Stages = {}
    backend.add_stages(stages, watched, source.language)
    if "ttir" in stages:  # Gluon has no such stage
        module = stages["ttir"](module, metadata)
    front_end.keep(key, watched, module)
    return module


def without_torch() -> None:
    """Keep AMD's backend from importing torch where none is: our pointers say their reach themselves.

    Needed up to Triton 3.6; later releases look first.
    """
    from importlib.util import find_spec

    from triton.backends.amd.compiler import HIPBackend

    if find_spec("torch") is None:
        HIPBackend.is_within_2gb = staticmethod(lambda value: getattr(value, "ptr_range", lambda: 1 << 62)() < 1 << 31)


class _AllocatedError(Exception):
    """Raised inside the compiler's pipeline to end it: all that is wanted is there."""


def allocate(source: Any, target: Target, options: dict[str, Any]) -> Allocation:
    """Compile a kernel up to the allocation of shared memory; neither LLVM nor ptxas is run.

    Args: as in :func:`lower`.

    Raises:
        Exception: whatever the compiler raises on a kernel that does not compile.
    """
    module, stages, metadata, context = lower(source, target, options)
    allocating, last = _passes(target.backend)
    call: list[tuple[Any, ...]] = []

    def note(add: Callable[..., None]) -> Callable[..., None]:
        def wrapped(manager: Any, *arguments: Any) -> None:
            call.append(arguments)
            add(manager, *arguments)

        return wrapped

    def stop(add: Callable[..., None]) -> Callable[..., None]:
        def wrapped(manager: Any, *arguments: Any) -> None:
            add(manager, *arguments)
            _run(manager, module)
            raise _AllocatedError

        return wrapped

    with _Replaced(*allocating, note), _Replaced(*last, stop):
        try:
            stages["llir"](module, metadata)
        except _AllocatedError:
            pass
        else:
            raise UnsupportedTritonError(f"Triton {version()} allocates shared memory where it was not looked for")

    add = getattr(*allocating)

    def measure(text: str) -> int | None:
        return _measure(text, context, add, call[0] if call else ())

    shared = max(_attribute(module, "ttg.shared"), int(metadata.get("min_shared_mem") or 0))
    warps = _attribute(module, "ttg.total-num-warps") or int(metadata.get("num_warps") or 4)
    return Allocation(shared, _attribute(module, "ttg.tensor_memory_size"), str(module), measure, metadata, warps)


def machine_code(source: Any, target: Target, options: dict[str, Any]) -> tuple[str, int]:
    """Compile to assembly text (PTX or AMDGCN) and return it with the bytes of shared memory."""
    module, stages, metadata, _context = lower(source, target, options)
    for name, stage in stages.items():
        module = stage(module, metadata)
        if name in ("ptx", "amdgcn"):
            return str(module), int(metadata["shared"])
    raise UnsupportedTritonError(f"Triton {version()} has no assembly stage for {target.name}")


def ptxas_path(target: Target) -> str:
    """Return the ptxas that Triton itself would use for a target."""
    from triton.backends.nvidia import compiler

    found = compiler.get_ptxas(int(target.arch)) if _takes_argument(compiler.get_ptxas) else compiler.get_ptxas()
    return str(getattr(found, "path", found))


def _takes_argument(function: Any) -> bool:
    import inspect

    return bool(inspect.signature(function).parameters)


def _passes(backend: str) -> tuple[tuple[Any, str], tuple[Any, str]]:
    """Find the pass that allocates shared memory, and the one to stop after.

    On NVIDIA tensor memory is allocated by a pass of its own, right after.
    """
    from triton._C.libtriton import passes

    if backend == "cuda":
        from triton._C.libtriton import nvidia

        last = (nvidia.passes.ttnvgpuir, "add_allocate_tensor_memory")
        for owner, name in (
            (nvidia.passes.ttgpuir, "add_allocate_shared_memory_nv"),
            (passes.ttgpuir, "add_allocate_shared_memory"),  # up to 3.4
        ):
            if hasattr(owner, name) and hasattr(*last):
                return (owner, name), last
    else:
        from triton._C.libtriton import amd

        for owner in (amd.passes.ttgpuir, passes.ttgpuir):
            if hasattr(owner, "add_allocate_shared_memory"):
                allocating = (owner, "add_allocate_shared_memory")
                return allocating, allocating
    raise UnsupportedTritonError(f"Triton {version()} has no pass that allocates shared memory by a known name")


class _Replaced:
    """Puts another function in a module's place for the time of a block."""

    def __init__(self, owner: Any, name: str, make: Callable[[Callable[..., None]], Callable[..., None]]) -> None:
        self._owner, self._name, self._make = owner, name, make

    def __enter__(self) -> None:
        self._original = getattr(self._owner, self._name)
        setattr(self._owner, self._name, self._make(self._original))

    def __exit__(self, *_: object) -> None:
        setattr(self._owner, self._name, self._original)


def _run(manager: Any, module: Any) -> None:
    try:
        manager.run(module, "allocate")
    except TypeError:
        manager.run(module)  # up to 3.5, without a name


def _attribute(module: Any, name: str) -> int:
    value = module.get_int_attr(name)
    return 0 if value is None else int(value)


def _measure(text: str, context: Any, add: Callable[..., None], arguments: tuple[Any, ...]) -> int | None:
    """Ask the allocation pass how many bytes a module needs; None when it cannot be asked."""
    from triton._C.libtriton import ir

    try:
        module = front_end.parse(text, context)
        manager = ir.pass_manager(context)
        add(manager, *arguments)
        _run(manager, module)
        return _attribute(module, "ttg.shared")
    except Exception:  # noqa: BLE001 (MLIR raises RuntimeError and its own; the caller shows a bound instead)
        return None
