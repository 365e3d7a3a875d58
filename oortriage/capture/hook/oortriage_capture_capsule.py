"""Makes and writes a capsule of a kernel that does not fit: its source, constants, types and figures.

Loaded on a failure only. Nothing of tensors is written but shape, strides and type; no environment, no command
line, no argument but numbers and flags.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import sys
import time
import weakref
from typing import Any

import oortriage_capture_source as source_of

SCHEMA, VERSION = "oortriage-capsule", 1
_MOST_FRAMES, _MOST_CAPSULES, _LONGEST_TEXT = 400, 32, 200
#: Launch options that change what is compiled; the rest of a backend's follow from the target.
_OPTIONS = (
    "num_warps", "num_stages", "num_ctas", "maxnreg", "cluster_dims", "ptx_version", "enable_fp_fusion",
    "default_dot_input_precision", "max_num_imprecise_acc_default", "allow_flush_denorm", "debug",
    "sanitize_overflow", "launch_cooperative_grid", "launch_pdl", "min_shared_mem", "waves_per_eu",
    "matrix_instr_nonkdim", "kpack", "schedule_hint", "instrumentation_mode",
)  # fmt: skip
_LIBRARIES = ("torch", "triton", "vllm", "sglang", "transformers", "flash_attn")
#: How Inductor's own launcher says it, and Triton.
_SAID = re.compile(
    r"out of resource: (?P<what>[^,]*?),? +Required: (?P<required>\d+),? +Hardware limit: ?(?P<limit>\d+)"
)
#: Files (and functions, where a file holds others too) in which a configuration is only tried.
_TRIALS = (
    ("triton/runtime/autotuner.py", ("_bench",)),
    ("torch/_inductor/runtime/triton_heuristics.py", ("_make_launchers", "bench", "benchmark_all_configs")),
)
_CHOOSING = ("torch/_inductor/select_algorithm.py", "torch/_inductor/autotune_process.py")
_seen: dict[int, Any] = {}
_written: set[str] = set()


def out_of_resources(error: Any, frame: Any, held: list[dict[str, Any]]) -> None:
    """Look at an exception that was just made, and write the capsule of the kernel it is about.

    Args:
        error: Triton's OutOfResources.
        frame: where it was made.
        held: takes the capsule of a choice that is only tried.
    """
    kernel, bound, choosing = None, None, False
    for file, name, one in _frames(frame):
        if any(file.endswith(end) and name in names for end, names in _TRIALS):
            return  # if every configuration fails, the best is launched in earnest, and fails again
        choosing = choosing or file.endswith(_CHOOSING)
        if name == "_init_handles" and kernel is None:
            kernel = one.f_locals.get("self")
        elif name == "run" and file.endswith("triton/runtime/jit.py") and bound is None:
            bound = one.f_locals.get("bound_args")
            kernel = kernel or one.f_locals.get("kernel")
    if kernel is None or not hasattr(kernel, "metadata") or not hasattr(kernel, "src"):
        return  # made by something else: a copy, an unpickled one
    known = _seen.get(id(kernel))
    if known is not None and known() is kernel:
        return
    _seen[id(kernel)] = weakref.ref(kernel)
    made = _capsule(kernel.src, kernel.metadata, kernel.metadata.target, str(error.name), error.required, error.limit)
    made["arguments"] = _arguments(bound)
    _hold_or_write(made, held, choosing)


def inductor_gave_up(tuner: Any, problem: BaseException, frame: Any, held: list[dict[str, Any]]) -> None:
    """Write the capsule of an Inductor kernel of which no configuration could be loaded."""
    said = _SAID.search(str(problem))
    if said is None or not tuner.compile_results:
        return
    result = tuner.compile_results[-1]  # the one whose message is printed
    kernel, meta = result.kernel, result.compile_meta
    fn = tuner.fn
    source, metadata, target = getattr(kernel, "src", None), getattr(kernel, "metadata", None), None
    if source is not None and metadata is not None:
        target = metadata.target
    else:
        source, metadata, target = _of_meta(tuner, fn, meta, result.config)
    required, limit = int(said.group("required")), int(said.group("limit"))
    what = said.group("what")
    made = _capsule(
        source, metadata, target, what if what in ("tensor memory", "threads") else "shared memory", required, limit,
        fn=fn, file=getattr(tuner, "filename", None),
    )  # fmt: skip
    _hold_or_write(made, held, any(file.endswith(_CHOOSING) for file, _name, _one in _frames(frame)))


class _Fields:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def _of_meta(tuner: Any, fn: Any, meta: dict[str, Any], config: Any) -> tuple[Any, Any, Any]:
    """Put together what a kernel of Inductor's own launcher was compiled of, as Inductor itself does."""
    names = list(fn.arg_names)
    constants = {}
    for key, value in meta["constants"].items():
        constants[(names.index(key),) if isinstance(key, str) else key if isinstance(key, tuple) else (key,)] = value
    source = _Fields(fn=fn, signature=meta["signature"], constants=constants, attrs=meta["configs"][0])
    make = getattr(tuner, "_create_compile_options", None)
    options = dict(make(config, meta)) if make else {}
    options = {"num_warps": meta.get("num_warps"), "num_stages": meta.get("num_stages"), **options}
    properties = tuner.device_props
    target = _Fields(
        backend=meta.get("device_type", "cuda"),
        arch=meta["cc"],
        warp_size=getattr(properties, "warp_size_or_default", None) or getattr(properties, "warp_size", None) or 32,
    )
    return source, _Fields(**options), target


