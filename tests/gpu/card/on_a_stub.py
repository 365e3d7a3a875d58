"""Run as a script: the emulation over a driver that loads nothing; prints what happened, as JSON."""

from __future__ import annotations

import json
import os
import sys

os.environ["TRITON_CACHE_DIR"] = sys.argv[1]

from triton.runtime import driver

from oortriage.gpu.card.session import CardSession
from oortriage.gpu.virtual.adapter import Target
from oortriage.gpu.virtual.driver import Card, VirtualDriver
from oortriage.gpu.virtual.session import Session
from oortriage.kernels.live import Batch
from oortriage.kernels.registry import find_recipe

H200 = Card(Target("cuda", 90, 32), 232_448, "H200")
T4 = Card(Target("cuda", 75, 32), 65_536, "T4")
loaded: list[dict] = []


class Launcher:
    def __init__(self, *_): ...

    def __call__(self, *_):
        loaded[-1]["launched"] = True


def load_binary(name, kernel, shared, _device):
    text = bytes(kernel)
    loaded.append(
        {"name": name, "target": text.partition(b".target ")[2][:5].decode(), "end": text[-1], "shared": shared}
    )
    return None, None, 100, 0, 1024


recipe = find_recipe("reference.attention")
# A kernel that comes as a source object, as a captured one does; taken first, for Triton keeps what it compiled.
virtual = Session(T4)
with virtual.run():
    recipe.call(None, recipe.shape({"dtype": "float32", "head_size": 256, "tile": 32})[0])
captured = virtual.launches[-1].source
stub = VirtualDriver(H200, 7)
stub.utils.load_binary = load_binary
stub.launcher_cls = Launcher
driver.set_active(stub)
results = []
for tile in (16, 32):
    shape, _ = recipe.shape({"dtype": "float32", "head_size": 256, "tile": tile})
    case = recipe.live(None, shape, Batch("one", ((16, 16),)), "cpu", 0, 1)
    session = CardSession(T4, {}, emulated=True)
    try:
        with session.run():
            case.call(0)
        results.append({"ran": session.loaded["attention"].shared_bytes, "loaded": loaded[-1]})
    except Exception as problem:  # noqa: BLE001
        results.append({"error": type(problem).__name__, "required": problem.required, "limit": problem.limit})
for tile in (32, 16):  # loaded, not launched
    session = CardSession(T4, {"TILE_SIZE": tile}, emulated=True)
    count = len(loaded)
    try:
        with session.run():
            session.launch(captured, {"num_warps": 4})
        results.append(
            {"loaded": session.loaded["attention"].shared_bytes, "launched": loaded[-1].get("launched", False)}
        )
    except Exception as problem:  # noqa: BLE001
        results.append({"error": type(problem).__name__, "required": problem.required, "limit": problem.limit})
limits = stub.utils.get_device_properties(0)["max_shared_mem"]
sys.stdout.write(json.dumps({"results": results, "restored": driver.active is stub, "limit": limits}))
