"""Puts a rule in front of vLLM's tile policy and kernel launches; what goes wrong in here leaves them as they were."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from oortriage.fix.rules import Decision, Facts, Rule, decide

#: The modules that hold the policy: up to 0.13.0, and from 0.14.1 on.
MODULES = ("vllm.v1.attention.ops.triton_unified_attention", "vllm.attention.ops.triton_unified_attention")
#: The kernels whose tile is chosen; one kernel since 0.20.0, two before.
KERNELS = ("kernel_unified_attention", "kernel_unified_attention_2d", "kernel_unified_attention_3d")
#: Joins the parts of a decode that was split along the context; its tile must be the attention kernel's.
JOIN = "reduce_segments"
_POLICY = "_get_tile_size"
_MARK = "oortriage_rule"

_log = logging.getLogger("vllm.oortriage")


def uninstall(module: Any, before: dict[str, Any]) -> None:
    """Put back what :func:`parts` noted."""
    for name in (*KERNELS, JOIN, _POLICY, _MARK):
        module.__dict__.pop(name, None)
    module.__dict__.update(before)


def parts(module: Any) -> dict[str, Any]:
    """Note what :func:`install` may change."""
    return {name: vars(module)[name] for name in (*KERNELS, JOIN, _POLICY, _MARK) if name in vars(module)}


def install(module: Any, rule: Rule) -> str:
    """Put a rule in place in a loaded module; a second time changes nothing.

    Returns:
        What was done, in a few words; empty when nothing was.
    """
    if getattr(module, _MARK, ""):
        return ""
    policy = getattr(module, _POLICY, None)
    whole = rule.change is not None and rule.change.tile is not None
    if whole and callable(policy):
        setattr(module, _POLICY, _policy(policy, rule, module))
        done = f"{_POLICY} of {module.__name__}"
    else:
        names = [name for name in KERNELS if "TILE_SIZE" in getattr(getattr(module, name, None), "arg_names", ())]
        if not names:
            return ""
        tiles = _Tiles()
        for name in names:
            setattr(module, name, _Launcher(getattr(module, name), _launch_change(rule, module, tiles)))
        if hasattr(module, JOIN):
            setattr(module, JOIN, _Launcher(getattr(module, JOIN), tiles.same))
        done = f"launches of {', '.join(names)}"
    setattr(module, _MARK, rule.name)
    return done


def _policy(original: Callable[..., int], rule: Rule, module: Any) -> Callable[..., int]:
    """Wrap the policy function; it sees the queries' width only."""
    known: dict[tuple[Any, ...], int] = {}
    trouble = _Trouble()

    def _get_tile_size(  # named as vLLM names it
        head_size: int, sliding_window: int, element_size: int, is_prefill: bool, *more: Any, **named: Any
    ) -> int:
        tile = original(head_size, sliding_window, element_size, is_prefill, *more, **named)
        try:
            capability = _capability(module)
            if capability is None:
                return tile
            key = (capability, head_size, sliding_window, element_size, bool(is_prefill), tile)
            if key in known:
                return known[key]
            window = max(sliding_window or 0, 0)
            facts = Facts(capability, head_size, element_size, None, window, bool(is_prefill), tile)
            decision = decide(rule, facts)
            known[key] = decision.tile if decision and decision.tile else tile
            return known[key]
        except Exception as problem:  # noqa: BLE001 (a policy of ours must never stop an engine)
            trouble.say(problem)
            return tile

    setattr(_get_tile_size, _MARK, rule.name)
    return _get_tile_size


class _Launcher:
    """Stands before a Triton kernel: ``kernel[grid](...)`` with changed settings; all else is the kernel's own."""

    def __init__(self, kernel: Any, change: Callable[[Any, Any, dict[str, Any]], dict[str, Any]]) -> None:
        self._kernel, self._change = kernel, change
        self._trouble = _Trouble()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def __getitem__(self, grid: Any) -> Any:
        launch = self._kernel[grid]

        def changed(*arguments: Any, **named: Any) -> Any:
            try:
                named = {**named, **self._change(self._kernel, grid, named)}
            except Exception as problem:  # noqa: BLE001 (as above)
                self._trouble.say(problem)
            return launch(*arguments, **named)

        return changed


class _Tiles(threading.local):
    """Remembers the tile of a split launch: the kernel that joins the parts must have the same."""

    last: tuple[int, int] | None = None

    def same(self, _kernel: Any, _grid: Any, named: dict[str, Any]) -> dict[str, Any]:
        before, self.last = self.last, None
        return {"TILE_SIZE": before[1]} if before and named.get("TILE_SIZE") == before[0] else {}


def _launch_change(rule: Rule, module: Any, tiles: _Tiles) -> Callable[[Any, Any, dict[str, Any]], dict[str, Any]]:
    """Make the function that says what a launch gets instead; its answers are kept by shape."""
    known: dict[tuple[Any, ...], Decision | None] = {}

    def change(kernel: Any, grid: Any, named: dict[str, Any]) -> dict[str, Any]:
        tiles.last = None
        facts = _facts(module, named, asks_limit=rule.change is None)
        if facts is None or named["BLOCK_M"] <= 0:
            return {}
        constants = tuple((name, one) for name, one in named.items() if name[:1].isupper())
        key = (getattr(kernel, "__name__", ""), facts, str(constants), named.get("num_warps"))
        if key not in known:

            def required(tile: int) -> int | None:
                compiled = kernel.warmup(grid=grid, **{**named, "TILE_SIZE": tile})
                return int(compiled.metadata.shared)

            known[key] = decide(rule, facts, required)
        decision = known[key]
        if decision is None:
            return {}
        if decision.tile is not None:
            tiles.last = (facts.tile, decision.tile)
            return {"TILE_SIZE": decision.tile}
        return {} if "num_warps" in named else {"num_warps": decision.num_warps}

    return change


def _facts(module: Any, named: dict[str, Any], *, asks_limit: bool) -> Facts | None:
    capability = _capability(module)
    if capability is None:
        return None
    query, keys = named["query_ptr"], named["key_cache_ptr"]
    return Facts(
        capability=capability,
        head_size=named["HEAD_SIZE"],
        q_bytes=query.element_size(),
        kv_bytes=keys.element_size(),
        window=max(named.get("SLIDING_WINDOW") or 0, 0),
        is_prefill=not named.get("IS_3D", "segm_output_ptr" in named),
        tile=named["TILE_SIZE"],
        limit_bytes=_limit() if asks_limit else 0,
    )


def _capability(module: Any) -> tuple[int, int] | None:
    """Ask vLLM's platform, which asks the driver without starting CUDA; None where there is no such thing."""
    found = module.current_platform.get_device_capability()
    return None if found is None else (int(found[0]), int(found[1]))


def _limit() -> int:
    from triton.runtime import driver

    active = driver.active
    return int(active.utils.get_device_properties(active.get_current_device())["max_shared_mem"])


class _Trouble:
    """Says once what went wrong."""

    def __init__(self) -> None:
        self._said = False

    def say(self, problem: Exception) -> None:
        if not self._said:
            self._said = True
            _log.warning("oortriage: the tile policy stays as it was: %s: %s", type(problem).__name__, problem)
