"""Memory over time: sampled, fitted, told apart (warm-up, leak, KV pressure), exported."""
