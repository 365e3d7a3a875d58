"""What `oortriage doctor` reads without an import, on published wheels: docs/evidence/doctor.md, first tables.

Needs a package index that answers HTTP ranges, and `pip install 'oortriage[source]'`. About 100 MB are fetched.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from remotezip import RemoteZip

from oortriage.doctor.interpreter import torch_build
from oortriage.doctor.look_inside import architectures, cudart
from oortriage.kernels.source.wheel import wheel_spec

TORCH = ("2.4.0", "2.6.0", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.13.0")
LINKED = (("vllm", "0.11.0"), ("vllm", "0.22.1"), ("vllm", "0.33.0"), ("torchvision", "0.26.0"))
OPTIONS = re.compile(rb"PYTORCH_(?:CUDA_)?ALLOC_CONF")


def main() -> None:
    print("| torch | version.py | CUDA | architectures | names that libc10_cuda.so reads |\n|---|---|---|---|---|")
    for version in TORCH:
        with (
            RemoteZip(wheel_spec("torch", version).location, timeout=60) as wheel,
            tempfile.TemporaryDirectory() as place,
        ):
            root = Path(place)
            (root / "lib").mkdir()
            (root / "lib" / "libtorch_python.so").write_bytes(wheel.read("torch/lib/libtorch_python.so"))
            build = torch_build(wheel.read("torch/version.py").decode())
            names = sorted({one.decode() for one in OPTIONS.findall(wheel.read("torch/lib/libc10_cuda.so"))})
            found = " ".join(architectures(str(root)))
            print(f"| {version} | {build.version} | {build.cuda} | {found} | {', '.join(names)} |", flush=True)
    print("\n| package | linked to |\n|---|---|")
    for library, version in LINKED:
        with (
            RemoteZip(wheel_spec(library, version).location, timeout=60) as wheel,
            tempfile.TemporaryDirectory() as place,
        ):
            folder = [one for one in wheel.namelist() if re.fullmatch(rf"{library}/_C[^/]*\.so", one)]
            smallest = min(folder, key=lambda one: wheel.getinfo(one).file_size)
            (Path(place) / Path(smallest).name).write_bytes(wheel.read(smallest))
            print(f"| {library} {version} | libcudart.so.{cudart(place) or '?'} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
