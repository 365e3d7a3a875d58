"""Where samples come from: the driver, /proc and control groups, vLLM's metrics endpoint."""
