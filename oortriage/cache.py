"""Where things are kept between runs: fetched source files, compiled cells."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder: ``OORTRIAGE_CACHE``, else the platform's own place for caches."""
    if chosen := os.environ.get("OORTRIAGE_CACHE"):
        return Path(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("oortriage", appauthor=False)
