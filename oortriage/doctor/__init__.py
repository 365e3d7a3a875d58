"""The machine's own facts: driver, cards, memory, limits, versions, and what is wrong with them."""
