"""Run as a script: what vLLM's wrapper launches for each batch of the cost measurement; prints it as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch

from oortriage.fix.cost_plan import BATCHES, HEADS
from oortriage.fix.hooks import KERNELS, MODULES
from oortriage.fix.impact import RECIPE, card_of
from oortriage.gpu.virtual.torch_face import torch_sees
from oortriage.kernels.libraries import open_library
from oortriage.kernels.registry import find_recipe
from oortriage.kernels.source import find_source

noted: list[list[Any]] = []


class Recorder:
    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, _grid: Any) -> Any:
        return lambda *_, **named: noted.append([self.name, named["TILE_SIZE"]])


def main(version: str) -> None:
    card, recipe = card_of("T4"), find_recipe(RECIPE)
    library = open_library(recipe, find_source("vllm", version), card)
    module = library.module(*MODULES)
    for name in (*KERNELS, "reduce_segments"):
        if hasattr(module, name):
            setattr(module, name, Recorder(name))
    torch.randn = lambda size, generator=None, **more: torch.empty(size, **more)  # noqa: ARG005 (nothing is computed)
    found = []
    for kv_heads, q_per_kv in HEADS:
        for window in (0, 1024):
            for batch in BATCHES:
                given = {"dtype": "float32", "head_size": 256, "window": window, "phase": batch.taken_by}
                shape = recipe.shape({**given, "kv_heads": kv_heads, "q_per_kv": q_per_kv})[0]
                noted.clear()
                with torch_sees(card):
                    recipe.live(library, shape, batch, "cpu", 0, 1).call(0)
                found.append([batch.name, "sliding" if window else "full", list(noted)])
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
