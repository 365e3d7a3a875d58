"""Thresholds by which a shortage of device memory is judged, the same for a message and for a snapshot."""

from __future__ import annotations

#: Share of the reserved memory that must lie idle in one way before that way is believed to be the cause: below it the
#: card is full. Chosen on public reports, where it reproduces hand labels (docs/evidence/oom-causes.md).
IDLE_SHARE = 0.20
#: Bytes. Segments are cut in steps of 2 and 20 MiB; a surplus of free memory below this may be lost to rounding.
ROUNDING = 50 * 2**20
#: Bytes of the largest single GPU sold (B300 and MI355X, 288 GB; NVIDIA and AMD data sheets, 2026-11-29).
LARGEST_CARD = 288 * 10**9
