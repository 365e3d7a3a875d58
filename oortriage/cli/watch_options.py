"""Times, sizes and addresses as people write them on watch's command line."""

from __future__ import annotations

import re

from oortriage.errors import UsageError

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|min|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]i?B|B)?", re.IGNORECASE)
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}


def duration(option: str, text: str) -> float | None:
    """Read ``90``, ``90s``, ``500ms``, ``10m``, ``1h30m`` as seconds; an empty text is None.

    Raises:
        UsageError: it is no time.
    """
    if not text:
        return None
    plain = text.strip().lower()
    parts = _PART.findall(plain)
    if parts and "".join(map("".join, parts)) == plain:
        found = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    elif re.fullmatch(r"\d+(\.\d+)?", plain):
        found = float(plain)
    else:
        raise UsageError(f"{option} {text}: no time; write 90s, 10m or 1h30m")
    if not 0 < found <= 1e9:
        raise UsageError(f"{option} {text}: must be more than 0, and no more than 30 years")
    return found


def size(option: str, text: str) -> int | None:
    """Read ``64MiB``, ``1.5GB``, ``1000000`` as bytes; an empty text is None.

    Raises:
        UsageError: it is no size.
    """
    if not text:
        return None
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise UsageError(f"{option} {text}: no size; write 64MiB or 1GB")
    unit = (found.group(2) or "b").lower()
    base = 1024 if "i" in unit else 1000
    count = float(found.group(1)) * float(base ** _POWERS.get(unit[0], 0))
    if not 0 < count < 1 << 60:
        raise UsageError(f"{option} {text}: must be more than 0, and less than an exbibyte")
    return round(count)


def address(text: str) -> tuple[str, int]:
    """Read ``:9400``, ``9400``, ``0.0.0.0:9400`` or ``[::1]:9400``; without an address it is loopback.

    Raises:
        UsageError: it is no address with a port.
    """
    host, _, port = text.rpartition(":")
    if not re.fullmatch(r"\d{1,5}", port) or int(port) > 65535:
        raise UsageError(f"--prometheus {text}: write :PORT or ADDRESS:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)
