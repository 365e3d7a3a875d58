"""Which kernel it was, where its source is, and how to call it."""
