"""Tuned configurations that vLLM ships: JSON files beside a kernel, one a shape and card."""

from __future__ import annotations

from oortriage.kernels._interface import Library


def fetch_tuned(library: Library, folder: str, start: str) -> None:
    """Make the tuned configurations of a shape for this card local, so that vLLM's own code finds them.

    Args:
        library: vLLM.
        folder: the configurations' folder in the package.
        start: how the names of the shape's files begin: ``E=8,N=7168,``.
    """
    name = library.module("vllm.platforms").current_platform.get_device_name().replace(" ", "_")
    parts = name.split("_")
    for length in range(len(parts), 0, -1):  # newer releases name a family after its first words: NVIDIA_H200
        for end in (",", ".json"):
            library.data(folder, f"/{start}", f"device_name={'_'.join(parts[:length])}{end}")
