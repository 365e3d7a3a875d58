"""Bytes an element of a weight matrix in the quantised formats that vLLM loads, with their scales."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
import regex

from oortriage.errors import UsageError

#: A pattern of a config that takes longer is taken as not matching (seconds).
_PATIENCE = 0.05
_MOST_NAMES, _MOST_PATTERNS = 100_000, 64
_FLOATS = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2, "float64": 8}


class Format(msgspec.Struct, frozen=True):
    """How linear layers are stored. Bytes an element with its scales; ``experts_only``: the rest stays as it is.

    ``kept`` are names of layers that are not quantised, as the config lists them, and ``patterns`` those with stars or
    regular expressions.
    """

    name: str
    bytes_per_element: float
    #: Bytes an input feature (GPTQ's order of columns) and an output feature (scales a channel).
    per_row: float = 0.0
    per_column: float = 0.0
    experts_only: bool = False
    head: bool = False
    kept: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()
    exact: bool = True
    #: What the kernels pad an expert's hidden and inner width to, elements.
    hidden_unit: int = 1
    inner_unit: int = 1

    def keeps(self, layer: str) -> bool:
        """Tell whether a layer, by its name in the checkpoint, is left as it is.

        A plain name counts where it is whole parts of the layer's (``lm_head``, ``model.layers.0.mlp.gate``); ``re:``
        begins a regular expression that matches from the start, and a star stands for anything (compressed-tensors,
        and ``modules_to_not_convert`` of transformers).
        """
        parts = layer.split(".")
        pieces = {".".join(parts[start:end]) for start in range(len(parts)) for end in range(start + 1, len(parts) + 1)}
        return not pieces.isdisjoint(self.kept) or any(_matches(pattern, layer) for pattern in self.patterns)


def element_bytes(dtype: str) -> int:
    """Return the bytes of an element of an unquantised weight.

    Raises:
        UsageError: vLLM has no such type.
    """
    found = _FLOATS.get(dtype.removeprefix("torch."))
    if not found:
        raise UsageError(f"--dtype {dtype[:40]!r}: weights are float16, bfloat16 or float32")
    return found


def weight_format(quantization: dict[str, Any] | str | None) -> Format | None:
    """Read a ``quantization_config``, or the name of a method; None: not quantised.

    Formats: the packing of each method's own kernels and quantisers (AWQ, GPTQ: int32 words, a float16 scale and a
    zero point a group; FP8: a float32 scale a tensor or a block; compressed-tensors by its config groups; bitsandbytes
    NF4: a float32 absmax a block of 64; MXFP4: an 8-bit exponent a block of 32; NVFP4: an FP8 scale a block of 16).
    A method that is not known gives None's size with ``exact`` False.
    """
    config = {"quant_method": quantization} if isinstance(quantization, str) else quantization
    if not config:
        return None
    names = _names(
        config, "modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "llm_int8_skip_modules"
    )
    return msgspec.structs.replace(
        _stated(config),
        kept=frozenset(name for name in names if "*" not in name and not name.startswith("re:")),
        patterns=tuple(name for name in names if "*" in name or name.startswith("re:"))[:_MOST_PATTERNS],
    )


def _stated(config: dict[str, Any]) -> Format:
    """Read bytes an element from a config."""
    method = str(config.get("quant_method") or config.get("quant_algo") or "").lower().replace("_", "-")
    head = bool(config.get("lm_head"))
    if method.startswith(("awq", "gptq", "autoround", "auto-round", "intel/auto-round")):
        bits, group = _bits(config, "bits", "w_bit") or 4, _number(config, "group_size", "q_group_size") or 128
        per_group = (2 + bits / 8) / group if group > 0 else 0.0
        ordered = 4.0 if method.startswith("gptq") and config.get("desc_act") else 0.0
        return Format(method, bits / 8 + per_group, per_row=ordered, head=head)
    if method in ("fp8", "fbgemm-fp8", "modelopt", "modelopt-fp8", "modelopt-fp4", "ptpc-fp8"):
        return _fp(config, method, head)
    if method in ("compressed-tensors", "compressed-tensor"):
        return _compressed(config)
    if method.startswith("bitsandbytes"):
        if config.get("load_in_8bit"):
            return Format("bitsandbytes", 1.0, per_column=4.0)
        return Format("bitsandbytes", 0.5 + 4 / 64)
    if method in ("mxfp4", "gpt-oss-mxfp4", "quark-mxfp4"):
        # gpt-oss-120b: 65.97 GiB with vLLM 0.10 and 64.38 with 0.14, whose kernels pad less
        return Format("mxfp4", 0.5 + 1 / 32, experts_only=True, exact=False, hidden_unit=256, inner_unit=128)
    if method == "experts-int8":
        return Format(method, 1.0, per_column=4.0, experts_only=True)
    if stated := _bits(config, "bits", "w_bit", "weight_bits"):
        return Format(method or "unknown", stated / 8 * 1.06, exact=False)
    return Format(method or "unknown", 0.0, exact=False)


def _fp(config: dict[str, Any], method: str, head: bool) -> Format:
    inner = config.get("quantization") if isinstance(config.get("quantization"), dict) else config
    algorithm = str(inner.get("quant_algo") or "").upper() if isinstance(inner, dict) else ""
    if "FP4" in algorithm or method == "modelopt-fp4":
        return Format("nvfp4", 0.5 + 1 / 16, head=head)
    block = config.get("weight_block_size")
    if isinstance(block, list) and len(block) == 2 and all(isinstance(one, int) and one > 0 for one in block):
        return Format("fp8", 1 + 4 / (block[0] * block[1]), head=head)
    return Format("fp8", 1.0, per_column=4.0 if method == "fbgemm-fp8" else 0.0, head=head)


def _compressed(config: dict[str, Any]) -> Format:
    groups = config.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, dict) and groups else None
    weights = first.get("weights") if isinstance(first, dict) else None
    if not isinstance(weights, dict):
        return Format("compressed-tensors", 0.0, exact=False)
    bits = _bits(weights, "num_bits") or 8
    group = _number(weights, "group_size") or 0
    kind, layout = str(weights.get("type") or "int"), str(config.get("format") or "")
    if group > 0:
        # a scale a group, and for asymmetric integers a packed zero point
        scale = 1.0 if kind == "float" and bits == 4 else 2.0
        zero = 0.0 if weights.get("symmetric", True) else bits / 8
        size = bits / 8 + (scale + zero) / group
    else:
        size = bits / 8
    channels = 2.0 if group <= 0 and weights.get("strategy") == "channel" else 0.0
    several = isinstance(groups, dict) and len(groups) > 1
    exact = not several and "sparse" not in layout
    return Format("compressed-tensors", size, per_column=channels, exact=exact)


def _number(config: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 20:
            return value
    return None


def _bits(config: dict[str, Any], *names: str) -> int | None:
    """Return stated bits of a weight; None where they are nonsense."""
    found = _number(config, *names)
    return found if found is not None and 1 <= found <= 16 else None


def _names(config: dict[str, Any], *keys: str) -> tuple[str, ...]:
    found: list[str] = []
    for key in keys:
        listed = config.get(key)
        if isinstance(listed, list):
            found += [name for name in listed[:_MOST_NAMES] if isinstance(name, str) and 0 < len(name) < 300]
    return tuple(found)


def _matches(pattern: str, layer: str) -> bool:
    """Match a regular expression from the start, or a name with stars as a whole; one that takes too long does not."""
    held = _compiled(pattern)
    try:
        return held[0] is not None and held[0].match(layer, timeout=_PATIENCE) is not None
    except TimeoutError:
        held[0] = None
        return False


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> list[Any]:
    """Compile a pattern once; None in the list where it is no expression, or was too slow before."""
    text = pattern[3:] if pattern.startswith("re:") else ".*".join(map(regex.escape, pattern.split("*"))) + r"(\.|$)"
    try:
        return [regex.compile(text)]
    except regex.error:
        return [None]
