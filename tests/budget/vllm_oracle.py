"""Asks a release's own code what a KV pool holds: ``python vllm_oracle.py FOLDER < cases.json``.

FOLDER holds the release's files as its wheel has them. Only the modules that do the arithmetic are real; whatever else
they import is a stand-in that answers everything. Cases and answers are JSON lists, see ``test_against_vllm``.
"""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.machinery
import importlib.util
import json
import logging
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

#: Modules of which the release's own file is run, where it has them.
REAL = (
    "vllm.v1.kv_cache_interface", "vllm.v1.kv_cache_layout", "vllm.v1.kv_cache_spec_registry",
    "vllm.v1.core.kv_cache_utils", "vllm.v1.core.kv_cache_planning", "vllm.v1.core.kv_cache_config_builder",
    "vllm.v1.core.single_type_kv_cache_manager",
)  # fmt: skip
PRINTED: list[str] = []


class Kind(type):
    """A class that has every name."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return name


class Stand(ModuleType):
    """A module, class or object that has every attribute, and can be called, subscripted and subclassed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        made = Stand(name) if name[:1].islower() else Kind(name, (), {"__class_getitem__": _itself})
        setattr(self, name, made)
        return made

    def __call__(self, *args: Any, **_: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) else self  # a decorator leaves what it decorates


def _itself(cls: type, _: Any) -> type:
    return cls


