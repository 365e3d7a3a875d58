"""A device's memory by pool as SVG: what is in use, what waits, what lies idle, and what the card had free."""

from __future__ import annotations

from oortriage.evidence.values import format_bytes
from oortriage.report.draw.svg import (
    MARGIN,
    OTHER_FILL,
    OUTLINE,
    WIDTH,
    Markup,
    clean,
    document,
    element,
    label,
    legend,
    mix,
    text_width,
)
from oortriage.snapshot.analyse import Device, Report, summary_of

_USED, _WAITING, _IDLE = "#56b4e9", "#e69f00", OTHER_FILL
#: Fills, and the bytes they stand for.
_Pieces = tuple[tuple[str, int], ...]
_LANE, _STEP = 26, 66
_TITLE = "Memory by pool"
#: Pools that are drawn; the report's JSON has all.
_POOLS = 12


def pool_bars_svg(report: Report) -> str:
    """Draw every device's pools on one scale, in bytes."""
    parts: list[Markup] = []
    said: list[str] = []
    y = 28.0
    for device in report.devices:
        drawn, y = _device(device, y)
        parts += drawn
        said.append(f"device {device.device}: {summary_of(device)}")
        if device.verdict:
            said.append(f"{device.verdict.cause.replace('_', ' ')}: {device.verdict.summary}")
    entries = [(_USED, "in use"), (_WAITING, "freed, in use by another stream"), (_IDLE, "idle")]
    entries.append(("#00567f", "below: in use, by address"))
    swatches, y = legend(entries, y)
    return document(_TITLE, ". ".join(said) + ".", y + 8, [*parts, *swatches])


def _device(device: Device, y: float) -> tuple[list[Markup], float]:
    state = device.at_request or device.written
    cause = f": {device.verdict.cause.replace('_', ' ')}" if device.verdict else ""
    parts = [label(MARGIN, y, f"Device {device.device}{cause}", "oor-head")]
    bars: list[tuple[str, _Pieces]] = [
        (
            one.name if one.name == "default" else f"{one.name} ({one.id[0]}, {one.id[1]})",
            ((_USED, one.allocated_bytes), (_WAITING, one.awaiting_free_bytes), (_IDLE, one.idle_bytes)),
        )
        for one in state.pools[:_POOLS]
    ]
    verdict = device.verdict
    if verdict and verdict.device_free_bytes is not None:
        bars.append(("free on the card", (("none", verdict.device_free_bytes),)))
    if verdict:
        bars.append(("the request", (("#d68fb4", verdict.rounded_bytes),)))
    whole = max((sum(size for _, size in pieces) for _, pieces in bars), default=0) or 1
    y += 14
    maps = [one.map for one in state.pools[:_POOLS]]
    for number, (name, pieces) in enumerate(bars):
        scale = (WIDTH - 2 * MARGIN) / whole
        parts += _bar(name, pieces, y, scale)
        if number < len(maps) and maps[number]:
            parts += _strip(maps[number], y + 22 + _LANE, sum(size for _, size in pieces) * scale)
        y += _STEP
    return parts, y + 24


def _strip(cells: list[int], y: float, wide: float) -> list[Markup]:
    """Draw a pool's map below its bar: by address, the fuller the darker."""
    step = wide / len(cells)
    return [
        element(
            "rect",
            x=MARGIN + at * step,
            y=y,
            width=max(0.3, step),
            height=8,
            fill=mix("#ffffff", "#00567f", full / 100),
        )
        for at, full in enumerate(cells)
    ]


def _bar(name: str, pieces: _Pieces, y: float, scale: float) -> list[Markup]:
    total = sum(size for _, size in pieces)
    parts = [label(MARGIN, y + 14, clean(f"{name}: {format_bytes(total)}", 60))]
    x = float(MARGIN)
    for fill, size in pieces:
        if size <= 0:
            continue
        wide, words = size * scale, format_bytes(size)
        parts.append(
            element(
                "rect",
                element("title", words),
                x=x,
                y=y + 20,
                width=max(1.0, wide),
                height=_LANE,
                fill=fill,
                stroke=OUTLINE,
                stroke_dasharray="4 3" if fill == "none" else "",
            )
        )
        if text_width(words, 13) + 12 <= wide:
            ink = "oor-small" if fill == "none" else "oor-small oor-on-light"
            parts.append(label(x + 6, y + 38, words, ink))
        x += wide
    return parts
