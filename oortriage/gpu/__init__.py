"""What a GPU is: limits and names by architecture, each figure with its source."""