class Logger(logging.Logger):
    """Keeps what is printed; ``info_once`` and its like print as well."""

    def handle(self, record: logging.LogRecord) -> None:
        PRINTED.append(record.getMessage())

    def info_once(self, message: str, *args: Any, **_: Any) -> None:
        self.info(message, *args)

    warning_once = info_once


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the real modules in the folder, and stands in for the rest of vllm and for torch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, name: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        if name.split(".", maxsplit=1)[0] not in ("vllm", "torch", "transformers", "zmq"):
            return None
        file = self.folder / (name.replace(".", "/") + ".py")
        if name in REAL and file.is_file():
            return importlib.util.spec_from_file_location(name, file)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        made = Stand(spec.name)
        if spec.name == "torch":
            made.dtype = SimpleNamespace
            for name, size in (("float32", 4), ("float16", 2), ("bfloat16", 2), ("uint8", 1)):
                setattr(made, name, SizedType(name, size))
        if spec.name == "vllm.logger":
            made.init_logger = Logger
        if spec.name.startswith("vllm.utils"):
            made.cdiv = lambda a, b: -(-a // b)
            made.round_up = lambda a, b: -(-a // b) * b
            made.get_dtype_size = lambda dtype: dtype.size
            made.format_gib = lambda size: f"{size / 2**30:.2f}"
            made.GiB_bytes = 2**30
        if ".hisparse" in spec.name:
            made.get_hisparse_kv_cache_groups = lambda *_: None
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Leave the stand-in as it is."""


@dataclasses.dataclass(frozen=True)
class SizedType:
    """A type of elements."""

    name: str
    size: int


def config(case: dict[str, Any]) -> Any:
    """Build what the functions read of the engine's configuration."""
    layout = None
    if "vllm.v1.kv_cache_layout" in sys.modules:
        kinds = sys.modules["vllm.v1.kv_cache_layout"].KVCacheLayout
        layout = next((kinds[name] for name in ("LBHNC", "LBNHC") if name in getattr(kinds, "__members__", {})), None)
    dcp, batched = case["dcp"], case["batched"]
    return SimpleNamespace(
        model_config=SimpleNamespace(
            max_model_len=case["length"], original_max_model_len=case["length"], supports_kv_cache_grouping=False
        ),
        scheduler_config=SimpleNamespace(
            max_num_batched_tokens=batched, disable_hybrid_kv_cache_manager=not case["hybrid"]
        ),
        parallel_config=SimpleNamespace(
            decode_context_parallel_size=dcp,
            prefill_context_parallel_size=1,
            tensor_parallel_size=1,
            pipeline_parallel_size=len(case["stages"]),
        ),
        cache_config=SimpleNamespace(
            num_gpu_blocks_override=case["override"],
            block_size=case["block_size"],
            mamba_cache_mode=case["state_mode"],
            prefix_cache_retention_interval=None,
            get_resolved_kv_cache_layout=lambda: layout,
        ),
        attention_config=SimpleNamespace(hisparse_config=None),
        speculative_config=None,
        kv_transfer_config=None,
        num_prefill_lookahead_tokens=0,
        max_in_flight_tokens=batched * (len(case["stages"]) + 1),
        device_config=SimpleNamespace(device_type="cuda"),
    )


def make(interface: Any, page: dict[str, Any]) -> Any:
    """Build the release's spec of one layer."""
    torch = sys.modules["torch"]
    kind, size = page["kind"], page["block_size"]
    if kind == "state":
        if not hasattr(interface, "MambaSpec"):
            raise NotImplementedError(kind)
        fields = {one.name for one in dataclasses.fields(interface.MambaSpec)}
        dtype = {"dtypes": (torch.uint8,)} if "dtypes" in fields else {"dtype": torch.uint8}
        return interface.MambaSpec(
            block_size=page["block_size"] if page["aligned"] else page["length"],
            shapes=((page["bytes"],),),
            page_size_padded=None,
            **dtype,
        )
    name = {"full": "FullAttentionSpec", "mla": "MLAAttentionSpec", "sliding": "SlidingWindowSpec"}.get(
        kind, "ChunkedLocalAttentionSpec"
    )
    old = kind == "mla" and not hasattr(interface, name)
    spec = getattr(interface, "FullAttentionSpec" if old else name)
    fields = {one.name for one in dataclasses.fields(spec)}
    if old and "use_mla" not in fields:
        raise NotImplementedError(kind)
    values = {
        "block_size": size,
        "num_kv_heads": page["heads"],
        "head_size": page["head_size"],
        "dtype": getattr(torch, page["dtype"]),
        "use_mla": kind == "mla",
        "sliding_window": page["window"] if kind == "sliding" else None,
        "attention_chunk_size": page["window"] if kind == "chunked" else None,
    }
    return spec(**{key: value for key, value in values.items() if key in fields})


def answer(interface: Any, utils: Any, case: dict[str, Any]) -> dict[str, Any]:
    """Work one case out."""
    PRINTED.clear()
    settings = config(case)
    specs: list[dict[str, Any]] = []
    available = case["available"]
    try:
        for number, stage in enumerate(case["stages"]):
            pages = [
                make(interface, {**page, "length": case["length"], "aligned": case["state_mode"] == "align"})
                for page in stage
            ]
            specs.append({f"layer.{number}.{index}": page for index, page in enumerate(pages)})
        if hasattr(utils, "get_global_kv_cache_groups"):
            groups = utils.get_global_kv_cache_groups(settings, specs)
            made = utils.get_kv_cache_configs(settings, specs, available, groups)
        elif hasattr(utils, "get_kv_cache_config"):
            made = [utils.get_kv_cache_config(settings, one, size) for one, size in zip(specs, available, strict=True)]
        elif case["one_size"]:
            made = utils.get_kv_cache_configs(settings, specs, available[0])
        else:
            made = utils.get_kv_cache_configs(settings, specs, available)
    except (ValueError, NotImplementedError, AssertionError) as problem:
        return {"error": type(problem).__name__, "message": str(problem)}
    found: dict[str, Any] = {"blocks": min(one.num_blocks for one in made), "printed": list(PRINTED)}
    if hasattr(sys.modules["vllm.v1.core.kv_cache_utils"], "get_kv_cache_capacity"):
        capacity = sys.modules["vllm.v1.core.kv_cache_utils"].get_kv_cache_capacity(settings, made[0])
        found["tokens"], found["concurrency"] = capacity
    return found


def main() -> None:
    """Read cases from standard input, and write the answers."""
    folder = Path(sys.argv[1])
    sys.meta_path.insert(0, Finder(folder))
    import importlib

    for name in REAL[:4]:
        if (folder / (name.replace(".", "/") + ".py")).is_file():
            importlib.import_module(name)
    utils = importlib.import_module("vllm.v1.core.kv_cache_utils")
    if (folder / "vllm/v1/core/kv_cache_planning.py").is_file():
        utils = importlib.import_module("vllm.v1.core.kv_cache_planning")
        if hasattr(utils, "DefaultKVCacheConfigBuilder"):
            builders = sys.modules["vllm.v1.core.kv_cache_config_builder"]
            builders.get_kv_cache_config_builder = lambda _: utils.DefaultKVCacheConfigBuilder()  # type: ignore[attr-defined]
    interface = sys.modules["vllm.v1.kv_cache_interface"]
    answers = [answer(interface, utils, case) for case in json.load(sys.stdin)]
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    main()
