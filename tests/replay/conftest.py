"""The stubbed compiler for every test of this folder that asks for it."""

from __future__ import annotations

from tests.replay._stub import stubbed

__all__ = ["stubbed"]