def _hold_or_write(made: dict[str, Any], held: list[dict[str, Any]], choosing: bool) -> None:
    if choosing:
        held[:] = [made]
    else:
        write(made)


def _frames(frame: Any) -> Any:
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        yield frame.f_code.co_filename.replace("\\", "/"), frame.f_code.co_name, frame
        frame = frame.f_back


def _capsule(
    source: Any, metadata: Any, target: Any, what: str, required: Any, limit: Any, fn: Any = None, file: Any = None
) -> dict[str, Any]:
    functions = source_of.Functions(file)
    kernel = fn if fn is not None else getattr(source, "fn", None)
    entry = functions.add(kernel) if kernel is not None else ""
    signature = getattr(source, "signature", None) or {}
    names = list(getattr(kernel, "arg_names", signature))
    return {
        "schema": SCHEMA,
        "schema_version": VERSION,
        "kernel": getattr(kernel, "__name__", "") or str(getattr(source, "name", "")),
        "module": str(getattr(kernel, "__module__", "") or ""),
        "resource": what,
        "required": int(required),
        "limit": int(limit),
        "target": {"backend": str(target.backend), "arch": target.arch, "warp_size": int(target.warp_size)},
        "language": str(getattr(getattr(source, "language", None), "name", "TRITON")).lower(),
        "entry": entry,
        "parameters": [str(name) for name in names],
        "signature": {str(name): _type(kind) for name, kind in signature.items()},
        "constants": [
            [list(_path(key)), functions.value(value)] for key, value in _held_by(source, "constants").items()
        ],
        "attributes": [[list(_path(key)), _plain(value)] for key, value in _held_by(source, "attrs").items()],
        "options": {name: _plain(getattr(metadata, name)) for name in _OPTIONS if _told(metadata, name)},
        "arguments": {},
        "functions": functions.found,
        "versions": _versions(),
        "gpu": _gpu(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _held_by(source: Any, name: str) -> dict[Any, Any]:
    return dict(getattr(source, name, None) or {})


def _path(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _type(kind: Any) -> Any:
    return [_type(one) for one in kind] if isinstance(kind, (tuple, list)) else str(kind)


def _told(metadata: Any, name: str) -> bool:
    return getattr(metadata, name, None) is not None


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    return str(value)[:_LONGEST_TEXT]


def _arguments(bound: Any) -> dict[str, Any]:
    """Describe arguments: of tensors their form, of numbers and flags the value, of anything else its type."""
    found: dict[str, Any] = {}
    for name, value in dict(bound or {}).items():
        try:
            found[str(name)] = _argument(value)
        except Exception:  # noqa: BLE001 (an object of the user's may fail at anything)
            found[str(name)] = {"type": type(value).__name__}
    return found


def _argument(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return source_of.number(value)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        stride = getattr(value, "stride", None)
        strides = [int(one) for one in stride()] if callable(stride) else []
        return {"dtype": str(value.dtype), "shape": [int(one) for one in value.shape], "strides": strides}
    if hasattr(value, "block_shape") and hasattr(value, "shape"):
        form = {name: [int(one) for one in getattr(value, name)] for name in ("shape", "strides", "block_shape")}
        return {"descriptor": form}
    if isinstance(value, (tuple, list)):
        return [_argument(one) for one in value]
    return {"type": type(value).__name__}


def _versions() -> dict[str, str]:
    """Name what is loaded already; nothing is imported for it."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            found[name] = version
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8", errors="replace") as file:
            told = re.search(r"\s(\d{3}\.\d+(\.\d+)?)\s", file.readline())
        if told:
            found["driver"] = told.group(1)
    except OSError:
        pass
    return found


def _gpu() -> str:
    """Return the card's name, where PyTorch knows it already."""
    try:
        cuda = sys.modules["torch"].cuda
        return str(cuda.get_device_name()) if cuda.is_initialized() else ""
    except Exception:  # noqa: BLE001
        return ""


def write(made: dict[str, Any]) -> None:
    """Write a capsule whole or not at all; the same failure again, or of another rank, is the same file."""
    apart = ("time", "arguments", "gpu")
    text = json.dumps({name: value for name, value in made.items() if name not in apart}, sort_keys=True)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    kernel = re.sub(r"\W+", "_", made["kernel"])[:80] or "kernel"
    name = f"{kernel}-{made['required']}-{digest}.json"
    if name in _written or len(_written) >= _MOST_CAPSULES:
        return
    _written.add(name)
    folder = os.environ["OORTRIAGE_CAPTURE"]
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(made, file, indent=1)
        os.replace(temporary, os.path.join(folder, name))
    except BaseException:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        raise
