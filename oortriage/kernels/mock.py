"""Arguments for kernels that are only compiled: pointers without memory behind them."""

from __future__ import annotations

import msgspec


class Pointer(msgspec.Struct, frozen=True):
    """A pointer to elements of a type (``float32``, ``int64``), aligned to 16 bytes and within 2 GiB."""

    dtype: str

    def data_ptr(self) -> int:
        """Return an address; zero counts as aligned."""
        return 0

    def ptr_range(self) -> int:
        """Return the reach in bytes; AMD's compiler asks."""
        return 0
