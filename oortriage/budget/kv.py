"""The KV cache: how a release lays it out, and how much of it a given number of bytes holds."""

from oortriage.budget.layout import Engine, KvLayout, kv_layout
from oortriage.budget.pool import Pool, pool

__all__ = ["Engine", "KvLayout", "Pool", "kv_layout", "pool"]
