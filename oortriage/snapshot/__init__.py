"""PyTorch memory snapshots: read without unpickling objects, and what they say of fragmentation and owners."""
