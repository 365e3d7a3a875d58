"""Reports of cells on a real card, as text and Markdown lines; JSON is the structure itself."""

from __future__ import annotations

from oortriage.replay.job import LiveResult
from oortriage.replay.live_grid import LiveCell, LiveGrid

_STATUS = {
    "ran": "ran",
    "loaded": "loaded, not launched: a capsule holds no data",
    "out_of_resources": "refused: out of resources",
    "failed": "failed",
    "refused": "not run",
}


def live_lines(grid: LiveGrid) -> list[str]:
    """Say what the card made of each cell, and whether that is what was predicted."""
    verdict = "prediction and card agree in every cell" if grid.agrees else "PREDICTION AND CARD DISAGREE"
    lines = [
        f"on the card: {verdict}; {grid.device}, "
        + ("as it is" if grid.mode == "native" else f"playing {grid.target}")
        + f", limit {grid.limit_bytes:,} bytes"
    ]
    lines += [_cell(cell) for cell in grid.cells]
    if grid.fastest:
        lines.append(f"fastest: {grid.fastest.sentence}")
    ceilings = next((cell.result.ceilings for cell in grid.cells if cell.result.ceilings), {})
    if ceilings and grid.mode == "native":
        lines.append("measured ceilings of the card: " + ", ".join(_ceiling(*pair) for pair in ceilings.items()))
    return lines + [f"note: {note}" for note in grid.notes]


def _cell(cell: LiveCell) -> str:
    where = ", ".join(f"{name}={value}" for name, value in cell.settings.items()) or "as launched"
    result = cell.result
    figure = f", {result.required_bytes:,} bytes" if result.required_bytes is not None else ""
    parts = [f"{where}: {_STATUS[result.status]}{figure}"]
    if result.checks:
        worst = max(result.checks, key=lambda check: check.error / check.tolerance)
        parts.append(f"error {worst.error:.1e} (at most {worst.tolerance:.0e})")
    parts += [_timing(result, index) for index in range(len(result.timings))]
    if result.status in ("failed", "refused"):
        parts.append(result.message)
    return ", ".join(parts)


def _timing(result: LiveResult, index: int) -> str:
    """Write a time with its spread, and how near it comes to what the card can do."""
    one = result.timings[index]
    spread = f"{one.low_ms:.3f} to {one.high_ms:.3f}"
    if result.mode == "emulated":  # the card's own speed says nothing of the card it plays
        return f"{one.batch} {one.median_ms:.3f} ms ({spread})"
    reach = [value for name, value in result.ceilings.items() if name.endswith("flop_per_second")]
    copied = result.ceilings.get("copy_bytes_per_second")
    near = ""
    if reach and copied:
        near = f", {one.flop_per_second / max(reach):.0%} of the FLOP/s"
        near += f", {one.bytes_per_second / copied:.0%} of the bytes/s"
    return f"{one.batch} {one.median_ms:.3f} ms ({spread}{near})"


def _ceiling(name: str, value: float) -> str:
    if name == "copy_bytes_per_second":
        return f"copy {value / 1e12:.2f} TB/s"
    return f"{name.removesuffix('_flop_per_second')} product {value / 1e12:.0f} TFLOP/s"
