"""vLLM's memory decision done again: what fits on a card, and what to change. Pure arithmetic, release by release."""
