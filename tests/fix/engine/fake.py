"""A package named vllm with just the seams that the engine check uses: plugins, a platform, an engine.

It is no imitation of vLLM's engine: what is tested with it is the check's own scaffolding. The real engine is run by
the tests marked ``gpu``.
"""

from __future__ import annotations

from pathlib import Path

_FILES = {
    "__init__.py": """
import logging, sys
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="INFO [fake] %(message)s")
__version__ = "0.0.0+fake"
from vllm.engine.llm import LLM, SamplingParams
""",
    "platforms/__init__.py": """
from vllm.platforms.interface import DeviceCapability
class Platform:
    @classmethod
    def get_device_capability(cls, device_id=0):
        return DeviceCapability(9, 0)
    @classmethod
    def get_device_total_memory(cls, device_id=0):
        return 16 << 30
current_platform = Platform()
""",
    "platforms/interface.py": """
from typing import NamedTuple
class DeviceCapability(NamedTuple):
    major: int
    minor: int
""",
    "engine/__init__.py": "",
    "engine/arg_utils.py": """
import dataclasses
from importlib.metadata import entry_points
@dataclasses.dataclass
class EngineArgs:
    model: str
    dtype: str = "auto"
    load_format: str = "auto"
    skip_tokenizer_init: bool = False
    enforce_eager: bool = False
    gpu_memory_utilization: float = 0.9
    distributed_executor_backend: str = None
def load_general_plugins():
    for one in entry_points(group="vllm.general_plugins"):
        one.load()()
""",
    "engine/llm.py": """
import json, os, subprocess, sys, time
from pathlib import Path
from types import SimpleNamespace
from vllm.engine.arg_utils import EngineArgs, load_general_plugins
class SamplingParams:
    def __init__(self, max_tokens, **more):
        self.max_tokens = max_tokens
CORE = "import vllm; from vllm.engine.arg_utils import load_general_plugins as load; import multiprocessing, sys; multiprocessing.current_process().name = sys.argv[1]; load()"
class LLM:
    def __init__(self, **named):
        self.args = EngineArgs(**named)
        assert json.loads(Path(self.args.model, "config.json").read_text())["head_dim"] == 256
        assert Path(self.args.model, "model.safetensors").stat().st_size
        load_general_plugins()
        if os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] == "1":
            roles = ["EngineCore"] + (["VllmWorker-0"] if self.args.distributed_executor_backend == "mp" else [])
            for role in roles:
                subprocess.run([sys.executable, "-c", CORE, role], check=True)
    def generate(self, prompts, params, use_tqdm):
        from vllm.platforms import current_platform
        from vllm.v1.attention.ops.triton_unified_attention import TILE
        if os.environ.get("FAKE_VLLM_HANGS"):
            time.sleep(600)
        tile = TILE
        if os.environ.get("OORTRIAGE_TILE_POLICY"):
            tile = 16
        if tuple(current_platform.get_device_capability()) == (7, 5) and tile == 32:
            raise RuntimeError("triton.runtime.errors.OutOfResources: out of resource: shared memory, "
                "Required: 81920, Hardware limit: 65536. Reducing block sizes or `num_stages` may help.")
        count = int(os.environ.get("FAKE_VLLM_TOKENS", params.max_tokens))
        return [SimpleNamespace(outputs=[SimpleNamespace(token_ids=[len(one["prompt_token_ids"])] * count)]) for one in prompts]
""",
    "v1/__init__.py": "",
    "v1/attention/__init__.py": "",
    "v1/attention/ops/__init__.py": "",
}
_SAFETENSORS = """
import torch
def save_file(tensors, path, metadata):
    torch.save({name: tensor.shape for name, tensor in tensors.items()}, path)
"""
_POLICY = "v1/attention/ops/triton_unified_attention.py"


def fake_vllm(folder: Path, tile: int) -> Path:
    """Write the package; its attention module holds nothing but a tile."""
    for name, text in {**_FILES, _POLICY: f"TILE = {tile}\n"}.items():
        path = folder / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "safetensors").mkdir(exist_ok=True)
    (folder / "safetensors" / "torch.py").write_text(_SAFETENSORS, encoding="utf-8")
    return folder
