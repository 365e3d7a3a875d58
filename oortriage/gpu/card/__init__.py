"""A real card: launching on it as it is, or playing an older one on it. Used in child processes alone."""
