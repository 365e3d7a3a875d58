"""Container images of vLLM: which release an image's tag names, and whether its entry point is the server."""

from __future__ import annotations

import re

#: ``vllm/vllm-openai:v0.6.3.post1-cu121``, also through a mirror or a registry with a port.
_IMAGE = re.compile(
    r"(?:^|/)(?P<name>vllm-(?:openai|cpu|rocm|tpu)\w*|vllm)(?::(?P<tag>[\w.+${}:-]+))?(?:@sha256:\w+)?$"
)
_TAG = re.compile(r"v?(\d+\.\d+(?:\.\d+)*(?:\.?post\d+)?)(?:-.*)?$")


def image_version(image: str) -> str:
    """Return the release that the tag names; empty for ``latest``, a nightly, another image."""
    found = _IMAGE.search(image)
    tag = _TAG.match(found["tag"]) if found and found["tag"] else None
    return tag[1] if tag else ""


def is_image(text: str) -> bool:
    """Tell whether a text is an image of vLLM's, with or without a tag."""
    found = _IMAGE.search(text)
    return found is not None and (found["name"] != "vllm" or found["tag"] is not None)


def is_server_image(image: str) -> bool:
    """Tell whether the image starts the OpenAI server with the words that follow it."""
    found = _IMAGE.search(image)
    return found is not None and "openai" in found["name"]
