"""Pure byte arithmetic: tiles, bills, sums; no I/O and no log."""
