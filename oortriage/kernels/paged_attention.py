"""Inputs and float64 reference of paged attention: one for every kernel that computes it."""

from __future__ import annotations

from typing import Any

from oortriage.kernels.live import Batch

#: Elements of a score matrix that the reference holds at a time (8 bytes each).
_SCORES = 1 << 27


class PagedBatch:
    """A batch over a paged KV cache, seeded; pages lie in random order, as an engine's do.

    Tensors: ``query`` [tokens, heads, head], ``keys`` and ``values`` [pages, page, kv heads, head] in the
    shape's dtype, ``table`` [sequences, pages] int32, ``starts`` [sequences + 1] int32, ``lengths``
    [sequences] int32.
    """

    def __init__(self, shape: dict[str, Any], batch: Batch, device: str, seed: int) -> None:
        """Make the tensors on a device."""
        import torch

        generator = torch.Generator(device=device).manual_seed(seed)
        dtype = getattr(torch, shape["dtype"])
        head, kv_heads, page = shape["head_size"], shape.get("kv_heads", 4), shape["block_size"]
        self.heads, self.kv_heads, self.head, self.page = kv_heads * shape["q_per_kv"], kv_heads, head, page
        self.window, self.scale, self.softcap = shape["window"], head**-0.5, shape.get("softcap", 0.0)
        self.counts = [new for new, _ in batch.sequences]
        self.totals = [total for _, total in batch.sequences]
        pages = [-(-total // page) for total in self.totals]

        def random(*size: int) -> Any:
            return torch.randn(size, generator=generator, device=device, dtype=torch.float32).to(dtype)

        self.query = random(sum(self.counts), self.heads, head)
        self.keys = random(sum(pages) + 1, page, kv_heads, head)
        self.values = random(sum(pages) + 1, page, kv_heads, head)
        order = torch.randperm(sum(pages), generator=generator, device=device).to(torch.int32)
        # A place in the table that no sequence owns points at a page of its own, whose values would show.
        self.table = torch.full((len(pages), max(pages)), sum(pages), dtype=torch.int32, device=device)
        begin = 0
        for index, count in enumerate(pages):
            self.table[index, :count] = order[begin : begin + count]
            begin += count
        ends = torch.tensor(self.counts, device=device).cumsum(0)
        self.starts = torch.cat((torch.zeros(1, dtype=torch.int64, device=device), ends)).to(torch.int32)
        self.lengths = torch.tensor(self.totals, dtype=torch.int32, device=device)

    @property
    def bytes_moved(self) -> int:
        """Bytes of Q, of the keys and values that are seen, and of the output."""
        width = int(self.query.element_size())
        seen = sum(self._seen(new, total) for new, total in zip(self.counts, self.totals, strict=True))
        return int(2 * self.query.numel() * width + 2 * seen * self.kv_heads * self.head * width)

    def _seen(self, new: int, total: int) -> int:
        return min(total, self.window + new - 1) if self.window else total

    @property
    def flops(self) -> int:
        """Operations of the two products, for the pairs of positions that see each other."""
        pairs = 0
        for new, total in zip(self.counts, self.totals, strict=True):
            for position in range(total - new, total):
                pairs += min(position + 1, self.window) if self.window else position + 1
        return int(4 * pairs * self.heads * self.head)

    def reference(self) -> Any:
        """Compute attention in float64, a few heads at a time where the scores would not fit."""
        import torch

        out = torch.zeros(self.query.shape, dtype=torch.float64, device=self.query.device)
        group = self.heads // self.kv_heads
        for index, (new, total) in enumerate(zip(self.counts, self.totals, strict=True)):
            begin = int(self.starts[index])
            pages = self.table[index, : -(-total // self.page)].long()
            keys = self.keys[pages].flatten(0, 1)[:total]
            values = self.values[pages].flatten(0, 1)[:total]
            position = torch.arange(total - new, total, device=out.device)[:, None]
            key = torch.arange(total, device=out.device)[None, :]
            hidden = key > position
            if self.window:
                hidden |= position - key >= self.window
            together = max(1, _SCORES // (new * total * group))
            for first in range(0, self.kv_heads, together):
                some = slice(first, min(first + together, self.kv_heads))
                k = keys[:, some].double().repeat_interleave(group, 1)
                v = values[:, some].double().repeat_interleave(group, 1)
                part = slice(some.start * group, some.stop * group)
                query = self.query[begin : begin + new, part].double()
                scores = torch.einsum("qhd,khd->hqk", query, k) * self.scale
                if self.softcap:
                    scores = self.softcap * torch.tanh(scores / self.softcap)
                weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
                out[begin : begin + new, part] = torch.einsum("hqk,khd->qhd", weights, v)
        return out
