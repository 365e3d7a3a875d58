"""Numbers that name one piece of hardware. The PCI bus id stays: it says which slot, not which machine."""

from __future__ import annotations

from oortriage.report.redaction.pattern import Pattern

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_NVIDIA = "https://docs.nvidia.com/deploy/nvidia-smi/index.html"

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="mig-uuid-old",
        kind="gpu",
        expression=rf"(?<![A-Za-z0-9])(?P<secret>MIG-GPU-{_UUID}/\d{{1,3}}/\d{{1,3}})",
        reason="it names one card in the world",
        source=_NVIDIA,
        anchors=("mig-gpu-",),
    ),
    Pattern(
        name="gpu-uuid",
        kind="gpu",
        expression=rf"(?<![A-Za-z0-9])(?P<secret>(?:GPU|MIG)-{_UUID})(?![\w-])",
        reason="it names one card in the world",
        source=_NVIDIA,
        anchors=("gpu-", "mig-"),
    ),
    Pattern(
        name="gpu-uuid-setting",
        kind="gpu",
        expression=rf"(?i)(?:gpu|device|card)[-_ ]?uuid[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"']?(?P<secret>{_UUID})",
        reason="it names one card in the world",
        source=_NVIDIA,
        anchors=("uuid",),
    ),
    Pattern(
        name="gpu-uuid-short",
        kind="gpu",
        expression=r"(?<![A-Za-z0-9])(?P<secret>GPU-[0-9a-f]{8,16}+)(?![\w-])",
        reason="HIP prints the number of a card without hyphens",
        source="https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html",
        anchors=("gpu-",),
    ),
    Pattern(
        name="serial-number",
        kind="serial",
        expression=r"(?i)\bserial(?: ?(?:number|no\.?))?[\"']?[ \t]{0,40}+[:=][ \t]{0,8}+[\"']?(?P<secret>(?=[A-Z0-9-]{0,7}\d)[A-Z0-9-]{8,32}+)(?!\w)",
        reason="it names one piece of hardware, and its buyer to the vendor",
        source=_NVIDIA,
        anchors=("serial",),
    ),
)
