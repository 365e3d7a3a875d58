"""A whole vLLM engine, without and with the policy: the failure and the cure come with the first request."""
