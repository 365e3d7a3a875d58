"""What in a `vllm serve` command does not exist, is ignored, changed its meaning or contradicts itself in a release."""
