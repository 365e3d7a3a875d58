"""Reproduce, experiment, fit: a kernel recipe compiled over a grid of settings."""
