"""Which options, environment variables and keywords each vLLM release has: ``tables/vllm-options.json``.

``python benchmarks/vllm_options.py`` reads some dozens of Python files of each release's wheel by HTTP range, every release from
0.5.4 on but no pre-release, and takes them apart by syntax; nothing of vLLM is imported. ``--out FILE`` writes elsewhere.
It needs the package index and ``oortriage[source]``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from oortriage.errors import OortriageError
from oortriage.kernels.source.wheel import WheelSource, all_versions, wheel_spec
from oortriage.lint.extract.release import surface_of
from oortriage.lint.surface import Surface
from oortriage.lint.tables import FILE, build

OUT = Path(__file__).parent.parent / "tables" / FILE
SINCE = "0.5.4"
ABOUT = (
    "Options of `vllm serve`, keys of envs.environment_variables, keywords of LLM and EngineArgs, and modules to start, "
    "by first and last release that has them, among the releases read. Made by benchmarks/vllm_options.py from the "
    "published wheels."
)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    surfaces: list[Surface] = []
    for version in all_versions("vllm", SINCE):
        try:
            surfaces.append(surface_of(WheelSource(wheel_spec("vllm", version)), version, "wheel"))
        except OortriageError as problem:
            print(problem, file=sys.stderr)
            return 1
        print(f"{version}: {len(surfaces[-1].flags)} options, {len(surfaces[-1].variables)} variables")
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_bytes(_lines(msgspec.json.encode(build(surfaces, ABOUT))))
    return 0


def _lines(data: bytes) -> bytes:
    """Break the one long line before every name, so that a change is seen in a diff."""
    table = msgspec.json.decode(data)
    parts = []
    for key, value in table.items():
        if isinstance(value, dict):
            rows = b",\n".join(
                msgspec.json.encode(name) + b":" + msgspec.json.encode(one) for name, one in value.items()
            )
            parts.append(msgspec.json.encode(key) + b":{\n" + rows + b"\n}")
        else:
            parts.append(msgspec.json.encode(key) + b":" + msgspec.json.encode(value))
    return b"{\n" + b",\n".join(parts) + b"\n}\n"


if __name__ == "__main__":
    sys.exit(main())
