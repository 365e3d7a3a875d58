"""One file a family of kernels; each offers ``RECIPES``."""
