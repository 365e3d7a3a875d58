"""Lines to events (rules) and facts: what a log says, each with its line."""
