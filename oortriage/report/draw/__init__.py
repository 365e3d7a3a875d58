"""Pictures of bytes, for a terminal and as SVG: the map of a block's shared memory, the grid of an experiment."""
